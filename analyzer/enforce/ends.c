/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An event as the shim knows it: the n-th execution of an instruction by a thread, and on which side of it. */
#include "analyzer/enforce/internal.h"

#include "common/control_format.h"

#include <string.h>

/* An operation of a library's; a lock of the program's own making is an instruction like any other. */
static bool is_sync(const struct sym_trace *t, const struct sym_event *e)
{
	return e->op >= SYM_LOCK && e->op <= SYM_ONCE_END && !t->objects[e->target].home_made;
}

bool schedule_is_linker(const struct img_module *m)
{
	return !strncmp(img_module_name(m), "ld-linux", 8);
}

/* The release inside pthread_cond_wait: it has no return of its own. */
static bool is_wait_release(const struct sym_trace *t, struct sched_ref r)
{
	const struct sym_thread *th = &t->threads[r.thread];

	for (uint32_t i = r.index + 1; i < th->nevents && i < r.index + 3; i++)
		if (th->events[i].op == SYM_WAIT && th->events[i].link == r.index)
			return true;
	return false;
}

/*
 * The last thing a thread is known to have done is a release. It may be that of a
 * wait that never came back.
 */
static bool is_last_release(const struct sym_trace *t, struct sched_ref r)
{
	return order_event(t, r)->op == SYM_UNLOCK && is_sync(t, order_event(t, r)) &&
	       r.index + 1 == t->threads[r.thread].nevents;
}

/* Is this the call of a wait? The window may begin inside one: others were there, or gave the mutex back there. */
static bool is_wait_place(const struct sym_trace *t, uint64_t pc)
{
	for (size_t i = 0; i < t->nthreads; i++)
		for (size_t k = 0; k < t->threads[i].nevents; k++) {
			const struct sym_event *e = &t->threads[i].events[k];

			if (e->pc == pc && (e->op == SYM_WAIT || e->op == SYM_UNLOCK))
				return true;
		}
	return false;
}

/* The end of pthread_cond_wait, where its mutex is taken again: no call of its own. */
static bool is_wait_lock(const struct sym_trace *t, struct sched_ref r)
{
	const struct sym_event *e = order_event(t, r);

	return e->op == SYM_WAIT ||
	       (e->op == SYM_LOCK && is_sync(t, e) && is_wait_place(t, e->pc));
}

/*
 * Whoever arrives at a barrier returns only when all have, and a wait that
 * lets its mutex go returns only when it was woken: the sign is that it sleeps there.
 */
static bool is_sign_inside(const struct sym_trace *t, struct sched_ref r)
{
	const struct sym_event *e = order_event(t, r);

	return e->op == SYM_BARRIER_ENTER || is_last_release(t, r) ||
	       (e->op == SYM_UNLOCK && is_wait_release(t, r));
}

struct schedule_end schedule_start_of(const struct sym_trace *t, uint32_t thread)
{
	const char *id = t->threads[thread].id;

	return (struct schedule_end){ .thread = xstrdup(id[1] == '#' ? CTL_ANY_THREAD : id),
				      .module = xstrdup(CTL_START_MODULE), .n = 1, .after = true };
}

/*
 * Where a thread waits inside its call: it must not come back with the mutex
 * in its hands.
 */
static bool waits_inside(const struct sym_trace *t, struct sched_ref r, bool held)
{
	return held ? is_wait_release(t, r) || is_last_release(t, r) : is_wait_lock(t, r);
}

/*
 * One half of an instruction that reads and writes (add $1, counter): the other is the event
 * next to it. Others can come between the two.
 */
static bool is_half(const struct sym_trace *t, struct sched_ref r)
{
	const struct sym_thread *th = &t->threads[r.thread];
	const struct sym_event *e = &th->events[r.index];
	uint32_t other = e->op == SYM_READ ? r.index + 1 : e->op == SYM_WRITE ? r.index - 1 : SYM_NONE;
	const struct sym_event *o = other < th->nevents ? &th->events[other] : NULL;

	return o && (o->op == SYM_READ || o->op == SYM_WRITE) && o->op != e->op && o->pc == e->pc &&
	       o->occurrence == e->occurrence && o->target == e->target;
}

/* Behind the read, or in front of the write: between the halves of the instruction. */
static bool is_middle(const struct sym_trace *t, struct sched_ref r, bool behind)
{
	return is_half(t, r) && (order_event(t, r)->op == SYM_READ) == behind;
}

bool schedule_end_at(const struct enforce *e, struct schedule *s, const char *thread, uint64_t pc, uint64_t n,
		     struct schedule_end *out)
{
	struct img_module *m = pc ? img_module_at(e->images, pc) : NULL;

	if (!m || schedule_is_linker(m))
		return false;
	*out = (struct schedule_end){ .thread = xstrdup(thread), .module = xstrdup(img_module_name(m)),
				      .offset = pc - img_module_bias(m), .n = n };
	if (!place_of(e->images, pc, &out->place))
		out->place = (struct place){ 0 };
	schedule_note_build(s, m);
	return true;
}

bool schedule_end_in(const struct enforce *e, struct schedule *s, const struct sym_trace *t, struct sched_ref r,
		     bool source, bool held, struct schedule_end *out)
{
	const struct sym_event *ev = order_event(t, r);
	uint64_t pc = ev->pc;

	if (ev->op == SYM_START && held) {
		*out = schedule_start_of(t, r.thread);
		return true;
	}
	if (!pc || (!ev->occurrence && ev->op != SYM_FAIL))
		return false;
	bool again = !source && waits_inside(t, r, held);
	/* The pc of an operation lies inside the call: the source has happened when
	 * it has returned, the target waits before it is made. */
	if (is_sync(t, ev) || ev->op == SYM_FORK || ev->op == SYM_JOIN)
		pc = place_call_before(e->images, pc + 1);
	/* The failure is never over: whoever waits for it waits for the end. */
	uint64_t n = ev->op == SYM_FAIL ? CTL_NEVER : ev->occurrence;
	if (!schedule_end_at(e, s, t->threads[r.thread].id, pc, n, out))
		return false;
	out->again = again;
	out->inside = source && is_sign_inside(t, r);
	out->middle = is_middle(t, r, source || held);
	out->after = !again && (held || (source && !is_sign_inside(t, r)));
	return true;
}

void schedule_end_free(struct schedule_end *end)
{
	free(end->thread);
	free(end->module);
	place_free(&end->place);
}

struct schedule_edge *schedule_push(struct schedule *s, bool source_told, struct schedule_end source,
				    bool target_told, struct schedule_end target)
{
	struct schedule_edge edge = { .id = (uint32_t)s->edges.n, .source = source, .target = target };

	if (source_told && target_told && s->edges.n < CTL_MAX_EDGES) {
		vec_push(&s->edges, edge);
		return &s->edges.v[s->edges.n - 1];
	}
	if (source_told)
		schedule_end_free(&source);
	if (target_told)
		schedule_end_free(&target);
	return NULL;
}
