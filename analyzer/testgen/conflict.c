/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What two traces, each made alone from the same state, could do to each other: conflicting accesses, lock
 * histories, and the interleavings that put one's accesses inside the other's atomic steps.
 */
#include "analyzer/testgen/lab.h"

#include <stdlib.h>
#include <string.h>

#define HELD 16          /* locks held at a time that are known */
#define ACCESSES 1500    /* of a trace that are compared */
#define MOST_CANDIDATES 16384 /* before those that are alike are put together */
#define MANY 256         /* of one decision: two late ones are not looked for as well */

/* A lock's address; the lowest bit: held together with other readers. */
#define READER 1u

struct access {
	uint64_t address, size;
	uint32_t step, pc;
	uint8_t kind, call;
	uint8_t nheld;
	uint64_t held[HELD]; /* at the access, in the order of their acquisition ... */
	uint32_t held_step[HELD]; /* ... and where that was */
	uint8_t nhistory;
	uint64_t history[HELD]; /* ConCrash's lock history: acquired, and never released before the access */
	uint32_t nacquired;  /* how many of the trace's acquisitions came before */
};

struct accesses {
	struct access *v;
	unsigned n;
	struct access *locks; /* acquisitions; held: before them */
	unsigned nlocks;
};

struct range { uint64_t start, end; };

static bool is_own(const struct range *own, size_t n, uint64_t address)
{
	for (size_t i = n; i-- > 0;)
		if (address >= own[i].start && address < own[i].end)
			return true;
	return false;
}

/* Of a place that does the same again and again the first few times and the last are kept. */
static bool is_repetition(const struct accesses *a, const struct job_event *e)
{
	unsigned same = 0;

	for (unsigned i = a->n; i-- > 0 && a->n - i < 400;)
		same += a->v[i].pc == e->pc && a->v[i].kind == e->kind && a->v[i].address == e->address &&
			a->v[i].call == e->call;
	return same >= 3;
}

/* Does who has the one lock keep out who wants the other? */
static bool keeps_out(uint64_t has, uint64_t wants)
{
	return (has & ~(uint64_t)READER) == (wants & ~(uint64_t)READER) && !(has & wants & READER);
}

static void acquire(struct access *now, const struct job_event *e)
{
	if (now->nheld == HELD)
		return;
	now->held_step[now->nheld] = e->step;
	now->held[now->nheld++] = e->address | (e->kind == JOB_SHARED_LOCK ? READER : 0);
}

static void let_go(struct access *now, uint64_t lock)
{
	for (unsigned k = now->nheld; k-- > 0;)
		if ((now->held[k] & ~(uint64_t)READER) == lock) {
			now->nheld--;
			memmove(now->held + k, now->held + k + 1, (now->nheld - k) * sizeof *now->held);
			memmove(now->held_step + k, now->held_step + k + 1, (now->nheld - k) * sizeof *now->held_step);
			return;
		}
}

/* A lock that was once released keeps nobody out from there on, also when it is held again. */
static void set_history(struct access *now, const struct range *released, size_t n)
{
	now->nhistory = 0;
	for (unsigned k = 0; k < now->nheld; k++)
		if (!is_own(released, n, now->held[k] & ~(uint64_t)READER))
			now->history[now->nhistory++] = now->held[k];
}

