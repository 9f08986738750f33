/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyzer/enforce/edges_internal.h"

#include <string.h>

static int by_object(const void *x, const void *y)
{
	const struct order_held *a = x, *b = y;

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	return a->since < b->since ? -1 : a->since > b->since;
}

static void look_at_thread(const struct sym_thread *th, struct edges_thread *out)
{
	for (uint32_t i = 0; i < th->nevents; i++) {
		out->permits |= th->events[i].op == SYM_SEMWAIT;
		if (th->events[i].op == SYM_UNLOCK)
			vec_push(&out->released, (struct order_held){ th->events[i].target, i });
	}
	if (out->released.n)
		qsort(out->released.v, out->released.n, sizeof *out->released.v, by_object);
}

void edges_begin(struct edges_work *w)
{
	w->vars = xcalloc(w->t->nvars + 1, sizeof *w->vars);
	w->locks = xcalloc(w->t->nobjects + 1, sizeof *w->locks);
	w->threads = xcalloc(w->t->nthreads, sizeof *w->threads);
	for (size_t i = 0; i < w->t->nthreads; i++)
		look_at_thread(&w->t->threads[i], &w->threads[i]);

	const struct sched_order upto = { .refs = w->order->refs, .n = w->until };

	w->places = order_places_of(w->t, &upto);
	w->place = w->places.at;
	/* Acquisitions that block for ever are in no order: they come last. */
	for (size_t i = 0; w->order->fails && i < w->t->failure.nblocked; i++) {
		size_t *at = &w->place[w->t->failure.blocked[i].thread][w->t->failure.blocked[i].event];

		*at = *at == ORDER_NOWHERE ? w->until : *at;
	}
}

/* ---- locks ---- */

static const struct edges_thread *thread_before(struct edges_work *w, struct sched_ref r)
{
	struct edges_thread *th = &w->threads[r.thread];

	if (r.index < th->upto)
		th->upto = 0, th->held.n = 0;
	for (; th->upto < r.index; th->upto++)
		order_pass(w->t, r.thread, th->upto, &th->held);
	return th;
}

/* Does r lie in a section of the lock that keeps others out, be they readers? */
static bool keeps_out(const struct sym_trace *t, struct sched_ref r, uint32_t object, bool readers)
{
	order_held_locks h = { 0 };
	bool found = false, out = false;

	order_sections(t, r, &h);
	for (size_t i = 0; i < h.n && !found; i++) {
		found = h.v[i].object == object;
		out = found && (!readers || !order_is_for_reading(t, r.thread, &h.v[i]));
	}
	vec_free(&h);
	return out;
}

/* What is given back there was taken for reading. */
static bool was_shared(const struct sym_thread *th, struct order_held release)
{
	for (uint32_t i = release.since; i-- > 0;)
		if (th->events[i].target == release.object && order_acquires(&th->events[i]))
			return order_shared(&th->events[i]);
	return false;
}

/*
 * The last time thread gives `object` back before this place of the order, or SYM_NONE; of what is taken for reading
 * only when nobody else may be inside: readers do not keep each other out.
 */
static uint32_t last_release(const struct edges_work *w, uint32_t thread, uint32_t object, size_t place,
			     bool among_readers)
{
	const struct edges_thread *th = &w->threads[thread];
	size_t lo = 0, hi = th->released.n;

	/* The first that comes too late, or is of a later object. */
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct order_held *r = &th->released.v[mid];

		if (r->object < object || (r->object == object && w->place[thread][r->since] < place))
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo > 0 && th->released.v[lo - 1].object == object; lo--)
		if (!among_readers || !was_shared(&w->t->threads[thread], th->released.v[lo - 1]))
			return th->released.v[lo - 1].since;
	return SYM_NONE;
}

/* ---- collecting ---- */

