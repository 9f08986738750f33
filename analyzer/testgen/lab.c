/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Running tests in the server's children, and judging how they end. */
#include "analyzer/testgen/heap_guard.h"
#include "analyzer/testgen/lab_internal.h"

#include "analyzer/hunt/child.h"

#include <signal.h>
#include <string.h>

#define TRACE_MS 3000        /* of stepping alone: it never ends */
#define SERIAL_MS 2000       /* calls of a test take microseconds */
#define CONCURRENT_MS 4000
#define MOST_CANDIDATES 96   /* interleavings of one test */
#define MOST_LINEARISATIONS 1000
#define AGAIN 2              /* a failing interleaving is executed so often again */

bool lab_expired(const struct lab *lab)
{
	return lab->deadline > 0 && child_now() > lab->deadline;
}

/* ---- traces ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 1099511628211ull;
	return h ^ h >> 31;
}

/* Definition 2 of AutoConTest, for the last call: accesses by place, locks, functions. */
static uint64_t coverage_of(const struct job_event *e, uint32_t n)
{
	uint64_t h = 14695981039346656037ull;
	uint32_t from = 0;

	for (uint32_t i = 0; i < n; i++)
		if (e[i].kind == JOB_CALL)
			from = i;
	for (uint32_t i = from; i < n; i++)
		if (e[i].kind != JOB_ALLOC)
			h = mix(h, (uint64_t)e[i].kind << 32 | (e[i].kind == JOB_ENTER || e[i].kind == JOB_CALL ? e[i].address : e[i].pc));
	return h;
}

err_t lab_trace(struct lab *lab, const struct test *t, enum job_part part, struct trace *out)
{
	struct job *j = lab->server.job;

	*out = (struct trace){ .end = JOB_NOT_RUN };
	if (!test_load(lab->api, t, j))
		return NULL;
	j->mode = JOB_TRACE;
	j->traced = (uint8_t)part;
	j->want_state = true;
	j->object_size = lab->pools.object >= 0 ? lab->api->objects.v[lab->pools.object].size : 0;
	j->limit_ms = TRACE_MS;
	double began = child_now();
	TRY(server_run(&lab->server));
	lab->trace_seconds += child_now() - began;
	lab->traces++;
	const struct job_thread *th = &j->thread[part - JOB_A];
	out->end = j->end;
	out->status = j->status;
	out->failed_call = j->failed_call;
	out->nsteps = th->nsteps;
	out->nevents = th->nevents;
	out->truncated = th->overflow;
	out->events = xmalloc((th->nevents + 1) * sizeof *out->events);
	memcpy(out->events, th->events, th->nevents * sizeof *out->events);
	out->hash = coverage_of(out->events, out->nevents);
	out->state = j->state;
	for (uint32_t i = 0; i < th->nevents && j->object_call >= 0; i++)
		out->frees_object |= th->events[i].kind == JOB_FREE &&
				     th->events[i].address == (uint64_t)j->results[j->object_call];
	return NULL;
}

void trace_free(struct trace *t)
{
	free(t->events);
	*t = (struct trace){ 0 };
}

/* ---- failures ---- */

static bool in_library(const struct job *j, uint64_t pc)
{
	return pc >= j->text_start && pc < j->text_end;
}

void failure_of(const struct job *j, struct failure *out)
{
	*out = (struct failure){ .end = j->end, .status = j->status, .thread = j->failed_thread,
				 .address = j->fault_address, .misuse = j->misuse };
	out->outside = j->end == JOB_SIGNAL && !in_library(j, j->fault_pc);
	/* Frames above the first are return addresses: the call is the byte before. */
	for (unsigned i = 0; i < j->nframes; i++)
		if (in_library(j, j->frames[i] - (i != 0)))
			out->frames[out->nframes++] = j->frames[i] - j->bias - (i != 0);
	if (j->end == JOB_DEADLOCK)
		for (unsigned i = 0; i < JOB_THREADS; i++) {
			int32_t call = j->thread[i].in_call;

			if (call >= 0 && call < JOB_CALLS)
				out->calls[i] = j->calls[call].offset;
			out->waits[i] = j->waits_pc[i] ? j->waits_pc[i] - j->bias : 0;
			if (out->waits[i])
				out->frames[out->nframes++] = out->waits[i];
		}
	out->said = j->said[0] ? xstrdup(j->said) : NULL;
}

