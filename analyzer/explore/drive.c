/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The loop: an order is chosen, executed, and what it showed is taken in. */
#include "analyzer/explore/drive.h"

#include "common/log.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define MAX_TRACES 20000u
#define PCT_DEPTH 3u
#define STOP_EVERY 65536u /* patterns told: some ten milliseconds */

const char *const xpl_reason_name[XPL_REASONS] = {
	[XPL_BY_ORDER] = "order", [XPL_BY_LOCKS] = "locks", [XPL_BY_DATA] = "values", [XPL_BY_WRITES] = "writes",
};

double xpl_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void xpl_drive_new(struct xpl_drive *d, const struct xpl_drive_options *o, const struct xpl_executor *exec)
{
	*d = (struct xpl_drive){ .o = o, .exec = exec, .began = xpl_now(), .random = o->seed * 2 + 1 };
	d->closure = xpl_closure_new();
}

void xpl_drive_free(struct xpl_drive *d)
{
	for (size_t i = 0; i < d->traces.n; i++)
		xpl_trace_free(d->traces.v[i]);
	vec_free(&d->traces);
	vec_free(&d->known);
	vec_free(&d->over_time);
	vec_free(&d->failures);
	vec_free(&d->failing_traces);
	free(d->table);
	xpl_cores_free(&d->cores);
	free(d->left_why);
	xpl_closure_free(d->closure);
}

struct xpl_known *xpl_known_at(struct xpl_drive *d, uint64_t key)
{
	if (2 * (d->known.n + 1) > d->table_cap) {
		free(d->table);
		d->table_cap = d->table_cap ? 2 * d->table_cap : 1024;
		d->table = xcalloc(d->table_cap, sizeof *d->table);
		for (size_t i = 0; i < d->known.n; i++) {
			size_t k = d->known.v[i].key & (d->table_cap - 1);

			while (d->table[k])
				k = (k + 1) & (d->table_cap - 1);
			d->table[k] = (uint32_t)i + 1;
		}
	}
	size_t k = key & (d->table_cap - 1);
	while (d->table[k] && d->known.v[d->table[k] - 1].key != key)
		k = (k + 1) & (d->table_cap - 1);
	if (!d->table[k]) {
		vec_push(&d->known, (struct xpl_known){ .key = key });
		d->table[k] = (uint32_t)d->known.n;
	}
	return &d->known.v[d->table[k] - 1];
}

bool xpl_is_mine(const struct xpl_drive *d, uint64_t part)
{
	return d->o->shards < 2 || xpl_mix(part, 1) % d->o->shards == d->o->shard;
}

bool xpl_drive_over(struct xpl_drive *d)
{
	if (d->stopped || d->over)
		return true;
	if ((d->o->max_schedules && d->schedules >= d->o->max_schedules) ||
	    (d->o->deadline > 0 && xpl_now() >= d->o->deadline) || d->traces.n >= MAX_TRACES)
		d->over = true;
	return d->over;
}

bool xpl_drive_stops(void *arg)
{
	struct xpl_drive *d = arg;

	if (d->o->deadline > 0 && xpl_now() >= d->o->deadline)
		d->over = d->late = true;
	else if (d->o->progress && d->o->progress(d->o->arg))
		d->stopped = d->late = true;
	return d->late;
}

/* A thread that has seen the same does the same. */
const struct xpl_event *xpl_drive_next(const struct xpl_drive *d, const struct xpl_trace *t, uint32_t thread)
{
	uint32_t n = (uint32_t)t->threads[thread].events.n;

	for (size_t i = 0; i < d->traces.n; i++) {
		const struct xpl_trace *o = d->traces.v[i];

		if (o == t || thread >= o->nthreads || o->threads[thread].events.n <= n)
			continue;
		if (!n || xpl_at(o, thread, n - 1)->history == xpl_at(t, thread, n - 1)->history)
			return xpl_at(o, thread, n);
	}
	return NULL;
}

/* ---- what an execution showed ---- */

struct taking {
	struct xpl_drive *d;
	uint32_t trace;
	const struct xpl_trace *t;
};

static uint64_t address_of(const struct xpl_trace *t, uint32_t event)
{
	const struct xpl_event *e = &t->events.v[event];

	return t->vars.v[e->target].word + (uint64_t)__builtin_ctzll(e->mask) / 8;
}

