/*
 * Signals that one thread sends another: who sent it, at which of its system calls, and where
 * the other one stood when its handler began. A live run has to be brought to the same.
 */
#include "analyzer/symtrace/extract_internal.h"

#include <sys/syscall.h>

#define MOST_SENT 1000

/* Which signal a call sends, and to which thread (0: to any of the process). False: none. */
static bool sends(const struct trc_enter *e, uint32_t *signal, uint32_t *tid)
{
	*tid = 0;
	switch (e->rec.flags) {
	case SYS_tgkill:
	case SYS_rt_tgsigqueueinfo:
		*tid = (uint32_t)e->args[1];
		*signal = (uint32_t)e->args[2];
		return true;
	case SYS_tkill:
		*tid = (uint32_t)e->args[0];
		*signal = (uint32_t)e->args[1];
		return true;
	case SYS_kill:
	case SYS_rt_sigqueueinfo:
		*signal = (uint32_t)e->args[1];
		return true;
	default:
		return false;
	}
}

void ext_signals_call(struct ext *x, uint32_t thread, const struct trc_enter *enter, bool returned)
{
	struct ext_thread *th = ext_thread(x, thread);
	struct ext_sent s = { .thread = thread, .pc = enter->pc };

	/* Inside the instruction: nothing else is counted there. */
	s.n = ext_count(x, thread, enter->pc + 1, mach_thread_insns(x->run, thread));
	if (returned) {
		th->call_pc = enter->pc;
		th->call_n = s.n;
		th->call_events = (uint32_t)x->trace->threads[thread].nevents;
	} else if (sends(enter, &s.signal, &s.tid) && x->sent.n < MOST_SENT) {
		vec_push(&x->sent, s);
	}
}

/* The oldest that may have been it: of one kind they are delivered as they were sent. */
static struct ext_sent *sender_of(struct ext *x, uint32_t receiver, uint32_t signal)
{
	const struct trc_thread *rec = x->t->threads.v[receiver].rec;

	for (size_t i = 0; i < x->sent.n; i++) {
		struct ext_sent *s = &x->sent.v[i];

		if (!s->delivered && s->signal == signal && (!s->tid || (rec && s->tid == rec->tid)))
			return s;
	}
	return NULL;
}

void ext_signals_delivered(struct ext *x, uint32_t receiver, uint32_t signal)
{
	const struct ext_thread *th = ext_thread(x, receiver);
	struct ext_sent *s = sender_of(x, receiver, signal);
	uint32_t nevents = (uint32_t)x->trace->threads[receiver].nevents;

	if (!s)
		return;
	s->delivered = true;
	/* Without the beginning of the run nobody counted. */
	if (s->thread == receiver || ext_is_part(x))
		return;
	bool behind_call = th->call_pc && th->call_events == nevents;
	vec_push(&x->interrupts, (struct ext_interrupt){
		.sender = s->thread, .receiver = receiver, .sent_pc = s->pc, .sent_n = s->n,
		.call_pc = behind_call ? th->call_pc : 0, .call_n = th->call_n, .next = nevents });
}