void edges_push(struct edges_work *w, struct sched_ref before, struct sched_ref after)
{
	size_t a = edges_place_of(w, before), b = edges_place_of(w, after);

	if (before.thread == after.thread || a == SIZE_MAX || b == SIZE_MAX || a >= b)
		return;
	for (size_t i = 0; i < w->out->v.n; i++) {
		const struct sched_edge *e = &w->out->v.v[i];

		if (e->before.thread == before.thread && e->after.thread == after.thread &&
		    e->before.index >= before.index && e->after.index <= after.index)
			return; /* implied */
	}
	vec_push(&w->out->v, (struct sched_edge){ before, after });
}

/*
 * A thread that waits in a section holds what others may need to come to
 * the event it waits for. So whoever was in a section of the same lock before
 * must have left it before this one is entered; and an edge between two
 * sections of one lock is that, no more. True: the edge is such a one.
 */
static bool keep_sections(struct edges_work *w, struct sched_ref before, struct order_held h, uint32_t thread)
{
	struct sched_ref enter = { thread, h.since };
	bool hoisted = false, reads = order_shared(order_event(w->t, enter));

	for (uint32_t i = 0; i < w->t->nthreads; i++) {
		struct sched_ref leave = { i, last_release(w, i, h.object, edges_place_of(w, enter), reads) };

		if (i == thread)
			continue;
		/* In an alternate the thread that failed inside gets out; there is no record of that. */
		if (i == before.thread && (leave.index == SYM_NONE || leave.index < before.index) &&
		    keeps_out(w->t, before, h.object, reads))
			leave = before;
		if (leave.index == SYM_NONE)
			continue;
		edges_push(w, leave, enter);
		hoisted |= i == before.thread && leave.index >= before.index;
	}
	return hoisted;
}

/*
 * A thread that waits with a permit of a semaphore in its hands may keep others from coming to what
 * it waits for. When it got the permit behind `place` it can as well wait in front of that.
 */
static struct sched_ref outside_permits(const struct edges_work *w, struct sched_ref r, size_t place)
{
	const struct sym_thread *th = &w->t->threads[r.thread];

	for (uint32_t i = 0; i < r.index && w->threads[r.thread].permits; i++) {
		bool kept = th->events[i].op == SYM_SEMWAIT && th->events[i].result &&
			    w->place[r.thread][i] != SIZE_MAX &&
			    w->place[r.thread][i] > place;

		for (uint32_t k = i + 1; k < r.index && kept; k++)
			kept = th->events[k].op != SYM_SEMPOST ||
			       th->events[k].target != th->events[i].target;
		if (kept)
			return (struct sched_ref){ r.thread, i };
	}
	return r;
}

static void add(struct edges_work *w, struct sched_ref before, struct sched_ref after)
{
	after = outside_permits(w, after, edges_place_of(w, before));
	const struct edges_thread *th = thread_before(w, after);
	bool hoisted = false;

	for (size_t i = 0; i < th->held.n; i++)
		hoisted |= keep_sections(w, before, th->held.v[i], after.thread);
	if (!hoisted)
		edges_push(w, before, after);
}

static void note_read(struct access *x, struct sched_ref r)
{
	for (size_t i = 0; i < x->reads.n; i++)
		if (x->reads.v[i].thread == r.thread) {
			x->reads.v[i] = r;
			return;
		}
	vec_push(&x->reads, r);
}

static void access(struct edges_work *w, struct sched_ref r)
{
	const struct sym_event *e = order_event(w->t, r);
	bool reads = e->op == SYM_READ || e->op == SYM_RMW;
	bool writes = e->op == SYM_WRITE || (e->op == SYM_RMW && e->value != EXPR_NONE);

	if ((!reads && !writes) || e->target >= w->t->nvars || !w->vars[e->target].relevant)
		return;
	struct access *x = &w->vars[e->target];
	if (x->written && (reads || !x->reads.n))
		add(w, x->write, r);
	for (size_t i = 0; writes && i < x->reads.n; i++)
		add(w, x->reads.v[i], r);
	if (writes) {
		x->written = true;
		x->write = r;
		x->reads.n = 0;
	} else {
		note_read(x, r);
	}
}

/*
 * Who comes last to a barrier is told so, and may be the one to do what has to be done once.
 * When the first one leaves, those that have arrived are the round.
 */
