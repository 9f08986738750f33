/*
 * Behind the end of the record. When one thread fails the others stand somewhere,
 * and what they would have done next was not recorded; but their code, their
 * registers and memory are known, so the machine can compute it as far as no system
 * call is needed whose result nobody knows. The failing thread stays where it is.
 *
 * It is the same in every execution: turns are counted in instructions, and new
 * mappings go to the same places. A thread goes no further than to where it would
 * create a thread or has joined one: whose life the record does not tell.
 */
#include "analyzer/execute/execute.h"

#define ONWARD_TURN 20000u

/* The operation as the recorder would have told it, but for the time. */
static void tell(struct mach_run *r, uint32_t thread)
{
	const VexGuestAMD64State *g = &r->m->frame->g;
	struct trc_sync *s = xcalloc(1, sizeof *s);

	*s = (struct trc_sync){ .rec = { .type = TRC_SYNC, .flags = (uint16_t)g->guest_RDI },
				.object = g->guest_RSI, .site = g->guest_RDX,
				.result = (int32_t)g->guest_RCX, .thread = (uint32_t)g->guest_R8,
				.value = g->guest_R9 };
	vec_push(&r->computed, s); /* who is told may keep it */
	r->hooks->sync(r->hooks->arg, thread, s);
}

bool onward_event(struct mach_run *r, struct run_thread *t)
{
	const VexGuestAMD64State *g = &r->m->frame->g;
	unsigned op_at = (uint32_t)g->guest_RDI, op = TRC_SYNC_OP(op_at);
	bool joins = op == TRC_OP_JOIN || op == TRC_OP_TRYJOIN || op == TRC_OP_TIMEDJOIN;

	if (!r->m->event_end || (op == TRC_OP_CREATE && TRC_SYNC_AT(op_at) == TRC_AT_BEGIN) ||
	    (joins && TRC_SYNC_AT(op_at) == TRC_AT_DONE))
		return true;
	if (r->execution && r->execution->translating)
		exec_passed(r->execution, t->index, exec_event_place(op_at, g->guest_RDX),
			    r->m->insns);
	if (r->hooks && r->hooks->sync)
		tell(r, t->index);
	return false;
}

/* One turn of each; false: nobody came further. */
static bool round_of_turns(struct mach_run *r, struct execution *x, uint64_t *left)
{
	uint64_t before = r->time;

	for (uint32_t i = 0; i < r->nthreads; i++) {
		struct run_thread *t = &r->threads[i];
		uint64_t began = mach_thread_insns(r, i), n;

		if (!left[i] || t->s.life != LIFE_RUNNING)
			continue;
		exec_go(r, x, t, left[i] < ONWARD_TURN ? left[i] : ONWARD_TURN);
		n = mach_thread_insns(r, i) - began;
		/* Done: it left what is known, failed, or ended the process. */
		left[i] = x->done || n >= left[i] ? 0 : left[i] - n;
		x->done = false;
		if (r->hooks && r->hooks->stop && r->hooks->stop(r->hooks->arg))
			return false;
	}
	return r->time != before;
}

/* Calls they are inside of end as recorded or are made again; the failing thread stays. */
static void settle_calls(struct mach_run *r, struct execution *x, const uint64_t *left)
{
	for (size_t i = 0; i < r->nthreads; i++) {
		struct run_thread *t = &r->threads[i];

		if (left[i] && t->s.life == LIFE_IN_CALL)
			exec_adopt_call(r, x, t);
		if (left[i])
			t->s.action = ACT_RUN;
	}
}

void mach_go_onward(struct mach_run *r, uint64_t insns)
{
	const struct trc_failure *f = r->t->failure;
	struct mach_outcome out = { 0 };
	struct execution x = { .out = &out, .onward = true, .fate = { .thread = NO_THREAD } };
	uint64_t *left = xcalloc(r->nthreads + 1, sizeof *left);

	for (size_t i = 0; i < r->nthreads; i++)
		left[i] = f && f->thread == i ? 0 : insns;
	run_computed_forget(r);
	exec_new(r, &x);
	mach_set_breaks(r->m, NULL, 0);
	r->free = true;
	settle_calls(r, &x, left);
	while (round_of_turns(r, &x, left))
		;
	run_settle(r);
	r->free = false;
	exec_free(r, &x);
	mach_outcome_free(&out);
	free(left);
}
