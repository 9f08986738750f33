/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moving about in a recorded run: see target.h. */
#include "analyzer/debug/target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Going back looks at stretches of growing length: the first, and the longest, in instructions. */
#define FIRST_STRETCH 250000u
#define LONGEST_STRETCH 32000000u

err_t dbg_init(struct dbg *d, struct trc *t, struct img_set *images, struct mach_run *run,
	       struct mach_result *result)
{
	*d = (struct dbg){ .t = t, .images = images, .run = run, .result = result, .end = mach_length(run) };
	return dbg_go(d, d->end);
}

void dbg_free(struct dbg *d)
{
	for (size_t i = 0; i < d->marks.n; i++)
		free(d->marks.v[i].name);
	for (size_t i = 0; i < d->events.n; i++)
		free(d->events.v[i].text);
	vec_free(&d->events);
	vec_free(&d->marks);
	vec_free(&d->breaks);
	vec_free(&d->spans);
}

err_t dbg_go(struct dbg *d, uint64_t time)
{
	d->now = time < d->end ? time : d->end;
	return mach_seek(d->run, d->now);
}

/* ---- breakpoints and watchpoints ---- */

void dbg_break(struct dbg *d, uint64_t pc, bool set)
{
	size_t i = 0;

	while (i < d->breaks.n && d->breaks.v[i] < pc)
		i++;
	if (set) {
		vec_push(&d->breaks, pc);
		memmove(&d->breaks.v[i + 1], &d->breaks.v[i], (d->breaks.n - 1 - i) * sizeof pc);
		d->breaks.v[i] = pc;
	} else if (i < d->breaks.n && d->breaks.v[i] == pc) {
		memmove(&d->breaks.v[i], &d->breaks.v[i + 1], (--d->breaks.n - i) * sizeof pc);
	}
}

void dbg_watch(struct dbg *d, struct mach_span span, bool set)
{
	for (size_t i = 0; !set && i < d->spans.n; i++)
		if (!memcmp(&d->spans.v[i], &span, sizeof span)) {
			d->spans.v[i] = d->spans.v[--d->spans.n];
			return;
		}
	if (set)
		vec_push(&d->spans, span);
}

/* ---- looking for the next stop ---- */

struct search {
	struct dbg *d;
	uint64_t now; /* only what stops behind this counts ... */
	bool last;    /* ... or the last that stops before it */
	bool found;
	struct mach_seen hit;
};

/* The position at which the debugger stops for it. */
static uint64_t stops_at(const struct search *s, const struct mach_seen *seen)
{
	return seen->access && !s->last ? seen->time + 1 : seen->time;
}

static bool on_seen(void *arg, const struct mach_seen *seen)
{
	struct search *s = arg;
	uint64_t at = stops_at(s, seen);

	if (s->last ? at >= s->now : at <= s->now)
		return false;
	if (s->found && s->last && stops_at(s, &s->hit) > at)
		return false;
	s->found = true;
	s->hit = *seen;
	return !s->last;
}

static err_t look(struct search *s, uint64_t to)
{
	struct dbg *d = s->d;
	const struct mach_sight sight = { .pcs = d->breaks.v, .npcs = d->breaks.n, .spans = d->spans.v,
					  .nspans = d->spans.n, .seen = on_seen, .arg = s };

	return mach_look(d->run, to, &sight);
}

static void describe(const struct search *s, struct dbg_stop *out)
{
	const struct mach_seen *h = &s->hit;

	*out = (struct dbg_stop){ .reason = h->access ? DBG_WATCHPOINT : DBG_BREAKPOINT, .thread = h->thread };
	if (h->access) {
		out->address = s->d->spans.v[h->span].lo;
		out->how = s->d->spans.v[h->span].how;
	}
}

/* To time `to`, or to the first stop before that. */
static err_t forward(struct dbg *d, uint64_t to, bool *stopped, struct dbg_stop *out)
{
	struct search s = { .d = d, .now = d->now };

	*stopped = false;
	if (d->breaks.n || d->spans.n) {
		TRY(look(&s, to));
		if (s.found) {
			describe(&s, out);
			*stopped = true;
			return dbg_go(d, stops_at(&s, &s.hit));
		}
	}
	if (!d->interrupted)
		return dbg_go(d, to);
	d->now = mach_time(d->run);
	return NULL;
}

/* The last stop before now, in stretches that begin further and further back. */
static err_t backward(struct dbg *d, bool *stopped, struct dbg_stop *out)
{
	uint64_t hi = d->now, size = FIRST_STRETCH;

	*stopped = false;
	while (hi && !d->interrupted && (d->breaks.n || d->spans.n)) {
		uint64_t lo = hi > size ? hi - size : 0;
		struct search s = { .d = d, .now = d->now, .last = true };

		TRY(mach_seek(d->run, lo));
		TRY(look(&s, hi));
		if (s.found && !d->interrupted) {
			describe(&s, out);
			*stopped = true;
			return dbg_go(d, stops_at(&s, &s.hit));
		}
		hi = lo;
		size = size < LONGEST_STRETCH / 2 ? 2 * size : LONGEST_STRETCH;
	}
	return d->interrupted ? dbg_go(d, hi) : dbg_go(d, 0);
}