void failure_free(struct failure *f)
{
	free(f->said);
	f->said = NULL;
}

uint64_t failure_print(const struct failure *f)
{
	uint64_t h = mix(mix(14695981039346656037ull, f->end), (uint64_t)f->status), x = 0;

	if (f->end == JOB_DEADLOCK)
		/* Any thread may be any. */
		return mix(h, f->waits[0] + f->waits[1] + f->waits[2] + f->waits[3]);
	for (unsigned i = 0; i < f->nframes && i < 2; i++)
		x = mix(x, f->frames[i]);
	return mix(h, x);
}

const char *failure_kind(const struct failure *f)
{
	switch (f->end) {
	case JOB_DEADLOCK: return "deadlock";
	case JOB_HANG: return "hang";
	case JOB_EXIT: return "exit";
	case JOB_DONE: return "data race"; /* lab_find_race() */
	case JOB_SIGNAL: break;
	default: return "none";
	}
	return f->misuse == HEAP_FREED ? "use-after-free" : f->misuse == HEAP_OVERRUN ? "overrun" :
	       f->status == SIGABRT ? "abort" : f->status == SIGSEGV || f->status == SIGBUS ? "crash" :
	       f->status == SIGFPE ? "arithmetic" : "signal";
}

void violation_free(struct violation *v)
{
	failure_free(&v->failure);
	free(v->file);
	free(v->schedule);
	free(v->report);
}

/* ---- the oracle ---- */

struct ending {
	uint64_t results, state;
};
typedef VEC(struct ending) endings_t;

struct orders {
	endings_t endings; /* when they are asked for */
	unsigned first[JOB_THREADS], count[JOB_THREADS], done[JOB_THREADS];
	uint8_t order[JOB_CALLS];
	unsigned n, executed;
	bool fails;
};

static void ask_ending(const struct lab *lab, struct job *j)
{
	j->want_state = lab->ends;
	j->object_size = lab->ends && lab->pools.object >= 0 ? lab->api->objects.v[lab->pools.object].size : 0;
}

static err_t run_order(struct lab *lab, const struct test *t, struct orders *o, bool one_thread, bool *fails)
{
	struct job *j = lab->server.job;

	test_load(lab->api, t, j);
	j->mode = JOB_SERIAL;
	j->one_thread = one_thread;
	j->norder = o->n;
	memcpy(j->order, o->order, o->n);
	j->limit_ms = SERIAL_MS;
	ask_ending(lab, j);
	TRY(server_run(&lab->server));
	lab->serials++;
	*fails |= j->end != JOB_DONE;
	if (lab->ends)
		vec_push(&o->endings, ((struct ending){ j->results_hash, j->state }));
	return NULL;
}

/* Each order in one thread, as the paper has it, and with each thread's calls in a thread of its own. */
static err_t orders_from(struct lab *lab, const struct test *t, struct orders *o)
{
	if (o->fails || o->executed >= MOST_LINEARISATIONS)
		return NULL;
	if (!memcmp(o->done, o->count, sizeof o->done)) {
		o->executed++;
		TRY(run_order(lab, t, o, false, &o->fails));
		return o->fails ? NULL : run_order(lab, t, o, true, &o->fails);
	}
	for (unsigned i = 0; i < JOB_THREADS; i++) {
		if (o->done[i] == o->count[i])
			continue;
		o->order[o->n++] = (uint8_t)(o->first[i] + o->done[i]++);
		err_t e = orders_from(lab, t, o);
		o->n--;
		o->done[i]--;
		if (e)
			return e;
	}
	return NULL;
}

static struct orders orders_of(const struct test *t)
{
	struct orders o = { .n = 0 };

	for (unsigned i = 0; i < JOB_THREADS; i++) {
		o.first[i] = test_first(t, JOB_A + i);
		o.count[i] = t->part[i].n;
	}
	return o;
}