void edges_barrier(struct edges_work *w, struct sched_ref r)
{
	const struct sym_event *e = order_event(w->t, r);
	size_t kept = 0, n = w->arrived.n;

	if (e->op == SYM_BARRIER_ENTER)
		vec_push(&w->arrived, r);
	if (e->op != SYM_BARRIER_LEAVE || e->link == SYM_NONE)
		return;
	struct sched_ref enter = { r.thread, e->link }, last = enter;
	bool closes = false;
	for (size_t i = 0; i < n; i++) {
		struct sched_ref x = w->arrived.v[i];

		closes |= x.thread == enter.thread && x.index == enter.index;
		if (order_event(w->t, x)->target == e->target)
			last = x;
	}
	for (size_t i = 0; i < n && closes; i++) {
		struct sched_ref x = w->arrived.v[i];

		if (order_event(w->t, x)->target == e->target)
			edges_push(w, x, last);
		else
			w->arrived.v[kept++] = x;
	}
	if (closes)
		w->arrived.n = kept;
}

/* A deadlock can come early: who has its locks before whom is a part of the order. */
static void section(struct edges_work *w, struct sched_ref r)
{
	const struct sym_event *e = order_event(w->t, r);
	struct lock *l = order_acquires(e) || e->op == SYM_UNLOCK ? &w->locks[e->target] : NULL;

	if (!l || !l->relevant)
		return;
	if (e->op == SYM_UNLOCK) {
		l->released = true;
		l->release = r;
	} else if (l->released) {
		edges_push(w, l->release, r);
	}
}

static void mark_locks(struct edges_work *w)
{
	const struct sym_failure *f = &w->t->failure;

	for (size_t i = 0; f->kind == SYM_FAIL_DEADLOCK && i < f->nblocked; i++) {
		const struct sym_event *e = &w->t->threads[f->blocked[i].thread].events[f->blocked[i].event];

		if (e->op == SYM_LOCK || e->op == SYM_RDLOCK)
			w->locks[e->target].relevant = true;
	}
}

static void mark(struct edges_work *w, struct sched_ref r)
{
	const struct sym_event *e = order_event(w->t, r);

	if ((order_is_access(e)) && e->target < w->t->nvars)
		w->vars[e->target].relevant = true;
}

static void note_symbol(void *needed, uint64_t symbol)
{
	((bool *)needed)[symbol] = true;
}

struct question {
	const bool *needed;
	bool yes;
};

static void ask(void *question, uint64_t symbol)
{
	struct question *q = question;

	q->yes |= q->needed[symbol];
}

/*
 * Those of the cause, and in a deadlock everybody who has to come to where it waits for ever. Without a cause it fails
 * on these ways whatever the order: all of them have to be taken.
 */
static bool matters(const struct sym_trace *t, const struct sched_answer *a, uint32_t thread)
{
	bool yes = thread == t->failure.thread || !a->ncause;

	for (size_t i = 0; i < a->ncause; i++)
		yes |= a->cause[i].before.thread == thread || a->cause[i].after.thread == thread;
	for (size_t i = 0; i < t->failure.nblocked; i++)
		yes |= t->failure.blocked[i].thread == thread;
	return yes;
}

/* Everything the threads that matter branched on: they must come the same way. */
static void note_paths(struct edges_work *w, const struct sched_answer *a, bool *needed)
{
	const struct sym_trace *t = w->t;

	for (uint32_t i = 0; i < t->nthreads; i++) {
		if (!matters(t, a, i))
			continue;
		for (size_t k = 0; k < t->threads[i].nconds; k++)
			expr_symbols(t->pool, t->threads[i].conds[k].cond, note_symbol, needed);
	}
}

static bool reads_needed(const struct sym_trace *t, const struct sym_event *e, const bool *needed)
{
	struct question q = { needed, false };

	if ((e->op == SYM_READ || e->op == SYM_RMW) && e->symbol != EXPR_NONE)
		expr_symbols(t->pool, e->symbol, ask, &q);
	return q.yes;
}

