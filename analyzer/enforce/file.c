/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The edges that matter, written so that the shim can enforce them on a live
 * program: which thread waits at which execution of which instruction for what.
 */
#include "analyzer/enforce/edges.h"
#include "analyzer/enforce/enforce.h"
#include "analyzer/enforce/internal.h"
#include "common/control_format.h"
#include "common/newfile.h"

#include <string.h>

#define MAX_HOLDS 64
#define MAX_EDGES 700 /* of the order in the window */
#define FORMS 3 /* of each alternate, see part_of() */
#define RETREATS 5 /* see retreat_of(), write_serial() and write_yielding() */

static bool end_of(const struct enforce *e, struct schedule *s, struct sched_ref r, bool source,
		   bool held, struct schedule_end *out)
{
	return schedule_end_in(e, s, e->extracted->trace, r, source, held, out);
}

/* Who is about to give a lock back has it: nobody else can take it, or give it back, first. */
static bool is_impossible(const struct sym_trace *t, struct sched_edge edge)
{
	const struct sym_event *before = order_event(t, edge.before), *after = order_event(t, edge.after);

	return after->op == SYM_UNLOCK && (before->op == SYM_LOCK || before->op == SYM_UNLOCK) &&
	       before->target == after->target;
}

/* held: the target waits behind its event, not before it. */
static void add_edge_in(const struct enforce *e, struct schedule *s, const struct sym_trace *t,
			struct sched_edge edge, bool held)
{
	struct schedule_edge out = { .id = (uint32_t)s->edges.n };

	if (!held && is_impossible(t, edge))
		return;
	if (s->edges.n == CTL_MAX_EDGES || !schedule_end_in(e, s, t, edge.before, true, false, &out.source))
		return;
	if (!schedule_end_in(e, s, t, edge.after, false, held, &out.target)) {
		schedule_end_free(&out.source);
		return;
	}
	vec_push(&s->edges, out);
}

static void add_edge(const struct enforce *e, struct schedule *s, struct sched_edge edge, bool held)
{
	add_edge_in(e, s, e->extracted->trace, edge, held);
}

/* Which of two who wait takes a wake-up first. */
static void add_wakes(const struct enforce *e, struct schedule *s, const struct sym_trace *t,
		      struct sched_edge edge)
{
	size_t before = s->edges.n;

	add_edge_in(e, s, t, edge, true);
	if (s->edges.n == before)
		return;
	struct schedule_edge *x = &s->edges.v[before];
	x->source.after = x->source.inside = x->target.again = x->target.after = false;
	x->source.woken = x->target.woken = true;
}

static bool is_usable(void *enforce, const struct sym_event *ev)
{
	const struct enforce *e = enforce;
	struct img_module *m = ev->pc ? img_module_at(e->images, ev->pc) : NULL;

	return ev->op == SYM_START || ev->op == SYM_EXIT || (m && !schedule_is_linker(m));
}

/*
 * What is enforced of an alternate: its order up to `until`, then the threads one at a
 * time. Of the pair that was turned round one event has to come later: `late`, unless its
 * index is SYM_NONE, is where its thread stops until all others have gone as far as they get.
 */
struct part {
	const struct sched_order *order;
	size_t until;
	struct sched_ref first, late;
};

/*
 * Where a thread stands that has no part in the window: behind the last thing it did before that, or at
 * its start when it had not begun. False: nothing it did is known.
 */
static bool stands_at(const struct enforce *e, struct schedule *s, uint32_t thread, struct schedule_end *out)
{
	const struct ext_result *r = e->extracted;

	if (!r->started[thread]) {
		*out = schedule_start_of(r->trace, thread);
		return true;
	}
	struct sym_trace *past = edges_past_trace(r);
	uint32_t n = (uint32_t)past->threads[thread].nevents;
	bool known = n && schedule_end_in(e, s, past, (struct sched_ref){ thread, n - 1 }, false, true, out);
	sym_trace_free(past);
	return known;
}

