/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The failure at the point of failure as a condition, and the schedule side's solver for the order: what two traces
 * access in common becomes a symbolic trace, with the condition that each read sees what it saw when the trace was made
 * (so that both threads stay on their paths), but for the one on which the failure depends.
 *
 * Values are those that were seen; where one is not known a number of its own stands for it.
 */
#include "analyzer/testgen/solve.h"

#include "analyzer/schedule/schedule.h"

#include <string.h>

#define QUESTION_SECONDS 1.0  /* of one question; those of calls take milliseconds */
#define MOST_QUESTIONS 24     /* about one test */
#define MOST_OTHERS 2         /* orders that only change a value: any change may do, or none */
#define MOST_EVENTS 600       /* of a thread; more are no question for a solver */
#define NEAR 4096             /* bytes behind a pointer that are used by way of it */
#define NULL_PAGE 4096        /* a pointer to below is bad */
#define UNKNOWN (1ull << 62)  /* values that are not known are numbered from here on */

/* What the call must find at the point of failure. */
enum wish_kind { WISH_NULL, WISH_OTHER, WISH_FREED };

struct wish {
	enum wish_kind kind;
	uint32_t at;     /* event of a: where it fails; it runs that far */
	uint32_t read;   /* event of a: the read that decides */
	uint32_t by;     /* event of b: the write or free that makes it so */
	uint32_t until;  /* event of b: it runs that far */
};

struct place { uint64_t address, size; };

struct question {
	const struct trace *trace[2];
	const struct wish *wish;
	struct sym_trace *t;
	VEC(struct place) places;
	VEC(uint64_t) locks;
	VEC(uint32_t) from[2]; /* event of the trace, for each event of the symbolic one */
	uint64_t unknown;
	bool too_large;
};

static bool is_access(const struct job_event *e)
{
	return e->kind == JOB_READ || e->kind == JOB_WRITE || e->kind == JOB_ATOMIC;
}

static bool overlap(uint64_t a, uint64_t n, uint64_t b, uint64_t m)
{
	return a < b + (m ? m : 1) && b < a + (n ? n : 1);
}

/* Does the other thread access it, too, and does one of the two write? */
static bool is_shared(const struct question *q, unsigned thread, const struct job_event *e)
{
	const struct trace *o = q->trace[!thread];

	for (uint32_t i = 0; i < o->nevents; i++)
		if (is_access(&o->events[i]) && (e->kind == JOB_WRITE || o->events[i].kind == JOB_WRITE) &&
		    overlap(e->address, e->size, o->events[i].address, o->events[i].size))
			return true;
	return false;
}

/* The number of the location. Accesses that overlap are the same one: what is told apart less is asked for less. */
static uint32_t place_of(struct question *q, const struct job_event *e)
{
	for (uint32_t i = 0; i < q->places.n; i++)
		if (overlap(q->places.v[i].address, q->places.v[i].size, e->address, e->size))
			return i;
	char *name = xasprintf("m%zu", q->places.n);
	struct sym_var v = { .name = name, .width = 64, .has_init = true };

	v.init = expr_const(q->t->pool, 64, UNKNOWN + q->unknown++);
	vec_push(&q->places, ((struct place){ e->address, e->size }));
	uint32_t n = sym_add_var(q->t, &v);
	free(name);
	return n;
}

static uint32_t lock_of(struct question *q, uint64_t address)
{
	for (uint32_t i = 0; i < q->locks.n; i++)
		if (q->locks.v[i] == address)
			return i;
	char *name = xasprintf("l%zu", q->locks.n);
	struct sym_object o = { .name = name, .kind = SYM_RWLOCK, .owner = SYM_NONE };

	vec_push(&q->locks, address);
	uint32_t n = sym_add_object(q->t, &o);
	free(name);
	return n;
}

static void push(struct question *q, unsigned thread, uint32_t event, struct sym_event *e)
{
	sym_add_event(q->t, thread, e);
	vec_push(&q->from[thread], event);
	q->too_large |= q->from[thread].n > MOST_EVENTS;
}