err_t lab_linearise(struct lab *lab, const struct test *t, unsigned *n, bool *fails)
{
	struct orders o = orders_of(t);
	err_t e = orders_from(lab, t, &o);

	*n = o.executed;
	/* Not all of them were executed: then nothing is known. */
	*fails = o.fails || o.executed >= MOST_LINEARISATIONS;
	return e;
}

/* ---- interleavings ---- */

err_t lab_run(struct lab *lab, const struct test *t, const struct candidate *c, bool fast)
{
	struct job *j = lab->server.job;

	test_load(lab->api, t, j);
	j->mode = JOB_CONCURRENT;
	j->nsegments = c->nsegments;
	memcpy(j->segments, c->segments, c->nsegments * sizeof *c->segments);
	j->fast = fast;
	j->limit_ms = CONCURRENT_MS;
	ask_ending(lab, j);
	lab->runs++;
	return server_run(&lab->server);
}

static uint32_t place_at(const struct job_thread *t, uint32_t step)
{
	return t->pcs[step] & JOB_PLACE_MASK;
}

static enum job_class class_at(const struct job_thread *t, uint32_t step)
{
	return (enum job_class)(t->pcs[step] >> JOB_CLASS_SHIFT);
}

static struct lab_place place_of(const struct job_thread *t, unsigned thread, uint32_t step, bool after)
{
	struct lab_place p = { .thread = thread, .offset = place_at(t, step), .after = after };

	for (uint32_t i = 0; i <= step; i++)
		p.n += place_at(t, i) == p.offset;
	return p;
}

#define LONGEST_CALL_INSN 7

/* The latest place whose end means that everything before `step` has been done. */
static bool place_before(const struct job_thread *t, unsigned thread, uint32_t step, struct lab_place *out)
{
	while (step--) {
		enum job_class c = class_at(t, step);

		uint32_t next = step + 1 < t->nsteps ? place_at(t, step + 1) : t->stopped;

		/* Behind a call: the call that returns to where the next step is, or would have been. */
		if ((c == JOB_RETURNS || c == JOB_BRANCHES) && next)
			for (uint32_t k = step + 1; k-- > 0;) {
				uint32_t length = next - place_at(t, k);

				if (class_at(t, k) == JOB_CALLS_OUT && length >= 2 && length <= LONGEST_CALL_INSN) {
					*out = place_of(t, thread, k, true);
					return true;
				}
			}
		if (c == JOB_PLAIN) {
			*out = place_of(t, thread, step, true);
			return true;
		}
	}
	return false;
}

/* Where a thread stands that waits inside a call: before that call. */
static bool place_of_last_call(const struct job_thread *t, unsigned thread, struct lab_place *out)
{
	for (uint32_t k = t->nsteps; k-- > 0;)
		if (class_at(t, k) == JOB_CALLS_OUT) {
			*out = place_of(t, thread, k, false);
			return true;
		}
	return false;
}

/* Where a thread goes on from this step, or would have gone on from where it was stopped. */
static bool place_to_stop(const struct job_thread *t, unsigned thread, uint32_t step, struct lab_place *out)
{
	if (step < t->nsteps) {
		*out = place_of(t, thread, step, false);
		return true;
	}
	*out = (struct lab_place){ .thread = thread, .offset = t->stopped, .n = 1 };
	for (uint32_t i = 0; i < t->nsteps; i++)
		out->n += place_at(t, i) == t->stopped;
	return t->stopped != 0;
}

/*
 * The orderings that make the segments happen: where one ends and the next begins, what comes there waits
 * for what came before it.
 */