static void collect(const struct trace *t, struct accesses *out)
{
	VEC(struct range) own = { 0 }, released = { 0 };
	VEC(struct access) v = { 0 }, locks = { 0 };
	struct access now = { 0 };

	*out = (struct accesses){ 0 };
	for (uint32_t i = 0; i < t->nevents; i++) {
		const struct job_event *e = &t->events[i];

		now.address = e->address;
		now.size = e->size;
		now.step = e->step;
		now.pc = e->pc;
		now.kind = e->kind;
		now.call = e->call;
		switch (e->kind) {
		case JOB_ALLOC: vec_push(&own, (struct range){ e->address, e->address + e->size }); break;
		case JOB_LOCK:
		case JOB_SHARED_LOCK:
			now.address |= e->kind == JOB_SHARED_LOCK ? READER : 0;
			vec_push(&locks, now);
			acquire(&now, e);
			now.nacquired = (uint32_t)locks.n;
			break;
		case JOB_UNLOCK:
			let_go(&now, e->address);
			vec_push(&released, (struct range){ e->address, e->address + 1 });
			break;
		case JOB_CALL: /* the next call of the sequence begins its own history */
			released.n = 0;
			break;
		case JOB_READ:
		case JOB_WRITE:
		case JOB_ATOMIC:
		case JOB_FREE:
			set_history(&now, released.v, released.n);
			out->v = v.v;
			out->n = (unsigned)v.n;
			if (v.n < ACCESSES && !is_own(own.v, own.n, e->address) && !is_repetition(out, e))
				vec_push(&v, now);
			break;
		default: break;
		}
	}
	vec_free(&own);
	vec_free(&released);
	out->v = v.v;
	out->n = (unsigned)v.n;
	out->locks = locks.v;
	out->nlocks = (unsigned)locks.n;
}

static void release(struct accesses *a)
{
	free(a->v);
	free(a->locks);
}

static bool changes(const struct access *x)
{
	return x->kind == JOB_WRITE || x->kind == JOB_FREE;
}

/* What is freed is the whole block; its size is not known: what lies shortly after its start. */
static bool overlap(const struct access *x, const struct access *y)
{
	uint64_t xs = x->kind == JOB_FREE ? 256 : x->size ? x->size : 1;
	uint64_t ys = y->kind == JOB_FREE ? 256 : y->size ? y->size : 1;

	return x->address < y->address + ys && y->address < x->address + xs;
}

static bool conflict(const struct access *x, const struct access *y)
{
	return (changes(x) || changes(y)) && overlap(x, y);
}

/* Does the other have to acquire this lock on its way to y? */
static bool acquires(const struct accesses *other, const struct access *y, uint64_t lock)
{
	for (unsigned i = 0; i < y->nacquired && i < other->nlocks; i++)
		if (keeps_out(lock, other->locks[i].address))
			return true;
	return false;
}

/*
 * Where the thread has to stop for the other to come past y before it does x: at x, or, when it holds a lock there
 * that the other needs, before it acquires that.
 */
static uint32_t stop_for(const struct access *x, const struct accesses *other, const struct access *y)
{
	for (unsigned k = 0; k < x->nheld; k++)
		if (acquires(other, y, x->held[k]))
			return x->held_step[k];
	return x->step;
}

static bool disjoint(const struct access *x, const struct access *y)
{
	for (unsigned i = 0; i < x->nhistory; i++)
		for (unsigned k = 0; k < y->nhistory; k++)
			if (keeps_out(x->history[i], y->history[k]))
				return false;
	return true;
}

bool trace_interferes(const struct trace *a, const struct trace *b)
{
	struct accesses x, y;
	bool yes = false;

	collect(a, &x);
	collect(b, &y);
	for (unsigned i = 0; i < x.n && !yes; i++)
		for (unsigned k = 0; k < y.n && !yes; k++)
			yes = changes(&y.v[k]) && overlap(&x.v[i], &y.v[k]);
	/* Locks that both take can deadlock. */
	for (unsigned i = 0; i < x.nlocks && !yes; i++)
		yes = x.locks[i].nheld && y.nlocks > 1;
	release(&x);
	release(&y);
	return yes;
}

bool trace_interleaves(const struct trace *a, const struct trace *b)
{
	struct accesses x, y;
	bool yes = false;

	collect(a, &x);
	collect(b, &y);
	for (unsigned i = 0; i < x.n && !yes; i++)
		for (unsigned k = 0; k < y.n && !yes; k++)
			yes = disjoint(&x.v[i], &y.v[k]);
	for (unsigned i = 0; i < x.nlocks && !yes; i++)
		yes = x.locks[i].nheld > 0;
	release(&x);
	release(&y);
	return yes;
}

/* ---- candidates ---- */

/* The first access of each call that conflicts with the other: what stops before it has not begun, for the other. */
static uint32_t first_shared(const struct accesses *a, uint8_t call, const struct accesses *b)
{
	for (unsigned k = 0; k < a->n; k++)
		for (unsigned m = 0; a->v[k].call == call && m < b->n; m++)
			if (conflict(&a->v[k], &b->v[m]))
				return a->v[k].step;
	return JOB_NEVER;
}