/* The read sees `value`, or (wish) one with which it fails. */
static void add_read(struct question *q, unsigned thread, uint32_t event, uint32_t var, uint64_t value, bool decides)
{
	struct expr_pool *p = q->t->pool;
	expr_id symbol = expr_symbol(p, 64, "v"), cond;
	struct sym_event e;

	sym_event_init(&e, SYM_READ);
	e.target = var;
	e.symbol = symbol;
	push(q, thread, event, &e);
	if (!decides)
		cond = expr_binary(p, EX_EQ, symbol, expr_const(p, 64, value));
	else if (q->wish->kind == WISH_NULL)
		cond = expr_binary(p, EX_ULT, symbol, expr_const(p, 64, NULL_PAGE));
	else
		cond = expr_unary(p, EX_BNOT, expr_binary(p, EX_EQ, symbol, expr_const(p, 64, value)));
	struct sym_cond c = { .after = (uint32_t)q->from[thread].n - 1, .cond = cond, .stack = SYM_NONE };
	sym_add_cond(q->t, thread, &c);
}

static void add_write(struct question *q, unsigned thread, uint32_t event, uint32_t var, uint64_t value)
{
	struct sym_event e;

	sym_event_init(&e, SYM_WRITE);
	e.target = var;
	e.value = expr_const(q->t->pool, 64, value);
	push(q, thread, event, &e);
}

static void add_lock(struct question *q, unsigned thread, uint32_t event, const struct job_event *of)
{
	struct sym_event e;

	sym_event_init(&e, of->kind == JOB_LOCK ? SYM_LOCK : of->kind == JOB_SHARED_LOCK ? SYM_RDLOCK : SYM_UNLOCK);
	e.target = lock_of(q, of->address);
	push(q, thread, event, &e);
}

struct last { uint32_t var; uint64_t value; };

/* What the location holds for this thread when it runs alone. */
static struct last *last_of(struct question *q, void *list, uint32_t var)
{
	VEC(struct last) *l = list;

	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].var == var)
			return &l->v[i];
	vec_push(l, ((struct last){ var, expr_get(q->t->pool, q->t->vars[var].init)->value }));
	return &l->v[l->n - 1];
}

/* Is this the lock's first event, a release of what the other thread never sees? Only what was acquired is released. */
static bool is_held(const struct trace *t, uint32_t until, uint64_t lock)
{
	int held = 0;

	for (uint32_t i = 0; i < until; i++) {
		const struct job_event *e = &t->events[i];

		if (e->address != lock)
			continue;
		held += e->kind == JOB_LOCK || e->kind == JOB_SHARED_LOCK;
		held -= e->kind == JOB_UNLOCK && held > 0;
	}
	return held > 0;
}

/* The block that is freed is one more location: 0 before, 1 after; who uses it in time has read 0. */
static void use_block(struct question *q, unsigned thread, uint32_t event, const struct job_event *e, uint32_t block,
		      uint64_t start, uint64_t size)
{
	bool last = thread == 0 && event == q->wish->at;

	if (overlap(e->address, e->size, start, size))
		add_read(q, thread, event, block, last ? 1 : 0, false);
}

/* The events of a thread up to its last one that is asked for. */
static void add_thread(struct question *q, unsigned thread, uint32_t until, uint32_t block)
{
	const struct trace *t = q->trace[thread];
	const struct job_event *freed = &q->trace[1]->events[q->wish->by];
	VEC(struct last) now = { 0 };

	for (uint32_t i = 0; i <= until && i < t->nevents && !q->too_large; i++) {
		const struct job_event *e = &t->events[i];

		if (e->kind == JOB_LOCK || e->kind == JOB_SHARED_LOCK || (e->kind == JOB_UNLOCK && is_held(t, i, e->address)))
			add_lock(q, thread, i, e);
		if (block != SYM_NONE && thread == 1 && i == q->wish->by)
			add_write(q, thread, i, block, 1);
		if (block != SYM_NONE && thread == 0 && is_access(e))
			use_block(q, thread, i, e, block, freed->address, freed->size);
		if (!is_access(e) || !is_shared(q, thread, e))
			continue;
		uint32_t var = place_of(q, e);
		if (e->kind == JOB_WRITE) {
			uint64_t v = e->known ? e->value : UNKNOWN + q->unknown++;

			last_of(q, &now, var)->value = v;
			add_write(q, thread, i, var, v);
		} else {
			bool decides = thread == 0 && i == q->wish->read && q->wish->kind != WISH_FREED;

			add_read(q, thread, i, var, last_of(q, &now, var)->value, decides);
		}
	}
	vec_free(&now);
}