void lab_make_edges(const struct job *j, struct violation *v)
{
	uint32_t at[JOB_THREADS] = { 0 };
	const struct lab_place *failed = NULL; /* who has failed goes no further, nor does anybody else */

	for (unsigned i = 0; i + 1 < v->nsegments; i++) {
		const struct job_segment *s = &v->segments[i], *next = &v->segments[i + 1];
		const struct job_thread *from = &j->thread[s->thread], *to = &j->thread[next->thread];
		struct lab_edge e = { 0 };
		uint32_t until = s->until < from->nsteps ? s->until : from->nsteps;
		bool cut = s->until == JOB_NEVER && from->blocked;

		at[s->thread] = until;
		if (next->thread == s->thread || !place_to_stop(to, next->thread, at[next->thread], &e.target))
			continue;
		if (failed)
			e.source = *failed;
		else if (s->until == JOB_NEVER && v->failure.thread == s->thread + 1u && from->nsteps)
			/* It fails there: the others stay where they are. */
			e.source = (struct lab_place){ s->thread, place_at(from, from->nsteps - 1), JOB_NEVER, true };
		else if (!(cut ? place_of_last_call(from, s->thread, &e.source) :
			    place_before(from, s->thread, until, &e.source)))
			continue;
		v->edges[v->nedges++] = e;
		if (e.source.n == JOB_NEVER)
			failed = &v->edges[v->nedges - 1].source;
	}
}

static bool has_failed(const struct job *j)
{
	return j->end == JOB_SIGNAL || j->end == JOB_DEADLOCK || j->end == JOB_HANG;
}

/* *serial: some order of whole calls fails as well. */
static err_t judge(struct lab *lab, const struct test *t, const struct candidate *c, lab_wanted *wanted, void *arg,
		   bool *found, bool *serial, struct violation *out)
{
	struct job *j = lab->server.job;
	struct violation v = { .test = *t, .nsegments = c->nsegments, .guarded = lab->server.guard };
	bool fails = false;

	*serial = false;
	memcpy(v.segments, c->segments, c->nsegments * sizeof *c->segments);
	/* Until now it was fast; its orderings come from all of its steps. */
	TRY(lab_run(lab, t, c, false));
	if (!has_failed(j))
		return NULL;
	failure_of(j, &v.failure);
	lab_make_edges(j, &v);
	uint64_t print = failure_print(&v.failure);
	if (wanted && !wanted(arg, &v.failure)) {
		failure_free(&v.failure);
		return NULL;
	}
	for (unsigned i = 0; i < AGAIN; i++) {
		struct failure again;

		TRY(lab_run(lab, t, c, false));
		failure_of(j, &again);
		bool same = failure_print(&again) == print;
		failure_free(&again);
		if (!same) {
			failure_free(&v.failure);
			return NULL;
		}
	}
	if (!lab->no_oracle)
		TRY(lab_linearise(lab, t, &v.linearisations, &fails));
	*serial = fails;
	if (fails) {
		failure_free(&v.failure);
		return NULL;
	}
	*out = v;
	*found = true;
	return NULL;
}

/* The test with calls behind it that look at what the threads have left. */
static struct test looking_at(const struct lab *lab, const struct test *t, bool *looks)
{
	struct test more = *t;

	more.post.n = 0;
	*looks = lab->looks.n && seq_append(&more.post, &lab->looks) && seq_append(&more.post, &t->post);
	return *looks ? more : *t;
}

err_t lab_explore(struct lab *lab, const struct test *t, const struct trace *const *traces,
		  lab_wanted *wanted, void *arg, bool *found, struct violation *out)
{
	candidate_list_t list = { 0 };
	bool looks, serial = false;
	struct test more = looking_at(lab, t, &looks);
	err_t e = NULL;

	*found = false;
	for (size_t i = 0; lab->solved && i < lab->solved->n; i++)
		vec_push(&list, lab->solved->v[i]);
	size_t solved = list.n;
	candidate_list_t others = { 0 };
	lab_candidates(traces, test_threads(t), MOST_CANDIDATES, &others);
	for (size_t i = 0; i < others.n; i++)
		vec_push(&list, others.v[i]);
	vec_free(&others);
	for (size_t i = 0; !e && !*found && i < list.n && !lab_expired(lab); i++) {
		e = lab_run(lab, looks ? &more : t, &list.v[i], true);
		if (e || !has_failed(lab->server.job))
			continue;
		e = judge(lab, t, &list.v[i], wanted, arg, found, &serial, out);
		if (!e && !*found && looks)
			e = judge(lab, &more, &list.v[i], wanted, arg, found, &serial, out);
		if (!e && *found)
			out->solved = i < solved;
		/* They fail whatever came before. */
		looks &= !serial;
	}
	vec_free(&list);
	return e;
}

