/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An order that is kept: while it is executed what each thread does goes into the run's log, behind the recorded steps
 * before it. Afterwards the run is that order: analyzer/follow/seek.c moves about in it, and has the steps performed here.
 *
 * A step performed again does what it did the first time: it depends on registers, memory, the threads' records, and the
 * state of the execution that checkpoints copy (struct run_order).
 */
#include "analyzer/execute/execute.h"

#include "analyzer/engine/code.h"

#include <string.h>

void exec_keep_begin(struct mach_run *r, struct execution *x, size_t log, uint64_t left)
{
	if (left)
		r->log.v[log++].insns -= left; /* the rest of that step belongs to the recorded order */
	r->log.n = r->log_sealed = log;
	/* One of the same time may stand behind recorded steps that take no time and are not of this order. */
	while (r->checkpoints.n && (r->checkpoints.v[r->checkpoints.n - 1]->time > r->time ||
				    r->checkpoints.v[r->checkpoints.n - 1]->log > log))
		checkpoint_free(r, r->checkpoints.v[--r->checkpoints.n]);
	x->keeps = true;
}

void exec_keep_step(struct mach_run *r, const struct execution *x, uint32_t thread, enum action a, uint64_t insns)
{
	struct log_step *last = r->log.n ? &r->log.v[r->log.n - 1] : NULL;

	if (!x->keeps || (a == ACT_ORDER_RUN && !insns))
		return;
	if (a == ACT_ORDER_RUN && last && last->action == (uint32_t)a && last->thread == thread)
		last->insns += insns;
	else
		vec_push(&r->log, (struct log_step){ thread, a, insns });
}

static err_t other_way(const struct log_step *s)
{
	return err_new(ERR_INTERNAL, "executing the order again went another way: thread %u, step %u", s->thread, s->action);
}

/* A call of this order alone, which the record does not hold: whoever looks on hears of it as of the others. */
static void tell(const struct mach_run *r, const struct run_thread *t, const struct trc_enter *enter)
{
	const struct trc_leave leave = { .rec = { .type = TRC_LEAVE, .flags = enter->rec.flags },
					 .result = (int64_t)r->m->frame->g.guest_RAX, .thread = UINT32_MAX };

	if (r->hooks && r->hooks->syscall && r->time >= r->hooks_from)
		r->hooks->syscall(r->hooks->arg, t->index, enter, &leave);
}

/* One that takes time is at most one stretch of the engine: the record primitive, or a system call. */
static err_t do_again(struct mach_run *r, struct execution *x, struct run_thread *t, const struct log_step *s)
{
	uint64_t before = r->m->insns;

	r->m->breaking = BLOCK_WHOLE;
	r->m->insn_limit = before + 1;
	r->stretch = before;
	enum mach_stop stop = mach_engine_run(r->m);

	if (r->m->insns != before || (stop != STOP_EVENT && stop != STOP_SYSCALL && stop != STOP_NONDET))
		return other_way(s);
	struct trc_enter enter = { .rec = { .type = TRC_ENTER, .flags = (uint16_t)r->m->frame->g.guest_RAX } };
	bool printed = x->out->printed;

	for (unsigned i = 0; i < sizeof enter.args / sizeof *enter.args; i++)
		enter.args[i] = run_arg(r, i);
	x->out->printed = false;
	exec_do(r, x, t, stop);
	if (stop == STOP_SYSCALL && x->out->printed)
		tell(r, t, &enter);
	x->out->printed |= printed;
	return x->done ? other_way(s) : NULL;
}

static err_t part(struct mach_run *r, uint32_t thread, uint64_t insns)
{
	struct run_thread *t = &r->threads[thread];
	struct mach *m = r->m;
	uint64_t end;

	r->free = true;
	run_switch(r, thread);
	for (end = m->insns + insns; m->insns < end;) {
		uint64_t before = m->insns;

		m->breaking = run_sight_pcs(r) ? BLOCK_BREAK : BLOCK_WHOLE;
		m->insn_limit = run_piece(r, t, end);
		r->stretch = before;
		enum mach_stop stop = mach_engine_run(m);

		r->time += m->insns - before;
		if (stop == STOP_BREAK && m->insns < end) {
			r->stretch = before = m->insns;
			if (run_sight_stops(r, t)) {
				r->asked_to_stop = true;
				break;
			}
			m->breaking = BLOCK_WHOLE;
			m->insn_limit = before + 1;
			mach_engine_run(m);
			r->time += m->insns - before;
		}
		if (r->asked_to_stop || run_progress(r))
			break;
		if (m->insns == before && m->insns < end) {
			r->free = false;
			return other_way(&(struct log_step){ thread, ACT_ORDER_RUN, insns });
		}
	}
	r->free = false;
	return NULL;
}

static err_t step(struct mach_run *r, const struct log_step *s)
{
	struct execution *x = r->order.arg;
	struct run_thread *t = &r->threads[s->thread];
	err_t bad = NULL;

	r->free = true;
	run_switch(r, s->thread);
	switch (s->action) {
	case ACT_ORDER_RUN:
		bad = part(r, s->thread, s->insns);
		break;
	case ACT_ORDER_DO:
		bad = do_again(r, x, t, s);
		break;
	case ACT_ORDER_WAIT:
		bad = exec_time_out(r, x, s->thread) ? NULL : other_way(s);
		break;
	case ACT_ORDER_LOAD:
		bad = exec_load_now(r, x, t) ? NULL : other_way(s);
		break;
	case ACT_ORDER_STORE:
		exec_store_late(r, x, s->thread);
		break;
	case ACT_ORDER_AGAIN:
		exec_adopt_call(r, x, t);
		t->s.action = ACT_RUN;
		break;
	default:
		bad = other_way(s);
	}
	r->free = false;
	return bad;
}

/* The execution as it stays with the run: nothing is asked of it any more. */
struct kept {
	struct execution x;
	struct mach_outcome out;
};

static void forget(struct mach_run *r)
{
	struct kept *k = r->order.arg;

	exec_free(r, &k->x);
	mach_outcome_free(&k->out);
	free(k);
	r->order = (struct run_order){ 0 };
}

void exec_keep_end(struct mach_run *r, struct execution *x)
{
	struct kept *k = xcalloc(1, sizeof *k);

	r->res.thread = x->out->thread < r->nthreads ? x->out->thread : r->res.thread;
	mach_set_breaks(r->m, NULL, 0);
	k->x = *x;
	k->x.out = &k->out;
	k->x.keeps = k->x.done = k->x.broken = k->x.decided = false;
	k->x.npoints = k->x.nstrict = 0;
	r->order = (struct run_order){ .state = x->state, .size = x->state_size, .arg = &k->x, .step = step,
				       .part = part, .free = forget };
	r->length = r->time;
	run_seek_free(r);
}