/* The solver's order as turns: who goes on stops before the first event of its that comes after another's. */
static void to_segments(const struct question *q, const struct sched_order *o, candidate_list_t *out)
{
	struct candidate c = { .nsegments = 0 };
	size_t next[2] = { 0, 0 };

	for (size_t i = 0; i < o->n; i++) {
		unsigned thread = o->refs[i].thread;
		bool turns = i + 1 < o->n && o->refs[i + 1].thread != thread;

		next[thread] = o->refs[i].index + 1u;
		if (!turns)
			continue;
		/* Before the next event that was asked for; one that was not is behind what the other waits for. */
		uint32_t event = next[thread] < q->from[thread].n ? q->from[thread].v[next[thread]] :
				 q->from[thread].v[next[thread] - 1] + 1;
		const struct trace *t = q->trace[thread];
		if (c.nsegments + 3 > JOB_SEGMENTS)
			return;
		c.segments[c.nsegments++] = (struct job_segment){
			(uint8_t)thread, event < t->nevents ? t->events[event].step : t->nsteps };
	}
	/* The call that is to fail goes on, and then the other one. */
	if (o->n && o->refs[o->n - 1].thread == 1) {
		uint32_t event = q->from[1].v[o->refs[o->n - 1].index];

		c.segments[c.nsegments++] = (struct job_segment){ 1, q->trace[1]->events[event].step + 1 };
	}
	c.segments[c.nsegments++] = (struct job_segment){ 0, JOB_NEVER };
	c.segments[c.nsegments++] = (struct job_segment){ 1, JOB_NEVER };
	vec_push(out, c);
}

static bool ask(const struct trace *a, const struct trace *b, const struct wish *w, candidate_list_t *out)
{
	struct question q = { .trace = { a, b }, .wish = w, .t = sym_trace_new(), .unknown = 1 };
	struct sched_options so;
	struct sched_order order = { 0 };
	uint32_t block = SYM_NONE;
	bool found = false;

	sym_add_thread(q.t, "T0.1", NULL);
	sym_add_thread(q.t, "T0.2", NULL);
	q.t->failure.kind = SYM_FAIL_USER;
	if (w->kind == WISH_FREED) {
		struct sym_var v = { .name = (char *)"freed", .width = 64, .has_init = true };

		v.init = expr_const(q.t->pool, 64, 0);
		vec_push(&q.places, ((struct place){ 0, 0 }));
		block = sym_add_var(q.t, &v);
	}
	add_thread(&q, 0, w->at, block);
	add_thread(&q, 1, w->until, block);
	sched_options_init(&so);
	so.timeout = QUESTION_SECONDS;
	if (!q.too_large)
		err_free(sched_feasible(q.t, &so, &order, &found));
	if (found)
		to_segments(&q, &order, out);
	sched_order_free(&order);
	sym_trace_free(q.t);
	vec_free(&q.places);
	vec_free(&q.locks);
	vec_free(&q.from[0]);
	vec_free(&q.from[1]);
	return found;
}

/* The read by which this access came to its address: the latest one of a pointer to shortly before it. */
static bool source_of(const struct trace *t, uint32_t access, uint32_t *out)
{
	uint64_t at = t->events[access].address;

	for (uint32_t i = access; i-- > 0;) {
		const struct job_event *e = &t->events[i];

		if (e->kind == JOB_READ && e->known && e->size == 8 && e->value && e->value <= at && at - e->value < NEAR) {
			*out = i;
			return true;
		}
	}
	return false;
}