/* ---- endings ---- */

static err_t endings_of(struct lab *lab, const struct test *t, endings_t *out, unsigned *n, bool *known)
{
	struct orders o = orders_of(t);
	err_t e = orders_from(lab, t, &o);

	*out = o.endings;
	*n = o.executed;
	*known = !o.fails && o.executed < MOST_LINEARISATIONS;
	return e;
}

static bool is_among(const endings_t *l, struct ending e, bool state)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].results == e.results && (!state || l->v[i].state == e.state))
			return true;
	return false;
}

static bool leaves_marks(const struct trace *t, const struct seq *s)
{
	for (uint32_t k = 0; k < t->nevents; k++)
		if (t->events[k].kind == JOB_SHARED_LOCK || t->events[k].kind == JOB_ALLOC || t->events[k].kind == JOB_FREE)
			return true;
	for (unsigned i = 0; i < s->n; i++)
		for (unsigned k = 0; k < s->calls[i].nargs; k++)
			if (s->calls[i].args[k].kind == SEQ_STRING)
				return true;
	return t->truncated;
}

/*
 * The words of read-write locks and the unused bytes of fresh memory show what came when, though nothing depends on
 * it. Nor does a state count that is another one when the same order runs in one thread instead of two.
 */
static bool state_counts(const struct trace *const *traces, const struct test *t, const endings_t *l)
{
	for (size_t i = 0; i + 1 < l->n; i += 2)
		if (l->v[i].state != l->v[i + 1].state)
			return false;
	for (unsigned i = 0; i < test_threads(t); i++)
		if (leaves_marks(traces[i], &t->part[i]))
			return false;
	return true;
}

/* What changes from run to run, like a clock, says nothing: both sides have to end the same way again. */
static err_t confirm_ending(struct lab *lab, const struct test *t, const struct candidate *c, struct ending first,
			    const endings_t *before, bool *found, struct violation *out)
{
	struct job *j = lab->server.job;
	struct violation v = { .test = *t, .nsegments = c->nsegments };
	endings_t after = { 0 };
	bool known;

	memcpy(v.segments, c->segments, c->nsegments * sizeof *c->segments);
	for (unsigned i = 0; i <= AGAIN; i++) {
		TRY(lab_run(lab, t, c, false));
		if (j->end != JOB_DONE || j->results_hash != first.results || j->state != first.state)
			return NULL;
	}
	v.failure.end = JOB_DONE;
	lab_make_edges(j, &v);
	memcpy(v.results, j->results, sizeof v.results);
	err_t e = endings_of(lab, t, &after, &v.linearisations, &known);
	*found = !e && known && after.n == before->n &&
		 !memcmp(after.v, before->v, after.n * sizeof *after.v);
	v.odd_state = is_among(before, first, false);
	vec_free(&after);
	if (*found)
		*out = v;
	return e;
}

err_t lab_compare(struct lab *lab, const struct test *given, const struct trace *const *traces, bool *found,
		  struct violation *out)
{
	const struct job *j = lab->server.job;
	candidate_list_t list = { 0 };
	endings_t endings = { 0 };
	struct test t = *given;
	unsigned n;
	bool known, state;

	*found = false;
	t.post.n = 0; /* the object is looked at */
	lab->ends = true;
	err_t e = endings_of(lab, &t, &endings, &n, &known);
	state = state_counts(traces, &t, &endings);
	if (!e && known)
		lab_candidates(traces, test_threads(&t), MOST_CANDIDATES, &list);
	for (size_t i = 0; !e && !*found && i < list.n && !lab_expired(lab); i++) {
		e = lab_run(lab, &t, &list.v[i], true);
		struct ending end = { j->results_hash, j->state };
		if (!e && j->end == JOB_DONE && !is_among(&endings, end, state))
			e = confirm_ending(lab, &t, &list.v[i], end, &endings, found, out);
	}
	lab->ends = false;
	vec_free(&list);
	vec_free(&endings);
	return e;
}
