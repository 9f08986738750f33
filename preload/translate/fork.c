/*
 * In the child after fork: a trace of its own, which begins like the first
 * one did, with a snapshot and the registers of its only thread.
 */
#include "preload/translate/emit.h"
#include "preload/translate/epoch.h"
#include "preload/translate/signal.h"
#include "preload/translate/syscall.h"


void tr_regions_reset(void);
void tr_tables_reset(void);

static void only_me(struct tr_ctx *self)
{
	uint8_t *shards = (uint8_t *)(uint64_t)(tr_low + LOW_SHARDS);

	tr_ctx_forget_leaving();
	for (struct tr_ctx *c = tr.contexts; c; c = c->next)
		if (c != self) {
			c->alive = 0;
			tr_ctx_leaving(c);
		}
	/* held by nobody here, and tickets begin anew */
	raw_empty(shards, TRC_SHARDS * 64ul);
}

void tr_forked(struct tr_ctx *c);
void tr_forked(struct tr_ctx *c)
{
	uint64_t next = c->fork_next;

	only_me(c);
	raw(SYS_set_tid_address, &c->alive);
	c->regs[REG_RAX_] = 0;
	c->regs[REG_RCX_] = next;
	c->regs[11] = c->rflags;
	c->pc = next;
	c->vfork_child = false;
	/* Signals noted are the parent's. */
	memset(c->queue, 0, sizeof c->queue);
	memset(c->held, 0, sizeof c->held);
	c->pending = 0;
	crash_forget(c);
	/* The parent's files are not ours to write. */
	rec_forget(&tr_frags_stream);
	c->path_dead = true;
	shim_after_fork();
	struct shim_thread *t = shim.state == SHIM_RECORDING ? shim_self() : NULL;

	tr_lock();
	tr.multi = false;
	tr.seq = 0;
	tr.generation++; /* what the caller knows about fragments is void */
	tr.unsettled = false;
	if (!t || !rec_open(&tr_frags_stream, TRC_STREAM_FRAGS, 0)) {
		tr.detached = true; /* its streams are dead: nothing is written any more */
		tr_unlock();
		sig_set_kernel_mask(c->sigmask);
		return;
	}
	tr_tables_reset();
	tr_profile_forget();
	tr_unlock();
	c->thread = t;
	t->translator = c;
	tr_path_open(c);
	tr_record_machine();
	tr_snapshot(TRC_STREAM_MEMORY);
	rec_identity_clock();
	tr_record_start(c);
	tr_epochs_start(c);
	tr_note_generation(c, c->pc);
	/* What was sent to the child by now comes in here. */
	sig_set_kernel_mask(c->sigmask);
}