static void add_turn(const struct enforce *e, struct schedule *s, struct sched_ref r, bool held)
{
	struct schedule_end end;

	if (r.index != SYM_NONE && order_event(e->extracted->trace, r)->op != SYM_EXIT &&
	    s->turns.n < MAX_HOLDS && end_of(e, s, r, false, held, &end))
		vec_push(&s->turns, end);
}

/* Where a thread can stop: a failure that is avoided is never reached. */
static bool can_stop(void *enforce, const struct sym_event *ev)
{
	return ev->op != SYM_FAIL && is_usable(enforce, ev);
}

/* Its first event behind that part; index SYM_NONE: none. */
static struct sched_ref next_of(const struct enforce *e, const struct part *p, uint32_t thread)
{
	for (size_t i = p->until; i < p->order->n; i++) {
		struct sched_ref r = p->order->refs[i];

		if (r.thread == thread && can_stop((void *)e, order_event(e->extracted->trace, r)))
			return r;
	}
	return (struct sched_ref){ 0, SYM_NONE };
}

/*
 * Who failed goes on first. Main has begun before anything can be held: with nothing to its name yet it stops
 * before the first thing it does.
 */
static void add_turns(const struct enforce *e, struct schedule *s, const struct part *p)
{
	const struct sym_trace *t = e->extracted->trace;
	struct sched_ref *last = edges_last(t, p->order, p->until, can_stop, (void *)e);
	uint32_t failed = t->failure.thread < t->nthreads ? t->failure.thread : 0;

	for (uint32_t i = 0; i < t->nthreads; i++) {
		uint32_t thread = !i ? failed : i - 1 + (i > failed);

		if (p->late.index != SYM_NONE && p->late.thread == thread)
			continue;
		struct schedule_end end;

		if (last[thread].index != SYM_NONE)
			add_turn(e, s, last[thread], true);
		else if (!thread)
			add_turn(e, s, next_of(e, p, thread), false);
		else if (s->turns.n < MAX_HOLDS && stands_at(e, s, thread, &end))
			vec_push(&s->turns, end);
	}
	add_turn(e, s, p->late, false);
	free(last);
}

static void hold_where_it_stands(const struct enforce *e, struct schedule *s, struct sched_ref until,
				 uint32_t thread)
{
	struct schedule_edge out = { .id = (uint32_t)s->edges.n };

	/* Main has begun before anything can be held. */
	if (!thread || s->edges.n == CTL_MAX_EDGES || !end_of(e, s, until, true, false, &out.source))
		return;
	if (stands_at(e, s, thread, &out.target))
		vec_push(&s->edges, out);
	else
		schedule_end_free(&out.source);
}

static void hold_behind_call(const struct enforce *e, struct schedule *s, struct sched_ref until, const struct ext_call *c)
{
	struct schedule_end a = { 0 }, b = { 0 };
	bool a_told = end_of(e, s, until, true, false, &a), b_told = schedule_call_end(e, s, c, &b);

	schedule_push(s, a_told, a, b_told, b);
}

/* How much of the order happens up to the failure: what comes behind it must not happen. */
static size_t up_to_failure(const struct sym_trace *t, const struct sched_order *o)
{
	size_t i = 0;

	while (i < o->n && order_event(t, o->refs[i])->op != SYM_FAIL)
		i++;
	return i < o->n ? i + 1 : o->n;
}

/*
 * Who wants to write to a lock may keep out further readers while it still waits: they come when it does.
 * Nothing that was taken or given back tells of that.
 */
