/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The root cause in sentences: which thread did what before another did what. */
#include "analyzer/report/internal.h"

#include <string.h>

static const char *const past[SYM_OP_COUNT] = {
	[SYM_READ] = "read", [SYM_WRITE] = "wrote", [SYM_RMW] = "updated",
	[SYM_LOCK] = "locked", [SYM_RDLOCK] = "read-locked", [SYM_UNLOCK] = "unlocked",
	[SYM_TRYLOCK] = "tried to lock", [SYM_TRYRDLOCK] = "tried to read-lock",
	[SYM_WAIT] = "was woken by", [SYM_SIGNAL] = "signalled", [SYM_BROADCAST] = "broadcast",
	[SYM_SEMWAIT] = "passed", [SYM_SEMPOST] = "posted",
	[SYM_BARRIER_ENTER] = "arrived at", [SYM_BARRIER_LEAVE] = "left",
	[SYM_ONCE_BEGIN] = "entered", [SYM_ONCE_END] = "finished",
	[SYM_FORK] = "created", [SYM_JOIN] = "joined", [SYM_FENCE] = "passed a fence",
	[SYM_START] = "started", [SYM_EXIT] = "ended", [SYM_FAIL] = "failed",
};

/* ... what it still waits to do when the program stands still */
static const char *const could[SYM_OP_COUNT] = {
	[SYM_LOCK] = "could acquire", [SYM_RDLOCK] = "could acquire", [SYM_WAIT] = "could be woken by",
	[SYM_JOIN] = "could join",
};

static bool is_blocked(const struct sym_trace *t, struct sched_ref r)
{
	for (size_t i = 0; i < t->failure.nblocked; i++)
		if (t->failure.blocked[i].thread == r.thread &&
		    t->failure.blocked[i].event == r.index)
			return true;
	return false;
}

/* who, whom: the threads that did the first thing, and the second. */
static void cause_of(struct strbuf *b, const struct report *r, const char *who, const char *whom,
		     struct sched_ref before, struct sched_ref after)
{
	const struct sym_trace *t = r->trace;
	const struct sym_event *x = order_event_at(t, before), *y = order_event_at(t, after);
	const char *first = dsp_subject(t, x), *second = dsp_subject(t, y);
	char *where_x = dsp_where(t, before), *where_y = dsp_where(t, after);
	char *via_x = dsp_via(t, x), *via_y = dsp_via(t, y);

	strbuf_fmt(b, "%s %s", who, is_blocked(t, before) ? "waited for" : past[x->op]);
	if (*first)
		strbuf_fmt(b, " `%s'", first);
	if (via_x)
		strbuf_fmt(b, " in %s()", via_x);
	strbuf_fmt(b, " at %s before %s %s", where_x, whom,
		   is_blocked(t, after) ? could[y->op] ? could[y->op] : "could pass" : past[y->op]);
	if (*second && !strcmp(first, second))
		strbuf_str(b, " it");
	else if (*second)
		strbuf_fmt(b, " `%s'", second);
	if (via_y)
		strbuf_fmt(b, " in %s()", via_y);
	strbuf_fmt(b, " at %s", where_y);
	free(via_x);
	free(via_y);
	free(where_x);
	free(where_y);
}

void rep_cause(struct strbuf *b, const struct report *r, struct sched_ref before,
	       struct sched_ref after)
{
	cause_of(b, r, r->trace->threads[before.thread].id, r->trace->threads[after.thread].id, before, after);
}

/* The same operation on the same thing at the same place. */
static bool alike(const struct report *r, struct sched_ref a, struct sched_ref b)
{
	const struct sym_event *x = order_event_at(r->trace, a), *y = order_event_at(r->trace, b);
	char *p, *q;
	bool same;

	if (x->op != y->op || x->target != y->target)
		return false;
	p = dsp_where(r->trace, a);
	q = dsp_where(r->trace, b);
	same = !strcmp(p, q);
	free(p);
	free(q);
	return same;
}

static void join_names(struct strbuf *b, const struct report *r, const uint32_t *threads, size_t n)
{
	for (size_t i = 0; i < n; i++)
		strbuf_fmt(b, "%s%s", !i ? "" : i + 1 < n ? ", " : " and ",
			   r->trace->threads[threads[i]].id);
}

/*
 * Pairs that differ from pair i only in who did the first thing (or, `later', the second) are said with it: their
 * threads, each once. Of those that are said already there is none.
 */
static size_t say_together(const struct report *r, size_t i, bool later, bool *said, uint32_t *threads)
{
	const struct dsp *d = r->dsp;
	const struct dsp_pair *p = &d->pairs[i];
	size_t n = 0;

	for (size_t k = i; k < d->npairs; k++) {
		const struct dsp_pair *q = &d->pairs[k];
		uint32_t thread = later ? q->after.thread : q->before.thread;
		bool known = false;

		if (said[k] || (later ? q->before.thread != p->before.thread : q->after.thread != p->after.thread) ||
		    !alike(r, p->before, q->before) || !alike(r, p->after, q->after))
			continue;
		said[k] = true;
		for (size_t h = 0; h < n; h++)
			known |= threads[h] == thread;
		if (!known)
			threads[n++] = thread;
	}
	return n;
}

static bool is_said(char *const *said, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(said[i], text))
			return true;
	return false;
}

size_t rep_causes(const struct report *r, char ***out)
{
	const struct dsp *d = r->dsp;
	bool *said = xcalloc(d->npairs + 1, sizeof *said);
	uint32_t *threads = xcalloc(d->npairs + 1, sizeof *threads);
	VEC(char *) all = { 0 };

	for (size_t i = 0; i < d->npairs; i++) {
		const struct dsp_pair *p = &d->pairs[i];
		struct strbuf who = { 0 }, whom = { 0 }, b = { 0 };
		size_t n = say_together(r, i, false, said, threads);

		if (!n)
			continue;
		join_names(&who, r, threads, n);
		said[i] = n > 1; /* alone, it may be one of several the other way */
		n = n > 1 ? 0 : say_together(r, i, true, said, threads);
		if (!n)
			threads[n++] = p->after.thread;
		join_names(&whom, r, threads, n);
		cause_of(&b, r, who.s, whom.s, p->before, p->after);
		/* Two halves of one thing that was read or written at one place. */
		if (is_said(all.v, all.n, b.s))
			strbuf_free(&b);
		else
			vec_push(&all, strbuf_take(&b));
		strbuf_free(&who);
		strbuf_free(&whom);
	}
	free(said);
	free(threads);
	*out = all.v;
	return all.n;
}
