/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who is woken. A signal wakes one of those who wait for a condition, and which one is not said
 * anywhere: it is chosen here so that the order comes out, and enforced as an order of wake-ups.
 *
 * What glibc does bounds the choice: those who wait are in two groups, older and newer. A signal
 * goes to the older one; when all of that have been woken, everybody who waits by then becomes the older
 * group. Wake-ups that are taken in the order of their signals never wait for each other in vain: each
 * needs only its own signal.
 */
#include "analyzer/enforce/edges_internal.h"

struct waiter {
	uint32_t cond;
	struct sched_ref enter;  /* the release of the mutex */
	struct sched_ref wake;   /* the SYM_WAIT; index SYM_NONE: not in the trace */
	size_t wakes_at;         /* its place in the order; SIZE_MAX: not in it */
	bool older;              /* in the group that signals go to */
};

/* The last wake-up of a condition that another waiter could have taken. */
struct token {
	bool used;
	struct sched_ref wake;
};

struct wakes {
	struct edges_work *w;
	VEC(struct waiter) waiting;
	struct token *last; /* by object */
};

/* The event that stands for the wait of a waiter. */
static struct sched_ref place_of_wait(const struct waiter *x)
{
	return x->wakes_at == SIZE_MAX ? x->enter : x->wake;
}

/* The condition that somebody waits for at this call; SYM_NONE: nobody who came back. */
static uint32_t cond_at(const struct sym_trace *t, uint64_t pc)
{
	for (size_t i = 0; i < t->nthreads; i++)
		for (size_t k = 0; k < t->threads[i].nevents; k++)
			if (t->threads[i].events[k].op == SYM_WAIT && t->threads[i].events[k].pc == pc)
				return t->threads[i].events[k].target;
	return SYM_NONE;
}

/* Is this release that of a wait? One that never came back is a thread's last event. */
static bool begins_wait(const struct wakes *k, struct sched_ref r, struct waiter *out)
{
	const struct sym_thread *th = &k->w->t->threads[r.thread];

	*out = (struct waiter){ SYM_NONE, r, { r.thread, SYM_NONE }, SIZE_MAX, false };
	for (uint32_t i = r.index + 1; i < th->nevents && i < r.index + 3; i++)
		if (th->events[i].op == SYM_WAIT && th->events[i].link == r.index) {
			out->cond = th->events[i].target;
			out->wake.index = i;
			out->wakes_at = edges_place_of(k->w, out->wake);
			return true;
		}
	if (r.index + 1 == th->nevents)
		out->cond = cond_at(k->w->t, th->events[r.index].pc);
	return out->cond != SYM_NONE;
}

static bool has_older(const struct wakes *k, uint32_t cond)
{
	for (size_t i = 0; i < k->waiting.n; i++)
		if (k->waiting.v[i].cond == cond && k->waiting.v[i].older)
			return true;
	return false;
}

/* Who takes this signal: of those it may go to, the one that goes on first. SIZE_MAX: nobody waits. */
static size_t chosen(struct wakes *k, uint32_t cond, size_t *candidates)
{
	bool switches = !has_older(k, cond);
	size_t best = SIZE_MAX;

	*candidates = 0;
	for (size_t i = 0; i < k->waiting.n; i++) {
		struct waiter *x = &k->waiting.v[i];

		if (x->cond != cond || !(x->older |= switches))
			continue;
		++*candidates;
		if (best == SIZE_MAX || x->wakes_at < k->waiting.v[best].wakes_at)
			best = i;
	}
	return best;
}

static void follows(struct wakes *k, uint32_t cond, const struct waiter *x)
{
	struct sched_ref to = place_of_wait(x);

	if (to.index != SYM_NONE && k->last[cond].used && k->last[cond].wake.thread != to.thread)
		vec_push(&k->w->out->wakes, (struct sched_edge){ k->last[cond].wake, to });
}

static void signal_one(struct wakes *k, struct sched_ref r)
{
	uint32_t cond = order_event(k->w->t, r)->target;
	size_t candidates, i = chosen(k, cond, &candidates);

	/* They have begun to wait, or it wakes somebody else. */
	for (size_t n = 0; n < k->waiting.n; n++)
		if (k->waiting.v[n].cond == cond && k->waiting.v[n].enter.index != SYM_NONE)
			edges_push(k->w, k->waiting.v[n].enter, r);
	if (i == SIZE_MAX)
		return;
	struct waiter x = k->waiting.v[i];
	follows(k, cond, &x);
	k->last[cond] = (struct token){ candidates > 1 && x.wakes_at != SIZE_MAX, x.wake };
	k->waiting.v[i] = k->waiting.v[--k->waiting.n];
}

static void signal_all(struct wakes *k, uint32_t cond)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->waiting.n; i++)
		if (k->waiting.v[i].cond != cond)
			k->waiting.v[kept++] = k->waiting.v[i];
		else
			follows(k, cond, &k->waiting.v[i]);
	k->waiting.n = kept;
	k->last[cond].used = false;
}

/* Woken without a signal that was seen, or by time. */
static void leave(struct wakes *k, struct sched_ref r)
{
	for (size_t i = 0; i < k->waiting.n; i++)
		if (k->waiting.v[i].wake.thread == r.thread && k->waiting.v[i].wake.index == r.index) {
			k->waiting.v[i] = k->waiting.v[--k->waiting.n];
			return;
		}
}

/* Who was waiting when the window began: there it is only a lock, at the call of a wait. */
static void begin(struct wakes *k)
{
	const struct sym_trace *t = k->w->t;

	for (uint32_t i = 0; i < t->nthreads; i++)
		for (uint32_t n = 0; n < t->threads[i].nevents; n++) {
			const struct sym_event *e = &t->threads[i].events[n];
			uint32_t cond = e->op == SYM_LOCK ? cond_at(t, e->pc) : SYM_NONE;
			struct sched_ref wake = { i, n };

			if (e->op == SYM_WAIT || (e->op != SYM_LOCK && e->op != SYM_UNLOCK))
				continue;
			if (cond != SYM_NONE)
				vec_push(&k->waiting, (struct waiter){ cond, { i, SYM_NONE }, wake,
								       edges_place_of(k->w, wake), true });
			break;
		}
}

void edges_wakes(struct edges_work *w)
{
	struct wakes k = { .w = w, .last = xcalloc(w->t->nobjects + 1, sizeof *k.last) };
	struct waiter x;

	begin(&k);
	for (size_t i = 0; i < w->until; i++) {
		struct sched_ref r = w->order->refs[i];
		const struct sym_event *e = order_event(w->t, r);

		if (e->op == SYM_SIGNAL)
			signal_one(&k, r);
		else if (e->op == SYM_BROADCAST)
			signal_all(&k, e->target);
		else if (e->op == SYM_WAIT || e->op == SYM_LOCK)
			leave(&k, r);
		else if (e->op == SYM_UNLOCK && begins_wait(&k, r, &x))
			vec_push(&k.waiting, x);
	}
	/* Who is not woken at all must not take what belongs to others. */
	for (size_t i = 0; i < k.waiting.n; i++)
		follows(&k, k.waiting.v[i].cond, &k.waiting.v[i]);
	vec_free(&k.waiting);
	free(k.last);
}