static void take_one(void *arg, const struct xpl_pattern *p)
{
	struct taking *t = arg;
	struct xpl_known *k = xpl_known_at(t->d, p->key);

	if (!k->kind) {
		k->kind = p->kind;
		k->n = p->n;
		memcpy(k->places, p->places, sizeof k->places);
		k->trace = XPL_NONE;
	}
	if (!k->met) {
		k->met = true;
		k->vars[0] = address_of(t->t, p->steps[0]);
		k->vars[1] = p->n == 4 ? address_of(t->t, p->steps[xpl_kinds[p->kind].vars[1] == 'y' ? 1 : 2]) : 0;
	}
	/* What another program could not show this one may. */
	if (k->status == XPL_INFEASIBLE)
		k->status = XPL_OPEN;
	if (k->status == XPL_COVERED)
		return;
	if (p->rule == XPL_RULE_COVERED) {
		k->status = XPL_COVERED;
		t->d->covered++;
		return;
	}
	if (p->rule)
		return;
	/* Of several instances in one trace the most promising. */
	if (k->trace == t->trace && k->wanted && k->score >= p->score)
		return;
	k->trace = t->trace;
	k->score = p->score;
	memcpy(k->steps, p->steps, sizeof k->steps);
	k->wanted = true;
}

static bool take_pattern(void *arg, const struct xpl_pattern *p)
{
	struct xpl_drive *d = ((struct taking *)arg)->d;

	take_one(arg, p);
	return !(++d->told % STOP_EVERY) && xpl_drive_stops(d);
}

static void take_in(struct xpl_drive *d, struct xpl_trace *t, uint32_t number)
{
	struct taking taking = { d, number, t };
	double by_kind[XPL_KINDS + 1], estimate;

	if (!xpl_patterns(t, take_pattern, &taking, d->filtered) && !d->late)
		d->cut = true;
	d->cut |= t->cut;
	d->timed |= t->timed;
	estimate = xpl_patterns_estimate(t, by_kind);
	if (estimate > d->estimate) {
		d->estimate = estimate;
		memcpy(d->estimate_by_kind, by_kind, sizeof by_kind);
	}
	vec_push(&d->over_time, (struct xpl_point){ xpl_now() - d->began, d->schedules, d->covered });
}

static enum xpl_bad bad_of(const struct xpl_drive *d, const struct xpl_seen *s)
{
	switch (s->tried.end) {
	case MACH_TRIED_FAILED:
		return XPL_BAD_FAILED;
	case MACH_TRIED_STUCK:
		return XPL_BAD_DEADLOCK;
	case MACH_TRIED_ENDLESS:
		return d->o->endless ? XPL_FINE : XPL_BAD_ENDLESS;
	case MACH_TRIED_EXIT:
		if (d->o->bad_exit && d->o->bad_exit(d->o->arg, s->tried.status))
			return XPL_BAD_EXIT;
		return d->o->differs && d->o->differs(d->o->arg, s) ? XPL_BAD_DIFFERS : XPL_FINE;
	default:
		return XPL_FINE;
	}
}

void xpl_drive_found(struct xpl_drive *d)
{
	if (d->first_found)
		return;
	d->first_found = true;
	d->first_schedules = d->schedules;
	d->first_constraints = d->constraints;
	d->first_seconds = xpl_now() - d->began;
}

/* False: one like it did. */
static bool note_failing(struct xpl_drive *d, const struct xpl_seen *s)
{
	uint32_t fails = s->tried.end == MACH_TRIED_FAILED ? s->tried.thread : XPL_NONE;
	uint64_t print = s->trace ? xpl_trace_print(s->trace, fails, NULL) : 0;

	for (size_t i = 0; i < d->failures.n; i++)
		if (d->failures.v[i] == print)
			return false;
	if (s->trace)
		vec_push(&d->failures, print);
	return s->trace != NULL;
}

bool xpl_drive_varied(struct xpl_drive *d, const struct xpl_seen *seen)
{
	enum xpl_bad bad = bad_of(d, seen);
	bool stop = false;

	d->schedules++;
	/* Whether an end without an end is a failure the real program says, and that takes long. */
	if (!bad || bad == XPL_BAD_ENDLESS)
		return false;
	d->failing++;
	if (!note_failing(d, seen))
		return false;
	if (d->o->failed)
		d->o->failed(d->o->arg, seen, bad, &stop);
	return true;
}