static void add_queue(const struct enforce *e, struct schedule *s)
{
	const struct sym_trace *t = e->extracted->trace;
	const struct sym_failure *f = &t->failure;

	for (size_t i = 0; i < f->nblocked * f->nblocked; i++) {
		struct sched_ref writer = { f->blocked[i / f->nblocked].thread, f->blocked[i / f->nblocked].event };
		struct sched_ref reader = { f->blocked[i % f->nblocked].thread, f->blocked[i % f->nblocked].event };
		struct schedule_end a = { 0 }, b = { 0 };

		if (order_event(t, writer)->op != SYM_LOCK || order_event(t, reader)->op != SYM_RDLOCK ||
		    order_event(t, writer)->target != order_event(t, reader)->target)
			continue;
		bool a_told = end_of(e, s, writer, true, false, &a), b_told = end_of(e, s, reader, false, false, &b);
		a.after = false;
		a.inside = true;
		schedule_push(s, a_told, a, b_told, b);
	}
}

/*
 * Where the other threads stop when a failing order is done: whatever they did
 * next came after the failure, so they wait for that; when it has no place, for the
 * last event before it. A deadlock needs nobody to stop, but those who wait to come in their order.
 */
static void add_holds(const struct enforce *e, struct schedule *s, const struct sched_order *o,
		      const struct ext_call **calls)
{
	const struct sym_trace *t = e->extracted->trace;
	uint32_t failed = t->failure.thread;

	if (t->failure.kind == SYM_FAIL_DEADLOCK)
		add_queue(e, s);
	if (t->failure.kind == SYM_FAIL_DEADLOCK || failed >= t->nthreads)
		return;
	struct sched_ref *last = edges_last(t, o, up_to_failure(t, o), is_usable, (void *)e);
	for (uint32_t i = 0; i < t->nthreads && last[failed].index != SYM_NONE; i++) {
		if (i == failed)
			continue;
		if (calls[i] && (last[i].index == SYM_NONE || calls[i]->next > last[i].index))
			hold_behind_call(e, s, last[failed], calls[i]);
		else if (last[i].index == SYM_NONE)
			hold_where_it_stands(e, s, last[failed], i);
		else if (order_event(t, last[i])->op != SYM_EXIT)
			add_edge(e, s, (struct sched_edge){ last[failed], last[i] }, true);
	}
	free(last);
}

/*
 * An alternate that takes another branch is exact only up to there: what is
 * kept of it ends with the pair it turns round.
 */
static size_t exact_part(const struct sched_alternate *x)
{
	const struct sched_order *o = &x->order;

	for (size_t i = o->n; x->path_differs && i > 0; i--) {
		struct sched_ref r = o->refs[i - 1];

		if ((r.thread == x->inverted.before.thread && r.index == x->inverted.before.index) ||
		    (r.thread == x->inverted.after.thread && r.index == x->inverted.after.index))
			return i;
	}
	return o->n;
}

/* The pair, as the alternate has it: one first, the other late. */
static struct part late_part(const struct sym_trace *t, const struct sched_alternate *x)
{
	struct part p = { &x->order, 0, x->inverted.before, x->inverted.after };
	size_t a = edges_place(p.order, p.first), b = edges_place(p.order, p.late);

	if (b < a)
		p = (struct part){ &x->order, 0, x->inverted.after, x->inverted.before };
	p.until = a < b ? b : a;
	p.late = edges_outside(t, p.order, p.late, a < b ? a : b);
	return p;
}

/*
 * How a run goes on behind an alternate is not part of the explanation, and what is best
 * depends on the program: a thread may be in the middle of something when the order
 * ends, or doomed by what comes behind the pair, or by going on though it just woke the others. These
 * ways are offered; the real program shows.
 */
static struct part part_of(const struct sym_trace *t, const struct sched_alternate *x,
			   unsigned form)
{
	if (form || x->inverted.before.index == SYM_NONE)
		return (struct part){ &x->order, exact_part(x), { 0, SYM_NONE }, { 0, SYM_NONE } };
	return late_part(t, x);
}