/* ---- what a debugger asks for ---- */

void dbg_where(struct dbg *d, struct dbg_stop *out)
{
	bool end = d->now == d->end, failed = end && (d->order ? d->order_fails : d->result->failure_reached);
	uint32_t thread = d->order ? d->order_thread : d->t->failure ? d->t->failure->thread : UINT32_MAX;

	*out = (struct dbg_stop){ .reason = failed ? DBG_FAILURE : end ? DBG_END : DBG_STEPPED,
				  .thread = failed && thread != UINT32_MAX ? thread : mach_next_thread(d->run) };
}

/* Somebody asked to be elsewhere (monitor jump). */
static err_t jump(struct dbg *d, struct dbg_stop *out)
{
	d->jumps = false;
	TRY(dbg_go(d, d->jump.time));
	dbg_where(d, out);
	if (out->reason != DBG_FAILURE) {
		out->reason = DBG_JUMPED;
		if (d->jump.thread != UINT32_MAX && mach_thread_alive(d->run, d->jump.thread))
			out->thread = d->jump.thread;
	}
	return NULL;
}

err_t dbg_continue(struct dbg *d, bool back, struct dbg_stop *out)
{
	bool was_end = d->now == d->end, stopped;

	if (d->jumps)
		return jump(d, out);

	d->interrupted = false;
	TRY(back ? backward(d, &stopped, out) : forward(d, d->end, &stopped, out));
	if (stopped)
		return NULL;
	dbg_where(d, out);
	if (d->interrupted)
		out->reason = DBG_INTERRUPTED;
	else if (back)
		out->reason = DBG_BEGIN;
	else if (was_end)
		out->reason = DBG_END;
	return NULL;
}

err_t dbg_step(struct dbg *d, uint32_t thread, bool back, struct dbg_stop *out)
{
	uint64_t time;
	bool stopped;

	if (d->jumps)
		return jump(d, out);
	d->interrupted = false;
	if (!mach_thread_time(d->run, thread, d->now, back, &time))
		return dbg_continue(d, back, out); /* it does nothing any more (or had not begun) */
	if (back) {
		TRY(dbg_go(d, time));
		*out = (struct dbg_stop){ .reason = DBG_STEPPED, .thread = thread };
		return NULL;
	}
	TRY(forward(d, time + 1, &stopped, out));
	/* That it came to a breakpoint by its own step is for the debugger to see. */
	if (!stopped || (out->reason == DBG_BREAKPOINT && d->now == time + 1))
		*out = (struct dbg_stop){ .reason = d->interrupted ? DBG_INTERRUPTED : DBG_STEPPED, .thread = thread };
	return NULL;
}

/* ---- positions ---- */

char *dbg_position(struct dbg *d)
{
	struct dbg_stop at;

	dbg_where(d, &at);
	return xasprintf("%s:%" PRIu64, trc_thread_id(d->t, at.thread), mach_thread_insns(d->run, at.thread));
}

void dbg_event(struct dbg *d, struct dbg_place at, char *text)
{
	vec_push(&d->events, (struct dbg_event){ at, text });
}

void dbg_mark(struct dbg *d, const char *name)
{
	for (size_t i = 0; i < d->marks.n; i++)
		if (!strcmp(d->marks.v[i].name, name)) {
			d->marks.v[i].time = d->now;
			return;
		}
	vec_push(&d->marks, (struct dbg_mark){ xstrdup(name), d->now });
}

static bool find_mark(const struct dbg *d, const char *name, uint64_t *time)
{
	for (size_t i = 0; i < d->marks.n; i++)
		if (!strcmp(d->marks.v[i].name, name)) {
			*time = d->marks.v[i].time;
			return true;
		}
	return false;
}

err_t dbg_parse(struct dbg *d, const char *text, struct dbg_place *out)
{
	uint64_t *time = &out->time;
	const char *colon = strrchr(text, ':');
	char *end;

	out->thread = UINT32_MAX;
	if (find_mark(d, text, time))
		return NULL;
	if (!strcmp(text, "begin") || !strcmp(text, "end")) {
		*time = *text == 'b' ? 0 : d->end;
		return NULL;
	}
	uint64_t insn = colon ? strtoull(colon + 1, &end, 10) : 0;

	if (!colon || end == colon + 1 || *end)
		return err_new(ERR_USAGE, "'%s' is no position: expected THREAD:N (N instructions executed by that "
					  "thread), begin, end, or a mark", text);
	for (uint32_t i = 0; i < d->t->threads.n && i < mach_thread_count(d->run); i++) {
		const char *id = trc_thread_id(d->t, i);

		if (strlen(id) != (size_t)(colon - text) || memcmp(id, text, (size_t)(colon - text)))
			continue;
		if (mach_position_time(d->run, i, insn, time)) {
			/* What the others do before its next instruction is what that one sees. */
			mach_thread_time(d->run, i, *time, false, time);
			out->thread = i;
			return NULL;
		}
		return err_new(ERR_NOANSWER, "%s executed fewer than %" PRIu64 " instructions", id, insn);
	}
	return err_new(ERR_NOANSWER, "the trace has no thread %.*s", (int)(colon - text), text);
}