static void failed(struct xpl_drive *d, const struct xpl_seen *s, enum xpl_bad bad)
{
	bool stop = !d->o->keep_going;

	d->failing++;
	note_failing(d, s);
	if (d->o->failed && !d->o->failed(d->o->arg, s, bad, &stop)) {
		/* It may have ended later. */
		if (bad == XPL_BAD_ENDLESS) {
			d->left++;
			d->unknown_left = true;
			if (!d->left_why && s->tried.why)
				d->left_why = xstrdup(s->tried.why);
		}
		return;
	}
	xpl_drive_found(d);
	d->stopped |= stop;
}

/* Did the execution show the value it was to show? Memory that it does not share is not in its trace: seen->showed. */
static bool shows(const struct xpl_trace *t, const struct xpl_event *e)
{
	for (size_t i = 0; i < t->events.n; i++) {
		const struct xpl_event *x = &t->events.v[i];

		if (x->thread == e->thread && x->place == e->place && x->nth == e->nth &&
		    x->inside == e->inside && x->op == e->op)
			return x->value == e->value && x->result == e->result;
	}
	return false;
}

/*
 * The thread cannot do that there: it waits in the kernel until somebody writes the word that it waits for, which the trace knows.
 * (A lock of the C library's own says nothing: who has it may let it go without an event.)
 */
static bool is_blocked(const struct xpl_seen *s, const struct xpl_event *e)
{
	if (!s->tried.blocked_at || !s->trace || s->trace->cut || !xpl_is_access(e))
		return false;
	for (size_t i = 0; i < s->trace->vars.n; i++)
		if (s->trace->vars.v[i].word == (s->tried.blocked_at & ~7ull) &&
		    s->trace->vars.v[i].mask & 0xffffffffull << (s->tried.blocked_at & 7) * 8)
			return true;
	return false;
}

static void log_order(const struct xpl_drive *d, const struct xpl_seen *seen, size_t n, bool missed)
{
	if (!log_wants(LOG_EXPLORE, 1))
		return;
	log_line(LOG_EXPLORE, 1, "order %" PRIu64 ": %zu of %zu steps, %" PRIu64 " instructions, %s", d->schedules,
		 seen->tried.steps, n, seen->tried.insns, seen->tried.why ? seen->tried.why : "no end is known");
	if (missed)
		log_line(LOG_EXPLORE, 1, "  did not show thread %" PRIu32 " at %#" PRIx64 " (%" PRIu64 ". time, operation %u) "
			 "seeing %#" PRIx64, d->expect->thread, d->expect->pc, d->expect->nth, d->expect->op,
			 xpl_is_access(d->expect) ? d->expect->value : (uint64_t)d->expect->result);
	for (size_t i = 0; seen->trace && log_wants(LOG_EXPLORE, 2) && i < seen->trace->events.n; i++) {
		const struct xpl_event *e = &seen->trace->events.v[i];

		log_line(LOG_EXPLORE, 2, "  thread %" PRIu32 " operation %u of %" PRIu32 " at %#" PRIx64 " (%" PRIu64 ". time): %#"
			 PRIx64 ", %#" PRIx64 ", %d", e->thread, e->op, e->target, e->pc, e->nth, e->value, e->wvalue, e->result);
	}
}