static err_t finish(const struct enforce *e, struct schedule *s, FILE *f)
{
	const char *process = trc_identity(e->t, "process");
	err_t bad = NULL;

	if (process && *process)
		s->process = xstrdup(process);
	if (s->edges.n || s->turns.n)
		schedule_write(s, f);
	else
		bad = err_new(ERR_NOANSWER, e->answer->deterministic ?
			      "the failure does not depend on the order of events on the ways that the threads took: there "
			      "is no order to enforce" :
			      "no edge of the root cause has a place in the program where a thread could wait");
	schedule_free(s);
	return bad;
}

static void add_all(const struct enforce *e, struct schedule *s, const struct sym_trace *t, struct edges *edges)
{
	for (size_t i = 0; i < edges->v.n; i++)
		add_edge_in(e, s, t, edges->v.v[i], false);
	for (size_t i = 0; i < edges->wakes.n; i++)
		add_wakes(e, s, t, edges->wakes.v[i]);
	vec_free(&edges->v);
	vec_free(&edges->wakes);
}

static void add_edges(const struct enforce *e, struct schedule *s, const struct sched_order *o,
		      size_t until)
{
	struct edges edges = { 0 };

	edges_that_matter(e->extracted->trace, e->answer, e->dsp, o, until, MAX_EDGES, &edges);
	add_all(e, s, e->extracted->trace, &edges);
}

#define SYSCALL_LEN 2

/*
 * A handler begins where its thread happens to be when the signal comes: the sender waits until that
 * one has come there, and it stays there until the signal has been sent.
 */
static void add_interrupt(const struct enforce *e, struct schedule *s, const struct ext_interrupt *x)
{
	const struct sym_trace *t = e->extracted->trace;
	const char *sender = t->threads[x->sender].id, *receiver = t->threads[x->receiver].id;
	struct sched_ref last = { x->receiver, x->next - 1 };
	struct schedule_end a = { 0 }, b = { 0 };
	bool a_told, b_told;

	a_told = schedule_end_at(e, s, sender, x->sent_pc + SYSCALL_LEN, x->sent_n, &a);
	if (x->call_pc)
		b_told = schedule_end_at(e, s, receiver, x->call_pc + SYSCALL_LEN, x->call_n, &b);
	else
		b_told = x->next && end_of(e, s, last, false, true, &b);
	schedule_push(s, a_told, a, b_told, b);
	if (!x->next)
		return;
	a_told = end_of(e, s, last, true, false, &a);
	b_told = schedule_end_at(e, s, sender, x->sent_pc, x->sent_n, &b);
	schedule_push(s, a_told, a, b_told, b);
}

static void add_interrupts(const struct enforce *e, struct schedule *s, const struct sched_order *o, size_t until)
{
	const struct ext_result *r = e->extracted;

	for (size_t i = 0; i < r->interrupts.n; i++) {
		const struct ext_interrupt *x = &r->interrupts.v[i];

		if (x->next < r->trace->threads[x->receiver].nevents &&
		    edges_place(o, (struct sched_ref){ x->receiver, x->next }) < until)
			add_interrupt(e, s, x);
	}
}

/* What led to where the window begins. A part of it would be worse than nothing. */
static bool add_past(const struct enforce *e, struct schedule *s, const struct sched_order *o, size_t until)
{
	struct edges edges = { 0 };
	struct sym_trace *t = edges_of_past(e->extracted, o, until, &edges);
	bool fits = edges.v.n && edges.v.n + edges.wakes.n + MAX_EDGES + MAX_HOLDS < CTL_MAX_EDGES;

	if (!fits || !s)
		edges.v.n = edges.wakes.n = 0;
	add_all(e, s, t, &edges);
	sym_trace_free(t);
	return fits;
}

static bool has_past(const struct enforce *e, const struct sched_order *o, size_t until)
{
	return add_past(e, NULL, o, until);
}

static err_t no_such_way(struct schedule *s)
{
	schedule_free(s);
	return err_new(ERR_NOANSWER, "there is no such way to enforce the order");
}

