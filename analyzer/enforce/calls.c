/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System calls through which threads met in the file system keep the order they were recorded in: in another one they
 * would give other results. No order of events tells where they are, only between which events of its own thread each one lies.
 */
#include "analyzer/enforce/edges.h"
#include "analyzer/enforce/internal.h"

#define MAX_CALL_EDGES 300
#define SYSCALL_LEN 2

/* A call in the order that is to be enforced: between these places, and as things are now from this one on. */
struct placed {
	const struct ext_call *call;
	uint64_t done; /* when it ended, or others saw by their results what it had done */
	size_t low, high, at;
	bool left_out; /* behind the end of the order, or there is no place for it */
};

struct work {
	const struct enforce *e;
	struct schedule *s;
	const struct sched_order *order;
	VEC(struct placed) calls; /* as they ended */
	VEC(struct sched_edge) edges; /* .thread is not used, .index is that of a call */
	size_t **place;
};

static size_t **places(const struct sym_trace *t, const struct sched_order *order)
{
	size_t **place = xcalloc(t->nthreads + 1, sizeof *place);

	for (size_t i = 0; i < t->nthreads; i++) {
		place[i] = xcalloc(t->threads[i].nevents + 1, sizeof **place);
		for (size_t k = 0; k <= t->threads[i].nevents; k++)
			place[i][k] = order->n;
	}
	for (size_t i = 0; i < order->n; i++)
		place[order->refs[i].thread][order->refs[i].index] = i;
	return place;
}

static int by_end(const void *x, const void *y)
{
	const struct placed *a = x, *b = y;

	return a->done < b->done ? -1 : a->done > b->done;
}

/* Did b see by its result what a, with which it overlaps, had done to a name? */
static bool is_seen_by(const struct ext_call *a, const struct ext_call *b)
{
	if (a->thread == b->thread || a->end < b->begin || b->end < a->begin)
		return false;
	for (unsigned i = 0; i < a->ntouches; i++)
		for (unsigned k = 0; k < b->ntouches; k++) {
			enum ext_name_state did = a->touches[i].name, saw = b->touches[k].name;

			if (a->touches[i].object == b->touches[k].object &&
			    ((did == EXT_NAME_TAKEN_AWAY && saw == EXT_NAME_MISSED) ||
			     (did == EXT_NAME_MADE && saw == EXT_NAME_FOUND)))
				return true;
		}
	return false;
}

/* Something that it saw was not as it had expected: only such calls see what others did. */
static bool is_surprised(const struct ext_call *c)
{
	for (unsigned i = 0; i < c->ntouches; i++)
		if (c->touches[i].name == EXT_NAME_MISSED || c->touches[i].name == EXT_NAME_FOUND)
			return true;
	return false;
}

/* What was seen was done before, however long its own call went on. */
static void see_done(struct work *w)
{
	for (size_t k = 0; k < w->calls.n; k++)
		for (size_t i = 0; is_surprised(w->calls.v[k].call) && i < w->calls.n; i++) {
			uint64_t seen = w->calls.v[k].call->end;

			if (is_seen_by(w->calls.v[i].call, w->calls.v[k].call) && w->calls.v[i].done >= seen)
				w->calls.v[i].done = seen - 1;
		}
}

static void begin(struct work *w, size_t until)
{
	const struct ext_result *r = w->e->extracted;

	w->place = places(r->trace, w->order);
	for (size_t i = 0; i < r->calls.n; i++) {
		const struct ext_call *c = &r->calls.v[i];
		size_t *of = w->place[c->thread], low = c->next ? of[c->next - 1] + 1 : 0;

		vec_push(&w->calls, (struct placed){ c, c->end, low, of[c->next], low, low >= until });
	}
	see_done(w);
	if (w->calls.n)
		qsort(w->calls.v, w->calls.n, sizeof *w->calls.v, by_end);
}

static void end(struct work *w)
{
	for (size_t i = 0; i < w->e->extracted->trace->nthreads; i++)
		free(w->place[i]);
	free(w->place);
	vec_free(&w->calls);
	vec_free(&w->edges);
}

static enum ext_touch_how touches(const struct ext_call *c, uint64_t object)
{
	for (unsigned i = 0; i < c->ntouches; i++)
		if (c->touches[i].object == object)
			return c->touches[i].how;
	return EXT_NOT_AT_ALL;
}

static bool conflict(enum ext_touch_how a, enum ext_touch_how b)
{
	return a && b && (a == EXT_CHANGES || b == EXT_CHANGES || a != b);
}

/* Call i comes before call k. False: the order has it the other way round. */
static bool follows(struct work *w, size_t i, size_t k)
{
	struct placed *a = &w->calls.v[i], *b = &w->calls.v[k];

	if (a->at > b->high)
		return false;
	b->at = b->at > a->at ? b->at : a->at;
	if (a->call->thread != b->call->thread)
		vec_push(&w->edges, (struct sched_edge){ { 0, (uint32_t)i }, { 0, (uint32_t)k } });
	return true;
}

/* Is it known that a, which ended before b did, was first? */
static bool is_known(const struct ext_call *a, const struct ext_call *b)
{
	return a->end < b->begin || (a->takes && b->takes) || is_seen_by(a, b);
}

/* Back to the last one that changed the object: what was before that comes before it. */
static void follow_object(struct work *w, size_t k, struct ext_call_touch touched)
{
	for (size_t i = k; i-- > 0 && !w->calls.v[k].left_out;) {
		const struct placed *p = &w->calls.v[i];
		enum ext_touch_how how = touches(p->call, touched.object);

		if (p->left_out || !conflict(how, touched.how) || !is_known(p->call, w->calls.v[k].call))
			continue;
		w->calls.v[k].left_out = !follows(w, i, k);
		if (how == EXT_CHANGES)
			break;
	}
}