void xpl_drive_take(struct xpl_drive *d, struct xpl_seen *seen, size_t n, uint32_t *number)
{
	*number = XPL_NONE;
	d->schedules++;
	enum xpl_bad bad = bad_of(d, seen);
	/* A failure ends an order where it comes. */
	d->not_enforced += seen->tried.steps < n && !bad;
	if (seen->tried.end == MACH_TRIED_LEFT) {
		d->left++;
		d->unknown_left = true;
		if (!d->left_why && seen->tried.why)
			d->left_why = xstrdup(seen->tried.why);
	}
	/* What it hides stays unknown when it did not show what it was to show. */
	bool missed = d->expect && !seen->showed && !(seen->trace && shows(seen->trace, d->expect)) && !is_blocked(seen, d->expect);
	d->missed += missed;
	log_order(d, seen, n, missed);
	if (!seen->trace) {
		d->unknown_left = true;
	} else if (xpl_closure_same(d->closure, seen->trace)) {
		d->repeated++;
		/* The order may be another: it can still show other patterns. */
		take_in(d, seen->trace, XPL_NONE - 1);
	} else {
		vec_push(&d->traces, seen->trace);
		*number = (uint32_t)d->traces.n - 1;
		xpl_closure_add(d->closure, seen->trace);
		take_in(d, seen->trace, *number);
	}
	if (bad)
		failed(d, seen, bad);
	if (bad && *number != XPL_NONE)
		vec_push(&d->failing_traces, *number);
	if (*number != XPL_NONE)
		seen->trace = NULL; /* it is kept */
	xpl_seen_free(seen);
	if (d->o->progress && d->o->progress(d->o->arg))
		d->stopped = true;
}

err_t xpl_drive_try(struct xpl_drive *d, struct mach_step *steps, size_t n, uint32_t *number)
{
	const struct xpl_order order = { .steps = steps, .n = n };
	struct xpl_seen seen = { 0 };

	TRY(d->exec->run(d->exec->arg, &order, &seen));
	xpl_drive_take(d, &seen, n, number);
	return NULL;
}

size_t xpl_drive_room(const struct xpl_drive *d)
{
	uint64_t most = d->exec->width ? d->exec->width : 1;

	if (d->o->max_schedules && d->o->max_schedules - d->schedules < most)
		most = d->o->max_schedules - d->schedules;
	return most ? most : 1;
}

static err_t run_all(struct xpl_drive *d, const xpl_orders *orders, struct xpl_seen *seen)
{
	if (orders->n > 1 && d->exec->run_all)
		return d->exec->run_all(d->exec->arg, orders->v, orders->n, seen);
	for (size_t i = 0; i < orders->n; i++) {
		d->expect = orders->v[i].expects ? &orders->v[i].expect : NULL;
		TRY(d->exec->run(d->exec->arg, &orders->v[i], &seen[i]));
	}
	return NULL;
}

/* One for a pattern that did not show it was not enforced, unless that is known already. */
static void take_order(struct xpl_drive *d, const struct xpl_order *o, struct xpl_seen *seen)
{
	uint64_t counted = d->not_enforced + d->failing;
	uint32_t number;

	d->expect = o->expects ? &o->expect : NULL;
	/* How the thread goes on was the question. */
	if (o->onward && seen->tried.gave_up) {
		d->unknown_left = true;
		d->left++;
		if (!d->left_why)
			d->left_why = xstrdup("a thread goes on for longer than is looked at");
	}
	xpl_drive_take(d, seen, o->n - o->onward, &number);
	d->expect = NULL;
	if (o->key && d->not_enforced + d->failing == counted && xpl_known_at(d, o->key)->status != XPL_COVERED)
		d->not_enforced++;
}

err_t xpl_drive_try_all(struct xpl_drive *d, xpl_orders *orders)
{
	struct xpl_seen *seen = xcalloc(orders->n + 1, sizeof *seen);
	err_t e = run_all(d, orders, seen);

	d->expect = NULL;
	for (size_t i = 0; i < orders->n; i++) {
		/* Behind a failure that ends the work nothing is counted any more. */
		if (e || d->stopped)
			xpl_seen_free(&seen[i]);
		else
			take_order(d, &orders->v[i], &seen[i]);
		free(orders->v[i].steps);
	}
	free(seen);
	vec_free(orders);
	return e;
}

static struct mach_step step_of(const struct xpl_event *e)
{
	return (struct mach_step){ e->thread, e->place, e->inside, e->nth };
}

