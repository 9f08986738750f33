/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Serial orders, executed one by one, and what they print and end with. */
#include "analyzer/explore/serial.h"

#include <string.h>

#define MAX_SERIAL 720u /* orders: of six threads all, in seconds */

static bool is_same(const struct xpl_outcome *o, const struct xpl_seen *s)
{
	return o->status == s->tried.status && o->len == s->output_len &&
	       (!o->len || !memcmp(o->output, s->output, o->len));
}

static bool is_known(const struct xpl_serial *s, const struct xpl_seen *seen)
{
	for (size_t i = 0; i < s->v.n; i++)
		if (is_same(&s->v.v[i], seen))
			return true;
	return false;
}

static void swap(uint32_t *v, uint32_t a, uint32_t b)
{
	uint32_t x = v[a];

	v[a] = v[b];
	v[b] = x;
}

/* The next order in the dictionary; false: it was the last. */
static bool next_order(uint32_t *v, uint32_t n)
{
	uint32_t i = n - 1, k = n - 1;

	while (i > 0 && v[i - 1] > v[i])
		i--;
	if (!i)
		return false;
	while (v[k] < v[i - 1])
		k--;
	swap(v, i - 1, k);
	for (uint32_t lo = i, hi = n - 1; lo < hi; lo++, hi--)
		swap(v, lo, hi);
	return true;
}

static void take(struct xpl_serial *s, const struct xpl_seen *seen)
{
	struct xpl_outcome o = { .status = seen->tried.status, .len = seen->output_len };

	s->orders++;
	/* What fails is a failure of its own, and no end that others may have. */
	if (seen->tried.end == MACH_TRIED_LEFT || seen->tried.end == MACH_TRIED_ENDLESS || seen->output_full) {
		free(s->why);
		s->why = xstrdup(seen->output_full ? "a serial order prints more than is kept" : seen->tried.why);
	} else if (seen->tried.end == MACH_TRIED_EXIT && !is_known(s, seen)) {
		o.output = xmalloc(o.len + 1);
		if (o.len)
			memcpy(o.output, seen->output, o.len);
		vec_push(&s->v, o);
	}
}

err_t xpl_serial_find(struct xpl_serial *s, struct xpl_drive *d, uint32_t nthreads,
		      err_t (*run)(void *arg, const uint32_t *order, struct xpl_seen *out), void *arg)
{
	uint32_t *order = xcalloc(nthreads + 1, sizeof *order), number;
	uint64_t all = 1;
	bool more = true;
	err_t e = NULL;

	for (uint32_t i = 0; i < nthreads; i++) {
		order[i] = i;
		all = all > MAX_SERIAL ? all : all * (i + 1);
	}
	if (all > MAX_SERIAL) {
		s->why = xasprintf("%u threads have more than %u serial orders", nthreads, MAX_SERIAL);
		more = false;
	}
	while (!e && more && !s->why && !xpl_drive_stops(d) && !d->stopped) {
		struct xpl_seen seen = { 0 };

		e = run(arg, order, &seen);
		if (e)
			break;
		take(s, &seen);
		xpl_drive_take(d, &seen, 0, &number);
		more = next_order(order, nthreads);
	}
	if (!s->why && more)
		s->why = xstrdup("it ended before all serial orders were executed");
	s->complete = !e && !s->why && s->v.n;
	if (!s->complete && !s->why)
		s->why = xstrdup("no serial order ends by itself");
	free(order);
	return e;
}

bool xpl_serial_differs(const struct xpl_serial *s, const struct xpl_seen *seen)
{
	return s->complete && !seen->output_full && !is_known(s, seen);
}

void xpl_serial_free(struct xpl_serial *s)
{
	for (size_t i = 0; i < s->v.n; i++)
		free(s->v.v[i].output);
	vec_free(&s->v);
	free(s->why);
}