static void push(candidate_list_t *out, unsigned thread, uint32_t x, uint32_t y, unsigned rank, uint64_t place)
{
	uint8_t t = (uint8_t)thread, o = (uint8_t)!thread;
	struct candidate c = { .segments = { { t, x }, { o, y }, { t, JOB_NEVER }, { o, JOB_NEVER } },
			       .nsegments = y == JOB_NEVER ? 3 : 4, .rank = rank, .place = place << 1 | thread };

	vec_push(out, c);
}

static bool holds_any(const struct access *at, const struct access *wants)
{
	for (unsigned k = 0; k < at->nheld; k++)
		if (keeps_out(at->held[k], wants->address))
			return true;
	return false;
}

/* One holds what the other will want, and the other way round. */
static void deadlocks(const struct accesses *a, const struct accesses *b, unsigned thread, candidate_list_t *out)
{
	for (unsigned i = 0; i < a->nlocks; i++)
		for (unsigned k = 0; k < b->nlocks; k++)
			if (!keeps_out(a->locks[i].address, b->locks[k].address) && holds_any(&a->locks[i], &b->locks[k]) &&
			    holds_any(&b->locks[k], &a->locks[i]))
				push(out, thread, a->locks[i].step, JOB_NEVER, 0, a->locks[i].pc);
}

/* Where b's call that holds this step ends: its next call begins there. */
static uint32_t call_end(const struct trace *t, const struct access *y)
{
	for (uint32_t i = 0; i < t->nevents; i++)
		if (t->events[i].kind == JOB_CALL && t->events[i].call > y->call && t->events[i].step > y->step)
			return t->events[i].step + 1;
	return JOB_NEVER;
}

static void one_way(const struct trace *tb, const struct accesses *a, const struct accesses *b, unsigned thread,
		    candidate_list_t *out)
{
	deadlocks(a, b, thread, out);
	uint32_t first = JOB_NEVER;
	int call = -1;
	for (unsigned i = 0; i < a->n; i++)
		for (unsigned k = 0; k < b->n && out->n < MOST_CANDIDATES; k++) {
			const struct access *x = &a->v[i], *y = &b->v[k];

			if (!conflict(x, y))
				continue;
			if (call != x->call)
				first = first_shared(a, x->call, b);
			call = x->call;
			uint32_t stop = stop_for(x, b, y);
			/* Before anything the other could see: that is a serial order. */
			bool second = first < stop;
			unsigned rank = y->kind == JOB_FREE ? 1 : x->kind == JOB_FREE ? 2 : changes(y) ? 3 : 5;
			if (second)
				push(out, thread, stop, call_end(tb, y), rank, x->pc);
			if (second || stop == x->step)
				push(out, thread, stop, y->step + 1, rank + (second ? 2 : 4),
				     (uint64_t)y->pc << 32 | x->pc);
		}
}

/*
 * Two decisions that both have to be late, as when two threads give up the last two references: the one stops before
 * any access that it shares, the other after any of its own.
 */
static void both_ways(const struct accesses *a, const struct accesses *b, unsigned thread, candidate_list_t *out)
{
	bool *shared = xcalloc(b->n + 1, sizeof *shared);

	for (unsigned k = 0; k < b->n; k++)
		for (unsigned i = 0; i < a->n && !shared[k]; i++)
			shared[k] = conflict(&a->v[i], &b->v[k]);
	for (unsigned i = 0; i < a->n; i++) {
		bool here = false;

		for (unsigned k = 0; k < b->n && !here; k++)
			here = conflict(&a->v[i], &b->v[k]);
		for (unsigned k = 0; k < b->n && here && out->n < MOST_CANDIDATES; k++)
			if (shared[k] && stop_for(&a->v[i], b, &b->v[k]) == a->v[i].step)
				push(out, thread, a->v[i].step, b->v[k].step + 1, 9,
				     (uint64_t)b->v[k].pc << 32 | a->v[i].pc);
	}
	free(shared);
}

