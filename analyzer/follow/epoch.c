// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A run that begins at a checkpoint of the flight recorder: every thread stands somewhere on its path, or is inside a system call.
 *
 * The checkpoint is in the memory stream: TRC_STATE for each thread, TRC_TICKETS for the accesses that are ordered. From
 * there on nothing is different. What was before is not in the trace, which the notes say, but for what still matters of it: locks
 * that threads hold and what they wait for are in the checkpoint (TRC_CARRIED); counts of semaphores, and what else objects of
 * synchronisation have become, stand in memory.
 */
#include "analyzer/follow/follow.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A state as the first moment of a thread. Vector registers that nobody had saved stand in the first record of its stream. */
static struct trc_start *start_of(const struct trc_state *s, const struct trc_start *later)
{
	bool own = s->xsave_len || !(s->rec.flags & TRC_STATE_IN_CALL) || !later;
	uint32_t len = own ? s->xsave_len : later->xsave_len;
	struct trc_start *b = xcalloc(1, sizeof *b + len);

	memcpy(b->regs, s->regs, sizeof b->regs);
	b->fs_base = own ? s->fs_base : later->fs_base;
	b->gs_base = s->gs_base;
	b->tsc = s->tsc;
	b->clear_tid = s->clear_tid;
	b->xsave_len = len;
	memcpy(b->xsave, own ? s->xsave : later->xsave, len);
	return b;
}

/* The call that it is in, as its record would say. */
static struct trc_enter *call_of(const struct trc_state *s)
{
	static const uint8_t arguments[6] = { 7, 6, 2, 10, 8, 9 };
	struct trc_enter *e = xcalloc(1, sizeof *e);

	e->rec.type = TRC_ENTER;
	e->rec.flags = (uint16_t)s->regs[0];
	e->rec.size = sizeof *e;
	e->tsc = s->tsc;
	e->path_pos = s->path_pos;
	e->pc = s->regs[TRC_RIP];
	for (unsigned i = 0; i < 6; i++)
		e->args[i] = s->regs[arguments[i]];
	return e;
}

static void take_state(struct mach_run *r, const struct trc_state *s)
{
	struct run_thread *t = s->thread < r->nthreads ? &r->threads[s->thread] : NULL;

	if (!t || t->state)
		return;
	t->state = s;
	t->begun = start_of(s, t->start);
	t->start = t->begun;
	if (s->rec.flags & TRC_STATE_IN_CALL)
		t->resting = call_of(s);
	r->began = true;
}

static void take_tickets(struct mach_run *r, const struct trc_tickets *k)
{
	for (uint32_t i = 0; i < k->n; i++)
		r->tickets[k->shards[i].shard] = k->shards[i].ticket;
}

static int by_address(const void *a, const void *b)
{
	const struct mach_object *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Each once; how many there are. */
static size_t sort_objects(struct mach_run *r)
{
	size_t n = 0;

	if (r->before.n)
		qsort(r->before.v, r->before.n, sizeof *r->before.v, by_address);
	for (size_t i = 0; i < r->before.n; i++)
		if (!n || r->before.v[i].address != r->before.v[n - 1].address)
			r->before.v[n++] = r->before.v[i];
	return r->before.n = n;
}

/* A spin lock is one word, and what lies behind it something else. */
static void add_object(struct mach_run *r, const struct trc_sync *s)
{
	struct mach_object o = { .address = s->object };
	enum trc_op op = TRC_SYNC_OP(s->rec.flags);
	bool spin = op == TRC_OP_SPINLOCK || op == TRC_OP_SPINTRYLOCK || op == TRC_OP_SPINUNLOCK;

	/* The last words may lie behind the end of the mapping. */
	for (unsigned i = 0; i < (spin ? 1 : sizeof o.words / sizeof *o.words); i++)
		if (!mem_peek(r->m->mem, o.address + 4 * i, &o.words[i], 4))
			break;
	vec_push(&r->before, o);
}

/* Of all objects that threads come by from here on, what is in memory now. */
static void look_at_objects(struct mach_run *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->nthreads; i++)
		for (size_t k = 0; k < r->threads[i].recs.n; k++) {
			const struct trc_rec *rec = r->threads[i].recs.v[k];

			if (rec->type != TRC_SYNC)
				continue;
			add_object(r, (const struct trc_sync *)rec);
			/* Most come by often. */
			if (r->before.n > 2 * n + 1000)
				n = sort_objects(r);
		}
	for (size_t i = 0; i < r->carried.n; i++)
		add_object(r, &r->carried.v[i]->sync);
	sort_objects(r);
}

bool mach_began(const struct mach_run *r)
{
	return r->began;
}

size_t mach_carried(const struct mach_run *r, const struct trc_carried *const **out)
{
	*out = (const struct trc_carried *const *)r->carried.v;
	return r->carried.n;
}

const struct mach_object *mach_object_before(const struct mach_run *r, uint64_t address)
{
	struct mach_object key = { .address = address };

	return r->before.n ? bsearch(&key, r->before.v, r->before.n, sizeof key, by_address) : NULL;
}

static void note_beginning(struct mach_run *r)
{
	double when = r->t->began ? trc_seconds(r->t, r->t->began->tsc) : -1;

	if (when < 0)
		run_note(r, "the trace begins at a checkpoint: what the run did before is not in it");
	else
		run_note(r, "the trace begins at a checkpoint, %.1f s after the start of the run: what it did before is not in it",
			 when);
}

err_t run_epoch_load(struct mach_run *r)
{
	const struct trc_rec *rec;
	struct trc_iter it;

	if (r->t->epoch <= 1)
		return NULL;
	for (trc_iter_init(&it, r->t->memory);;) {
		TRY(trc_next(&it, &rec));
		if (!rec)
			break;
		if (rec->type == TRC_STATE)
			take_state(r, (const struct trc_state *)rec);
		else if (rec->type == TRC_TICKETS)
			take_tickets(r, (const struct trc_tickets *)rec);
		else if (rec->type == TRC_CARRIED && ((const struct trc_carried *)rec)->by < r->nthreads)
			vec_push(&r->carried, (const struct trc_carried *)rec);
	}
	if (!r->began)
		return err_new(ERR_INPUT, "%s: the checkpoint of epoch %" PRIu32 " holds no thread", r->t->path, r->t->epoch);
	look_at_objects(r);
	note_beginning(r);
	return NULL;
}

static void begin(struct mach_run *r, struct run_thread *t)
{
	const struct trc_state *s = t->state;

	run_born(r, t);
	t->s.cursor.pos = s->path_pos;
	t->s.cursor.generation = s->generation;
	t->s.clock_pos = s->path_pos;
	if (!t->resting)
		return;
	t->s.call = t->resting;
	t->s.call_pc = t->resting->pc;
	t->s.life = LIFE_IN_CALL;
	path_goto(&t->s.cursor, t->resting->pc + 2);
	/* As at an entry: a call that another order has it make again takes its instruction back. */
	t->s.cpu.insns++;
	t->s.clock_insn = t->s.cpu.insns;
	t->s.action = run_after_entry(t);
}

void run_epoch_begin(struct mach_run *r)
{
	for (size_t i = 0; i < r->nthreads; i++)
		if (r->threads[i].state)
			begin(r, &r->threads[i]);
}