/* One step back: variables whose values are needed, and what was written to them. */
static bool mark_step(struct edges_work *w, bool *needed, bool *followed)
{
	const struct sym_trace *t = w->t;
	bool more = false;

	for (uint32_t i = 0; i < t->nthreads; i++)
		for (uint32_t k = 0; k < t->threads[i].nevents; k++)
			if (reads_needed(t, &t->threads[i].events[k], needed))
				mark(w, (struct sched_ref){ i, k });
	for (uint32_t i = 0; i < t->nthreads; i++)
		for (uint32_t k = 0; k < t->threads[i].nevents; k++) {
			const struct sym_event *e = &t->threads[i].events[k];

			if ((e->op != SYM_WRITE && e->op != SYM_RMW) || e->value == EXPR_NONE ||
			    e->target >= t->nvars || !w->vars[e->target].relevant || followed[e->target])
				continue;
			expr_symbols(t->pool, e->value, note_symbol, needed);
			more = true;
		}
	for (size_t i = 0; i < t->nvars; i++)
		followed[i] = w->vars[i].relevant;
	return more;
}

/* What the failure and the way there are computed from has a say in every order. */
static void mark_conditions(struct edges_work *w, const struct sched_answer *a)
{
	const struct sym_trace *t = w->t;
	bool *needed = xcalloc(expr_symbol_count(t->pool) + 1, sizeof *needed);
	bool *followed = xcalloc(t->nvars + 1, sizeof *followed);

	if (t->failure.condition != EXPR_NONE)
		expr_symbols(t->pool, t->failure.condition, note_symbol, needed);
	note_paths(w, a, needed);
	while (mark_step(w, needed, followed))
		;
	free(followed);
	free(needed);
}

static void mark_variables(struct edges_work *w, const struct sched_answer *a, const struct dsp *d)
{
	for (size_t i = 0; i < a->ncause; i++) {
		mark(w, a->cause[i].before);
		mark(w, a->cause[i].after);
	}
	for (int side = 0; d && side < DSP_SIDES; side++)
		for (size_t i = 0; i < d->side[side].nevents; i++)
			mark(w, d->side[side].events[i].ref);
	mark_conditions(w, a);
}

static void add_cause(struct edges_work *w, const struct sched_answer *a)
{
	for (size_t i = 0; i < a->ncause; i++) {
		struct sched_edge e = a->cause[i];

		if (edges_place_of(w, e.after) < edges_place_of(w, e.before))
			e = (struct sched_edge){ e.after, e.before };
		add(w, e.before, e.after);
	}
}

/* Who blocks for ever comes when what it wants is taken. */
static void add_waits(struct edges_work *w, const struct dsp *d)
{
	for (size_t i = 0; d && w->order->fails && i < d->nwaits; i++)
		add(w, d->waits[i].holds, d->waits[i].wants);
}

/* The first time thread takes `object` behind this place of the order, or SYM_NONE. */
static uint32_t next_acquisition(const struct edges_work *w, uint32_t thread, uint32_t object, size_t place)
{
	const struct sym_thread *th = &w->t->threads[thread];

	for (uint32_t i = 0; i < th->nevents; i++)
		if (order_acquires(&th->events[i]) && th->events[i].target == object &&
		    w->place[thread][i] != SIZE_MAX && w->place[thread][i] > place)
			return i;
	return SYM_NONE;
}

/*
 * Who passes its failure inside a section does more there than was recorded. Whoever enters a
 * section of that lock behind it must not come first, though no recorded access tells.
 */
static void add_passed(struct edges_work *w)
{
	const struct sym_trace *t = w->t;
	struct sched_ref last = { t->failure.thread, SYM_NONE };
	order_held_locks h = { 0 };

	if (w->order->fails || last.thread >= t->nthreads)
		return;
	for (uint32_t i = 0; i < t->threads[last.thread].nevents; i++)
		if (w->place[last.thread][i] != SIZE_MAX && t->threads[last.thread].events[i].op != SYM_FAIL)
			last.index = i;
	if (last.index == SYM_NONE)
		return;
	order_sections(t, (struct sched_ref){ last.thread, last.index + 1 }, &h);
	for (size_t i = 0; i < h.n; i++)
		for (uint32_t k = 0; k < t->nthreads; k++) {
			uint32_t enter = k == last.thread ? SYM_NONE :
				next_acquisition(w, k, h.v[i].object, edges_place_of(w, last));

			if (enter != SYM_NONE)
				edges_push(w, last, (struct sched_ref){ k, enter });
		}
	vec_free(&h);
}