static void order_calls(struct work *w)
{
	for (size_t k = 0; k < w->calls.n; k++) {
		struct placed *p = &w->calls.v[k];
		size_t first = w->edges.n;

		for (size_t i = k; i-- > 0;)
			if (w->calls.v[i].call->thread == p->call->thread) {
				p->at = p->at > w->calls.v[i].at ? p->at : w->calls.v[i].at;
				break;
			}
		for (unsigned i = 0; i < p->call->ntouches; i++)
			follow_object(w, k, p->call->touches[i]);
		if (p->left_out)
			w->edges.n = first;
	}
}

/* Who waits at its call with a lock in its hands must not keep the other from coming to its own. */
static void keep_sections(struct work *w, const struct ext_call *before, const struct ext_call *after)
{
	struct edges edges = { 0 };

	edges_around(w->e->extracted->trace, w->order, before->thread, (struct sched_ref){ after->thread, after->next },
		     &edges);
	for (size_t i = 0; i < edges.v.n; i++) {
		struct schedule_end a = { 0 }, b = { 0 };
		bool a_told = schedule_end_in(w->e, w->s, w->e->extracted->trace, edges.v.v[i].before, true, false, &a);
		bool b_told = schedule_end_in(w->e, w->s, w->e->extracted->trace, edges.v.v[i].after, false, false, &b);

		schedule_push(w->s, a_told, a, b_told, b);
	}
	vec_free(&edges.v);
}

/* Does the instruction go on with the next one? Behind a jump nothing can be told, or waited for. */
static bool falls_through(struct img_set *images, uint64_t pc)
{
	uint8_t op;

	if (!img_read(images, pc, &op, 1))
		return false;
	return op != 0xc3 && op != 0xf3 && op != 0xe8 && op != 0xe9 && op != 0xeb && op != 0xff && op != 0x0f &&
	       (op & 0xf0) != 0x70;
}

/* For people: where the program called. */
static void name_place(const struct enforce *e, const struct ext_call *c, struct schedule_end *out)
{
	uint64_t call = c->caller ? place_call_before(e->images, c->caller) : 0;

	place_free(&out->place);
	if (!call || !place_of(e->images, call, &out->place))
		out->place = (struct place){ 0 };
}

/* Behind the instruction that follows the call, or in front of that, where there is no behind. */
static bool behind(const struct enforce *e, struct schedule *s, const struct ext_call *c, struct schedule_end *out)
{
	uint64_t next = c->pc + SYSCALL_LEN;

	if (!schedule_end_at(e, s, e->extracted->trace->threads[c->thread].id, next, c->n, out))
		return false;
	out->after = falls_through(e->images, next);
	name_place(e, c, out);
	return true;
}

static bool in_front(const struct enforce *e, struct schedule *s, const struct ext_call *c, struct schedule_end *out)
{
	if (!schedule_end_at(e, s, e->extracted->trace->threads[c->thread].id, c->pc, c->n, out))
		return false;
	name_place(e, c, out);
	return true;
}

static void add_edge(struct work *w, const struct ext_call *before, const struct ext_call *after)
{
	struct schedule_end a = { 0 }, b = { 0 };
	bool a_told = behind(w->e, w->s, before, &a), b_told = in_front(w->e, w->s, after, &b);

	if (schedule_push(w->s, a_told, a, b_told, b))
		keep_sections(w, before, after);
}

bool schedule_calls(const struct enforce *e, struct schedule *s, const struct sched_order *order, size_t until,
		    const struct ext_call **last)
{
	struct work w = { .e = e, .s = s, .order = order };

	begin(&w, until);
	order_calls(&w);
	bool some = w.edges.n > 0;
	for (size_t i = w.edges.n > MAX_CALL_EDGES ? w.edges.n - MAX_CALL_EDGES : 0; s && i < w.edges.n; i++) {
		const struct ext_call *a = w.calls.v[w.edges.v[i].before.index].call;
		const struct ext_call *b = w.calls.v[w.edges.v[i].after.index].call;

		add_edge(&w, a, b);
	}
	for (size_t i = 0; some && s && i < w.calls.n; i++)
		if (!w.calls.v[i].left_out)
			last[w.calls.v[i].call->thread] = w.calls.v[i].call;
	end(&w);
	return some;
}

/* Could b have come before a? Not when b's thread was made behind a, or had seen the end of a's. */
static bool may_change_places(const struct sym_trace *t, const struct ext_call *a, const struct ext_call *b)
{
	return a->thread != b->thread && !order_leads_to(t, SYM_FORK, a->thread, a->next, SYM_NONE, b->thread) &&
	       !order_leads_to(t, SYM_JOIN, b->thread, 0, b->next, a->thread);
}

bool enforce_calls_race(const struct ext_result *r)
{
	for (size_t k = 0; k < r->calls.n; k++)
		for (size_t i = 0; i < k; i++) {
			const struct ext_call *a = &r->calls.v[i], *b = &r->calls.v[k];

			for (unsigned n = 0; n < b->ntouches; n++)
				if (conflict(touches(a, b->touches[n].object), b->touches[n].how) &&
				    may_change_places(r->trace, a, b))
					return true;
		}
	return false;
}

/* Not where others are told of the call: it would be held before that. */
bool schedule_call_end(const struct enforce *e, struct schedule *s, const struct ext_call *c, struct schedule_end *out)
{
	if (!behind(e, s, c, out))
		return false;
	if (out->after)
		return true;
	schedule_end_free(out);
	return false;
}