static int by_step(const void *x, const void *y, void *trace)
{
	const struct sym_event *a = order_event(trace, *(const struct sched_ref *)x);
	const struct sym_event *b = order_event(trace, *(const struct sched_ref *)y);

	return a->step < b->step ? -1 : a->step > b->step;
}

/*
 * The failing order as the machine followed the recorded one. Events may have been moved since then that have nothing to do with
 * each other, but for what their threads did to files in between.
 */
static struct sched_order as_recorded(struct sym_trace *t, const struct sched_order *failing)
{
	struct sched_order o = { .refs = xcalloc(failing->n + 1, sizeof *o.refs), .n = failing->n, .fails = failing->fails };

	if (o.n)
		memcpy(o.refs, failing->refs, o.n * sizeof *o.refs);
	qsort_r(o.refs, o.n, sizeof *o.refs, by_step, t);
	return o;
}

static err_t write_failing(const struct enforce *e, struct schedule *s, const struct sched_order *o, bool past,
			   bool calls, FILE *f)
{
	size_t until = up_to_failure(e->extracted->trace, o);
	const struct ext_call **last = xcalloc(e->extracted->trace->nthreads + 1, sizeof *last);

	if (past)
		add_past(e, s, o, until);
	add_edges(e, s, o, until);
	add_interrupts(e, s, o, until);
	if (calls)
		schedule_calls(e, s, o, until, last);
	add_holds(e, s, o, last);
	free(last);
	return finish(e, s, f);
}

/*
 * With what led to where the window begins and what the threads did to files, and, should that fail, without.
 */
err_t enforce_write_failing(const struct enforce *e, unsigned way, FILE *f)
{
	const struct sched_answer *a = e->answer;
	struct schedule s = { 0 };

	if (!a || !a->found || way >= ENFORCE_FAILING_WAYS)
		return err_new(ERR_NOANSWER, "there is no failing schedule to write");
	schedule_meetings(e, &s);
	if (s.edges.n)
		return way ? no_such_way(&s) : finish(e, &s, f);
	struct sched_order recorded = as_recorded(e->extracted->trace, &a->failing);
	bool past = has_past(e, &a->failing, up_to_failure(e->extracted->trace, &a->failing));
	bool calls = schedule_calls(e, NULL, &recorded, up_to_failure(e->extracted->trace, &recorded), NULL);
	err_t bad = way && !past && !calls ? no_such_way(&s) :
		    write_failing(e, &s, !way && calls ? &recorded : &a->failing, !way && past, !way && calls, f);
	free(recorded.refs);
	return bad;
}

/* The first event of the failing order that is shown: there the trouble begins. */
static size_t first_shown(const struct enforce *e)
{
	const struct sched_order *o = &e->answer->failing;
	const struct dsp_side *side = e->dsp ? &e->dsp->side[DSP_FAILING] : NULL;
	size_t first = up_to_failure(e->extracted->trace, o);

	for (size_t i = 0; i < e->answer->ncause; i++) {
		size_t place = edges_place(o, e->answer->cause[i].before);

		first = place < first ? place : first;
	}
	for (size_t i = 0; side && i < side->nevents; i++) {
		size_t place = edges_place(o, side->events[i].ref);

		first = place < first ? place : first;
	}
	return first;
}

/*
 * An alternate turns one pair round, but other threads may be as deep in the same trouble by
 * then (two more have looked and found nothing), and none of its ways helps. So the failing order is also
 * left before its cause begins, and earlier and earlier: from there the threads go one at a time.
 */
static struct part retreat_of(const struct enforce *e, unsigned retreat)
{
	size_t first = first_shown(e);

	return (struct part){ &e->answer->failing, retreat + 3 < RETREATS ? first >> retreat : 0,
			      { 0, SYM_NONE }, { 0, SYM_NONE } };
}

/*
 * Where the explanation begins in the middle of the run, the same bug may strike before that: nothing orders
 * the races there. At last the threads go one at a time from their very beginning.
 */