static int by_rank(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->segments[0].until < b->segments[0].until ? -1 : a->segments[0].until > b->segments[0].until;
}

static int by_place(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;
	const struct job_segment *p = a->segments, *q = b->segments;

	if (p[0].thread != q[0].thread)
		return p[0].thread < q[0].thread ? -1 : 1;
	if (p[0].until != q[0].until)
		return p[0].until < q[0].until ? -1 : 1;
	if (p[1].until != q[1].until)
		return p[1].until < q[1].until ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The same stops are one candidate, with its best rank. */
static void unite(candidate_list_t *l)
{
	size_t n = 0;

	if (l->n > 1)
		qsort(l->v, l->n, sizeof *l->v, by_place);
	for (size_t i = 0; i < l->n; i++) {
		const struct job_segment *p = l->v[i].segments, *q = n ? l->v[n - 1].segments : NULL;

		if (!q || p[0].thread != q[0].thread || p[0].until != q[0].until || p[1].until != q[1].until)
			l->v[n++] = l->v[i];
	}
	l->n = n;
}

static int by_instruction(const void *x, const void *y)
{
	const struct candidate *a = *(const struct candidate *const *)x, *b = *(const struct candidate *const *)y;

	return a->place != b->place ? (a->place < b->place ? -1 : 1) : a < b ? -1 : a > b;
}

/* Of each decision the best one in front; what is the same decision in another round of a loop comes behind. */
static void fresh_first(candidate_list_t *l)
{
	const struct candidate **sorted = xcalloc(l->n + 1, sizeof *sorted);
	bool *again = xcalloc(l->n + 1, sizeof *again);
	candidate_list_t out = { 0 };

	for (size_t i = 0; i < l->n; i++)
		sorted[i] = &l->v[i];
	qsort(sorted, l->n, sizeof *sorted, by_instruction);
	for (size_t i = 1; i < l->n; i++)
		again[sorted[i] - l->v] = sorted[i]->place == sorted[i - 1]->place;
	for (unsigned late = 0; late < 2; late++)
		for (size_t i = 0; i < l->n; i++)
			if (again[i] == late)
				vec_push(&out, l->v[i]);
	free(sorted);
	free(again);
	vec_free(l);
	*l = out;
}

/* Of many of one rank an even selection: neighbours are alike. */
static void thin(candidate_list_t *l, unsigned most)
{
	candidate_list_t kept = { 0 };

	if (l->n <= most)
		return;
	fresh_first(l);
	for (unsigned i = 0; i < most; i++) {
		size_t half = most / 2, at = i < half ? i : half + (size_t)(i - half) * (l->n - half) / (most - half);

		vec_push(&kept, l->v[at]);
	}
	vec_free(l);
	*l = kept;
}

/* ---- more than two threads ---- */

#define STOPS 6          /* of each of three threads, so many of the best are combined ... */
#define STOPS_OF_MANY 3  /* ... and of each of more */
#define RUNS_WHOLE 2     /* rank of a thread that does not stop */

struct stop {
	uint32_t step;
	unsigned rank;
};
struct stops {
	struct stop v[STOPS];
	unsigned n, most;
};

/* Sorted by rank; the same step once. */
static void add_stop(struct stops *s, uint32_t step, unsigned rank)
{
	unsigned at = 0, from;

	for (from = 0; from < s->n && s->v[from].step != step; from++)
		;
	if (from < s->n && s->v[from].rank <= rank)
		return;
	if (from == s->n)
		s->n += s->n < s->most;
	while (at < s->n && at < from && s->v[at].rank <= rank)
		at++;
	if (at >= s->n)
		return;
	if (from >= s->n)
		from = s->n - 1;
	memmove(&s->v[at + 1], &s->v[at], (from - at) * sizeof *s->v);
	s->v[at] = (struct stop){ step, rank };
}

/* Where it would stop for any other thread, and where it waits for a lock while it holds one. */
static void find_stops(const struct trace *const *traces, unsigned n, unsigned i, struct stops *out)
{
	struct accesses own;

	add_stop(out, JOB_NEVER, RUNS_WHOLE);
	collect(traces[i], &own);
	for (unsigned k = 0; k < own.nlocks; k++)
		if (own.locks[k].nheld)
			add_stop(out, own.locks[k].step, 0);
	release(&own);
	for (unsigned k = 0; k < n; k++) {
		candidate_list_t list = { 0 };

		if (k == i)
			continue;
		trace_candidates(traces[i], traces[k], MANY, &list);
		for (size_t m = 0; m < list.n; m++)
			if (!list.v[m].segments[0].thread)
				add_stop(out, list.v[m].segments[0].until, list.v[m].rank);
		vec_free(&list);
	}
}

/*
 * The threads of `order` stop one after the other, all but the last one, which runs to its end; then those that stopped
 * go on, the last one first or the first one first.
 */
static void push_many(candidate_list_t *out, const unsigned *order, unsigned n, const struct stops *stops, const unsigned *at,
		      bool first_first)
{
	struct candidate c = { .nsegments = 0 };

	for (unsigned i = 0; i < n; i++) {
		const struct stop *s = i + 1 < n ? &stops[order[i]].v[at[i]] : NULL;

		c.segments[c.nsegments++] = (struct job_segment){ (uint8_t)order[i], s ? s->step : JOB_NEVER };
		c.rank += s ? s->rank : 0;
		c.place = c.place * 0x9e3779b97f4a7c15ull + order[i] + (s ? (uint64_t)s->step << 8 : 0);
	}
	for (unsigned i = 0; i + 1 < n; i++) {
		unsigned k = first_first ? i : n - 2 - i;

		if (stops[order[k]].v[at[k]].step != JOB_NEVER)
			c.segments[c.nsegments++] = (struct job_segment){ (uint8_t)order[k], JOB_NEVER };
	}
	/* One that stops first of all; of one that stopped there is only one way to go on. */
	if (c.segments[0].until != JOB_NEVER && (!first_first || c.nsegments > n + 1))
		vec_push(out, c);
}

static void combine_stops(const unsigned *order, unsigned n, const struct stops *stops, candidate_list_t *out)
{
	unsigned at[JOB_THREADS] = { 0 }, i;

	do {
		push_many(out, order, n, stops, at, false);
		push_many(out, order, n, stops, at, true);
		for (i = 0; i + 1 < n && ++at[i] == stops[order[i]].n; i++)
			at[i] = 0;
	} while (i + 1 < n && out->n < MOST_CANDIDATES);
}

/* Every order in which the threads may begin. */
static void permute(unsigned *order, unsigned from, unsigned n, const struct stops *stops, candidate_list_t *out)
{
	if (from == n) {
		combine_stops(order, n, stops, out);
		return;
	}
	for (unsigned i = from; i < n; i++) {
		unsigned x = order[from], y = order[i];

		order[from] = y;
		order[i] = x;
		permute(order, from + 1, n, stops, out);
		order[from] = x;
		order[i] = y;
	}
}

void lab_candidates(const struct trace *const *traces, unsigned n, unsigned most, candidate_list_t *out)
{
	struct stops stops[JOB_THREADS];
	unsigned order[JOB_THREADS];

	if (n <= 2) {
		trace_candidates(traces[0], traces[1], most, out);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		stops[i] = (struct stops){ .most = n == 3 ? STOPS : STOPS_OF_MANY };
		find_stops(traces, n, i, &stops[i]);
		order[i] = i;
	}
	permute(order, 0, n, stops, out);
	if (out->n > 1)
		qsort(out->v, out->n, sizeof *out->v, by_rank);
	thin(out, most);
}

void trace_candidates(const struct trace *a, const struct trace *b, unsigned most, candidate_list_t *out)
{
	struct accesses x, y;

	collect(a, &x);
	collect(b, &y);
	one_way(b, &x, &y, 0, out);
	one_way(a, &y, &x, 1, out);
	if (most > 1 && out->n < MANY) {
		both_ways(&x, &y, 0, out);
		both_ways(&y, &x, 1, out);
	}
	unite(out);
	if (out->n > 1)
		qsort(out->v, out->n, sizeof *out->v, by_rank);
	thin(out, most);
	release(&x);
	release(&y);
}
