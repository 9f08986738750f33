/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a thread that is stepped through does to memory and locks, noted as events. */
#include "analyzer/testgen/heap.h"
#include "analyzer/testgen/heap_guard.h"
#include "analyzer/testgen/step.h"

#include <string.h>

#define MOST_BLOCK (1ull << 30) /* bytes; what says that it is larger is no block */

void step_note(struct stepper *s, enum job_event_kind kind, uint64_t address, uint64_t size)
{
	struct job_thread *t = s->t;

	/* Its own stack is nobody else's, as long as it does not hand out addresses of it. */
	if ((kind == JOB_READ || kind == JOB_WRITE || kind == JOB_ATOMIC) && address >= s->stack_low &&
	    address < s->stack_high)
		return;
	if (t->nevents == JOB_EVENTS) {
		t->overflow = true;
		return;
	}
	t->events[t->nevents++] = (struct job_event){
		.address = address, .size = size, .step = t->nsteps ? t->nsteps - 1 : 0,
		.pc = (uint32_t)(s->last_pc - s->job->bias), .kind = kind, .call = s->call };
}

/* What the last instruction or function has read and written is still there. */
void step_note_values(struct stepper *s)
{
	struct job_thread *t = s->t;

	for (uint32_t i = s->unseen; i < t->nevents && s->job->mode == JOB_TRACE; i++) {
		struct job_event *e = &t->events[i];
		const struct job_event *next = i + 1 < t->nevents ? e + 1 : NULL;

		/* What it has read and overwritten is gone. */
		if ((e->kind != JOB_READ && e->kind != JOB_WRITE) || !e->size || e->size > sizeof e->value ||
		    (e->kind == JOB_READ && next && next->kind == JOB_WRITE && next->address == e->address))
			continue;
		memcpy(&e->value, (const void *)e->address, e->size);
		e->known = true;
	}
	s->unseen = t->nevents;
}

/* Of a block that is freed: as the allocator says, if that is one. */
static uint64_t size_of_block(uint64_t block)
{
	uint64_t header;

	if (heap_guard_has((void *)block))
		return heap_guard_size((void *)block);
	return !(block & 15) && state_readable(block - 8, &header, sizeof header) && (header & ~7ull) > 8 &&
	       header < MOST_BLOCK ? (header & ~7ull) - 8 : 8;
}

void step_note_accesses(struct stepper *s, const struct step_insn *in, const greg_t *g)
{
	for (unsigned i = 0; i < in->noperands; i++) {
		const struct step_operand *o = &in->operands[i];
		uint64_t at = (uint64_t)o->displacement;

		if (o->base >= 0)
			at += (uint64_t)g[o->base];
		if (o->index >= 0)
			at += (uint64_t)g[o->index] * o->scale;
		if (o->access & 1)
			step_note(s, in->locked ? JOB_ATOMIC : JOB_READ, at, o->size);
		if (o->access & 2)
			step_note(s, JOB_WRITE, at, o->size);
	}
}

/* What is called by way of a table of addresses is called from where that was called. */
static uint64_t place_of_call(const struct stepper *s)
{
	for (uint32_t k = s->t->nsteps; k-- > 0;) {
		uint64_t pc = s->job->bias + (s->t->pcs[k] & JOB_PLACE_MASK);
		const struct step_insn *in = step_insn_at(pc);

		if (!in || !(in->is_landing || (in->is_branch && in->noperands)))
			return pc;
	}
	return s->last_pc;
}

void step_note_call_out(struct stepper *s, uint64_t pc, const greg_t *g)
{
	uint64_t a = (uint64_t)g[REG_RDI], b = (uint64_t)g[REG_RSI], c = (uint64_t)g[REG_RDX];

	s->last_pc = place_of_call(s);
	s->effect = step_effect_of(pc);
	s->effect_argument = a;
	switch (s->effect) {
	case STEP_UNLOCKS: step_note(s, JOB_UNLOCK, a, 0); break;
	case STEP_WAITS: step_note(s, JOB_UNLOCK, b, 0); s->effect_argument = b; break;
	case STEP_FREES:
	case STEP_REALLOCATES:
		if (a)
			step_note(s, JOB_FREE, a, size_of_block(a));
		break;
	case STEP_COPIES: step_note(s, JOB_READ, b, c); step_note(s, JOB_WRITE, a, c); break;
	case STEP_FILLS: step_note(s, JOB_WRITE, a, c); break;
	case STEP_READS: step_note(s, JOB_READ, a, 8); break;
	case STEP_COMPARES: step_note(s, JOB_READ, a, 8); step_note(s, JOB_READ, b, 8); break;
	case STEP_COPIES_TEXT: step_note(s, JOB_READ, b, 8); step_note(s, JOB_WRITE, a, 8); break;
	default: break;
	}
}

void step_note_came_back(struct stepper *s, const greg_t *g)
{
	uint64_t result = (uint64_t)g[REG_RAX];

	switch (s->effect) {
	case STEP_LOCKS: case STEP_WAITS: step_note(s, JOB_LOCK, s->effect_argument, 0); break;
	case STEP_SHARES: step_note(s, JOB_SHARED_LOCK, s->effect_argument, 0); break;
	case STEP_TRIES:
		if (!(int)result)
			step_note(s, JOB_LOCK, s->effect_argument, 0);
		break;
	case STEP_ALLOCATES:
	case STEP_REALLOCATES:
		if (result)
			step_note(s, JOB_ALLOC, result, heap_size((void *)result));
		break;
	default: break;
	}
	s->effect = STEP_NOTHING;
}