void xpl_steps_of(const struct xpl_trace *t, const struct xpl_path *p, struct mach_step **steps, size_t *n)
{
	const struct xpl_event **last = xcalloc(t->nthreads + 1, sizeof *last);

	*steps = xmalloc((p->events.n + t->nthreads + 1) * sizeof **steps);
	*n = 0;
	for (size_t i = 0; i < p->events.n; i++) {
		const struct xpl_event *e = &t->events.v[p->events.v[i]];

		last[e->thread] = e;
		/* Threads begin when others wait for them; what libc does has no place of its own. */
		if (e->place)
			(*steps)[(*n)++] = step_of(e);
	}
	/* An instruction that was cut in two comes to its end behind the order. */
	for (uint32_t i = 0; i < t->nthreads; i++)
		if (last[i] && last[i]->half && last[i]->op == XPL_READ && last[i]->index + 1 < t->threads[i].events.n)
			(*steps)[(*n)++] = step_of(xpl_at(t, i, last[i]->index + 1));
	free(last);
}

/* ---- random orders ---- */

static uint64_t next_random(struct xpl_drive *d)
{
	d->random ^= d->random << 13;
	d->random ^= d->random >> 7;
	d->random ^= d->random << 17;
	return d->random;
}

/* An order of the first trace's events that keeps program order: by chance, or by priorities. */
static void random_order(struct xpl_drive *d, const struct xpl_trace *t, struct xpl_path *p)
{
	uint32_t *at = xcalloc(t->nthreads + 1, sizeof *at), changes[PCT_DEPTH];
	uint64_t *priority = xcalloc(t->nthreads + 1, sizeof *priority);
	bool pct = d->o->strategy == XPL_PCT;

	for (uint32_t i = 0; i < t->nthreads; i++)
		priority[i] = next_random(d) | 1ull << 32;
	for (unsigned i = 0; i < PCT_DEPTH; i++)
		changes[i] = (uint32_t)(next_random(d) % (t->events.n + 1));
	p->events.n = 0;
	for (;;) {
		uint32_t best = XPL_NONE, n = 0;

		for (uint32_t i = 0; i < t->nthreads; i++) {
			if (at[i] >= t->threads[i].events.n)
				continue;
			n++;
			if (best == XPL_NONE || (pct ? priority[i] > priority[best] : next_random(d) % n == 0))
				best = i;
		}
		if (best == XPL_NONE)
			break;
		vec_push(&p->events, t->threads[best].events.v[at[best]++]);
		for (unsigned i = 0; pct && i < PCT_DEPTH; i++)
			if (p->events.n == changes[i])
				priority[best] = i;
	}
	free(at);
	free(priority);
}

static err_t random_step(struct xpl_drive *d)
{
	struct xpl_path p = { 0 };
	xpl_orders orders = { 0 };

	for (size_t i = xpl_drive_room(d); i-- > 0;) {
		struct xpl_order o = { 0 };

		random_order(d, d->traces.v[0], &p);
		xpl_steps_of(d->traces.v[0], &p, &o.steps, &o.n);
		vec_push(&orders, o);
	}
	xpl_path_free(&p);
	return xpl_drive_try_all(d, &orders);
}

/* Of what this program showed itself: files of others may know more. */
static bool has_open(const struct xpl_drive *d)
{
	for (size_t i = 0; i < d->known.n; i++)
		if (d->known.v[i].met && d->known.v[i].status == XPL_OPEN)
			return true;
	return false;
}

err_t xpl_drive_go(struct xpl_drive *d, struct xpl_trace *first)
{
	bool patterns_done = d->o->strategy != XPL_PCR, done = false;

	vec_push(&d->traces, first);
	xpl_closure_add(d->closure, first);
	take_in(d, first, (uint32_t)d->traces.n - 1);
	while (!xpl_drive_over(d) && !done) {
		if (d->o->strategy == XPL_RANDOM || d->o->strategy == XPL_PCT) {
			TRY(random_step(d));
			continue;
		}
		if (!patterns_done) {
			TRY(xpl_pcr_step(d, &patterns_done));
			continue;
		}
		TRY(xpl_closure_step(d, &done));
		/* A new trace may hold patterns nobody has seen. */
		patterns_done = d->o->strategy != XPL_PCR;
	}
	if (done)
		TRY(xpl_pcr_settle(d));
	/* Patterns that another trace shows to be possible are open as long as one was given up. */
	d->exhausted = done && !d->late && !d->missed && !d->too_large && !d->cut && !d->unknown_left &&
		       (d->o->shards > 1 || !has_open(d));
	return done && d->o->keep_going && !xpl_drive_over(d) ? xpl_drive_vary(d) : NULL;
}