struct wishes {
	struct wish v[MOST_QUESTIONS];
	unsigned n;
};

static void wish(struct wishes *w, enum wish_kind kind, uint32_t at, uint32_t read, uint32_t by)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->v[i].kind == kind && w->v[i].read == read && w->v[i].by == by &&
		    (kind != WISH_FREED || w->v[i].at == at))
			return;
	if (w->n < MOST_QUESTIONS)
		w->v[w->n++] = (struct wish){ kind, at, read, by, by };
}

/* Everything b does that could make this read or this access fail. */
static void wishes_at(const struct trace *a, const struct trace *b, uint32_t access, bool bad_pointer, struct wishes *w)
{
	const struct job_event *x = &a->events[access];
	uint32_t pointer = access;
	bool has_pointer = bad_pointer && source_of(a, access, &pointer);

	for (uint32_t k = 0; k < b->nevents; k++) {
		const struct job_event *y = &b->events[k];

		if (bad_pointer && y->kind == JOB_FREE && overlap(x->address, x->size, y->address, y->size))
			wish(w, WISH_FREED, access, access, k);
		if (y->kind != JOB_WRITE)
			continue;
		if (has_pointer && overlap(a->events[pointer].address, 8, y->address, y->size) &&
		    (!y->known || y->value < NULL_PAGE))
			wish(w, y->known ? WISH_NULL : WISH_OTHER, access, pointer, k);
		if (x->kind == JOB_READ && overlap(x->address, x->size, y->address, y->size))
			wish(w, WISH_OTHER, access, access, k);
	}
}

static void collect(const struct trace *a, const struct trace *b, const struct solve_failure *f, solve_is_there *there,
		    struct wishes *w)
{
	/* The first time that it comes there; in a loop it fails at some round, which exploring will find. */
	for (uint32_t i = 0; i < a->nevents; i++)
		if (is_access(&a->events[i]) && there(f->arg, a->events[i].pc))
			wishes_at(a, b, i, f->bad_pointer, w);
}

static int by_kind(const void *x, const void *y)
{
	const struct wish *a = x, *b = y;
	static const int order[] = { [WISH_FREED] = 0, [WISH_NULL] = 1, [WISH_OTHER] = 2 };

	return order[a->kind] != order[b->kind] ? order[a->kind] - order[b->kind] : a->at != b->at ? (a->at < b->at ? -1 : 1) :
	       a->by < b->by ? -1 : a->by > b->by;
}

/* Where it holds no lock any more; false: it holds none here. */
static bool runs_free(const struct trace *t, uint32_t from, uint32_t *out)
{
	int held = 0;

	for (uint32_t i = 0; i < t->nevents; i++) {
		const struct job_event *e = &t->events[i];

		held += e->kind == JOB_LOCK || e->kind == JOB_SHARED_LOCK;
		held -= e->kind == JOB_UNLOCK && held > 0;
		if (i < from || held)
			continue;
		*out = i;
		return i > from;
	}
	return false;
}

void solve_orders(const struct trace *a, const struct trace *b, const struct solve_failure *f, unsigned most,
		  candidate_list_t *out, uint64_t *asked)
{
	struct wishes w = { .n = 0 };
	unsigned others = 0;

	collect(a, b, f, f->at_line, &w);
	if (!w.n)
		collect(a, b, f, f->in_function, &w);
	if (w.n > 1)
		qsort(w.v, w.n, sizeof *w.v, by_kind);
	for (unsigned i = 0; i < w.n && out->n < most && others < MOST_OTHERS; i++) {
		others += w.v[i].kind == WISH_OTHER;
		++*asked;
		/* With the lock in its hand, for who does not ask for that; else after it was released. */
		if (ask(a, b, &w.v[i], out) || !runs_free(b, w.v[i].by, &w.v[i].until))
			continue;
		++*asked;
		ask(a, b, &w.v[i], out);
	}
}