static err_t write_serial(const struct enforce *e, struct schedule *s, FILE *f)
{
	const struct sym_trace *t = e->extracted->trace;
	bool began = false;

	for (uint32_t i = 1; i < t->nthreads && s->turns.n < MAX_HOLDS; i++) {
		began |= e->extracted->started[i];
		vec_push(&s->turns, schedule_start_of(t, i));
	}
	return began ? finish(e, s, f) : no_such_way(s);
}

/*
 * In all of these a thread goes on as far as it gets, and who is the first to go on, main above all, may come to the
 * failure just by being early. So, last of all: who makes or wakes another one lets it go first.
 */
static err_t write_yielding(const struct enforce *e, struct schedule *s, FILE *f)
{
	const struct sym_trace *t = e->extracted->trace;
	const struct part all = { &e->answer->failing, 0, { 0, SYM_NONE }, { 0, SYM_NONE } };

	if (t->nthreads)
		add_turn(e, s, next_of(e, &all, 0), false);
	s->yields = true;
	return s->turns.n ? finish(e, s, f) : no_such_way(s);
}

err_t enforce_write_alternate(const struct enforce *e, unsigned way, FILE *f)
{
	const struct sched_answer *a = e->answer;
	struct schedule s = { 0 };
	struct part p;

	if (a && a->deterministic)
		return finish(e, &s, f);
	if (!a || !a->found || way >= ENFORCE_PASSING_WAYS)
		return err_new(ERR_NOANSWER, "there is no alternate schedule to write");
	if (way + RETREATS < ENFORCE_PASSING_WAYS) {
		if (way / FORMS >= a->nalternates)
			return err_new(ERR_NOANSWER, "there is no such alternate to write");
		p = part_of(e->extracted->trace, &a->alternates[way / FORMS], way % FORMS);
		s.yields = way % FORMS == FORMS - 1;
	} else {
		s.retreats = true;
		if (way + 1 == ENFORCE_PASSING_WAYS)
			return write_yielding(e, &s, f);
		if (way + 2 == ENFORCE_PASSING_WAYS)
			return write_serial(e, &s, f);
		p = retreat_of(e, way + RETREATS - ENFORCE_PASSING_WAYS);
	}
	add_past(e, &s, p.order, p.until);
	add_edges(e, &s, p.order, p.until);
	add_interrupts(e, &s, p.order, p.until);
	if (p.late.index != SYM_NONE)
		add_edge(e, &s, (struct sched_edge){ p.first, p.late }, false);
	add_turns(e, &s, &p);
	return finish(e, &s, f);
}

char *enforce_file_name(const char *trace, bool alternate, unsigned way)
{
	const char *name = alternate ? "alternate" : "failing";

	if (way)
		return xasprintf("%s/%s-%u.schedule", trace, name, way + 1);
	return xasprintf("%s/%s.schedule", trace, name);
}

struct kept {
	const struct enforce *e;
	bool alternate;
	unsigned way;
};

static err_t write_kept(FILE *f, void *kept)
{
	struct kept *k = kept;

	return k->alternate ? enforce_write_alternate(k->e, k->way, f) : enforce_write_failing(k->e, k->way, f);
}

/* Where there is no such way, what stands under its name is of an earlier explanation. */
static void keep_schedule(const struct enforce *e, const char *trace, bool alternate, unsigned way)
{
	char *name = enforce_file_name(trace, alternate, way);
	err_t bad = newfile_write(name, NEWFILE_DERIVED, 0666, write_kept, &(struct kept){ e, alternate, way });

	if (bad && bad->code == ERR_NOANSWER)
		newfile_remove(name);
	err_free(bad);
	free(name);
}

void enforce_keep_files(const struct enforce *e, const char *trace)
{
	for (unsigned way = 0; way < ENFORCE_FAILING_WAYS; way++)
		keep_schedule(e, trace, false, way);
	for (unsigned way = 0; way < ENFORCE_PASSING_WAYS; way++)
		keep_schedule(e, trace, true, way);
}
