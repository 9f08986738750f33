/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input"): which of the pairs that a
 * passing order turns round are needed for it to pass. Parts of the set are tried, then what is left without a part, and the
 * parts become smaller, until each is one pair and none can be left out.
 */
#include "analyzer/order/turn.h"

#include "common/vec.h"

#include <string.h>

/* Half of the tests, at most, go to single pairs: most differences are one. */
#define SINGLES 2

struct ddmin {
	size_t n;
	order_test test;
	void *arg;
	unsigned *left;  /* tests */
	size_t *set;     /* the smallest set so far that passes, in order */
	size_t nset;
	bool *marked;    /* scratch, as it is tested */
};

/* set[from..to), or all but that: does it pass? */
static bool passes(struct ddmin *d, size_t from, size_t to, bool without)
{
	if (!*d->left)
		return false;
	--*d->left;
	memset(d->marked, 0, d->n);
	for (size_t i = 0; i < d->nset; i++)
		d->marked[d->set[i]] = (i >= from && i < to) != without;
	return d->test(d->arg, d->marked) == ORDER_PASSES;
}

static void keep(struct ddmin *d, size_t from, size_t to, bool without)
{
	size_t n = 0;

	for (size_t i = 0; i < d->nset; i++)
		if ((i >= from && i < to) != without)
			d->set[n++] = d->set[i];
	d->nset = n;
}

/* One of so many parts, or the rest without one, is enough. */
static bool reduce(struct ddmin *d, size_t parts, bool without)
{
	for (size_t k = 0; k < parts; k++) {
		size_t from = k * d->nset / parts, to = (k + 1) * d->nset / parts;

		if (!passes(d, from, to, without))
			continue;
		keep(d, from, to, without);
		return true;
	}
	return false;
}

static bool minimise(struct ddmin *d)
{
	size_t parts = 2;

	while (d->nset > 1 && *d->left) {
		/* Of two parts the one is the rest without the other. */
		if (reduce(d, parts, false)) {
			parts = 2;
		} else if (parts > 2 && reduce(d, parts, true)) {
			parts = parts > 3 ? parts - 1 : 2;
		} else {
			if (parts == d->nset)
				return *d->left > 0;
			parts = parts * 2 < d->nset ? parts * 2 : d->nset;
		}
		if (parts > d->nset)
			parts = d->nset;
	}
	return d->nset == 1;
}

bool order_ddmin(size_t n, order_test test, void *arg, unsigned *tests, bool *marked)
{
	struct ddmin d = { .n = n, .test = test, .arg = arg, .left = tests, .set = xcalloc(n + 1, sizeof *d.set),
			   .nset = n, .marked = marked };
	bool minimal = false;

	for (size_t i = 0; i < n; i++)
		d.set[i] = i;
	for (unsigned half = *tests / SINGLES, i = 0; d.nset > 1 && i < n && *tests > half; i++)
		if (passes(&d, i, i + 1, false))
			keep(&d, i, i + 1, false);
	if (n)
		minimal = minimise(&d);
	memset(marked, 0, n);
	for (size_t i = 0; i < d.nset; i++)
		marked[d.set[i]] = true;
	free(d.set);
	return minimal;
}