void edges_end(struct edges_work *w)
{
	for (size_t i = 0; i < w->t->nvars; i++)
		vec_free(&w->vars[i].reads);
	for (size_t i = 0; i < w->t->nthreads; i++) {
		vec_free(&w->threads[i].released);
		vec_free(&w->threads[i].held);
	}
	order_places_free(&w->places);
	vec_free(&w->arrived);
	free(w->vars);
	free(w->locks);
	free(w->threads);
}

/* A macro, because every vector is a type of its own. */
#define keep_last(list, most) \
	do { \
		size_t most_ = (most), extra_ = (list)->n > most_ ? (list)->n - most_ : 0; \
		if (extra_) \
			memmove((list)->v, (list)->v + extra_, \
				((list)->n - extra_) * sizeof *(list)->v); \
		(list)->n -= extra_; \
	} while (0)

void edges_that_matter(const struct sym_trace *t, const struct sched_answer *a, const struct dsp *d,
		       const struct sched_order *order, size_t until, size_t max, struct edges *out)
{
	struct edges_work w = { .t = t, .order = order, .until = until < order->n ? until : order->n,
			  .out = out };

	edges_begin(&w);
	mark_locks(&w);
	mark_variables(&w, a, d);
	add_cause(&w, a);
	add_waits(&w, d);
	add_passed(&w);
	for (size_t i = 0; i < w.until; i++) {
		access(&w, order->refs[i]);
		section(&w, order->refs[i]);
		edges_barrier(&w, order->refs[i]);
	}
	edges_wakes(&w);
	edges_reduce(&w);
	keep_last(&out->wakes, max / 3);
	keep_last(&out->v, max - out->wakes.n);
	edges_end(&w);
}

void edges_around(const struct sym_trace *t, const struct sched_order *order, uint32_t before, struct sched_ref r,
		  struct edges *out)
{
	struct edges_work w = { .t = t, .order = order, .until = order->n, .out = out };
	order_held_locks h = { 0 };

	order_sections(t, r, &h);
	if (h.n) {
		edges_begin(&w);
		for (size_t i = 0; i < h.n; i++)
			keep_sections(&w, (struct sched_ref){ before, 0 }, h.v[i], r.thread);
		edges_end(&w);
	}
	vec_free(&h);
}

struct sched_ref *edges_last(const struct sym_trace *t, const struct sched_order *order,
			     size_t until, edges_usable_fn usable, void *arg)
{
	struct sched_ref *last = xcalloc(t->nthreads + 1, sizeof *last);

	for (size_t i = 0; i < t->nthreads; i++)
		last[i].index = SYM_NONE;
	for (size_t i = 0; i < order->n && i < until; i++) {
		const struct sym_event *e = order_event(t, order->refs[i]);

		if ((e->op != SYM_FAIL || e->pc) && usable(arg, e))
			last[order->refs[i].thread] = order->refs[i];
	}
	return last;
}

size_t edges_place(const struct sched_order *order, struct sched_ref r)
{
	size_t i = 0;

	while (i < order->n && (order->refs[i].thread != r.thread || order->refs[i].index != r.index))
		i++;
	return i;
}

struct sched_ref edges_outside(const struct sym_trace *t, const struct sched_order *order,
			       struct sched_ref r, size_t place)
{
	order_held_locks h = { 0 };

	order_sections(t, r, &h);
	for (size_t i = 0; i < h.n; i++) {
		struct sched_ref enter = { r.thread, h.v[i].since };

		if (edges_place(order, enter) > place) {
			r = enter;
			break;
		}
	}
	vec_free(&h);
	return r;
}
