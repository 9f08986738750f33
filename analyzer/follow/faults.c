/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults that mappings do not tell: behind the end of a file that others made shorter, on a stack whose limit was
 * changed, next to a mapping in its way. The record has the address, the place and the registers: accesses to that page
 * stop the engine, and the one that is the recorded one faults. The other way round a stack grows here wherever the
 * record shows no fault.
 */
#include "analyzer/follow/thread.h"

#include "analyzer/engine/code.h"

#include <signal.h>
#include <string.h>

#define NEAR 8u             /* records before a fault that are looked over for it */
#define STACK_MOST (1ull << 30) /* bytes: farther than this from its end a stack is not taken to grow */

/* What the recorder writes as a frame: restorer, ucontext, siginfo. Offsets in bytes. */
#define FRAME_REGS 48u /* r8 .. r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip */
#define FRAME_INFO 312u
#define FRAME_SIZE 440u

static bool is_memory_fault(int signal, int code)
{
	return (signal == SIGSEGV || signal == SIGBUS) && code > 0 && code < 0x80;
}

/* The thread's next record, when it is a fault inside a fragment. */
static const struct trc_signal *next_fault(const struct run_thread *t, uint64_t *address)
{
	int32_t info[3];

	for (size_t i = t->s.rec; i < t->recs.n && i < t->s.rec + NEAR; i++) {
		const struct trc_signal *s = (const void *)t->recs.v[i];

		if (s->rec.type == TRC_TIME || s->rec.type == TRC_GENERATION || s->rec.type == TRC_REGS)
			continue;
		if (s->rec.type != TRC_SIGNAL || !s->fragment || s->frame_len < FRAME_SIZE)
			return NULL;
		memcpy(info, s->bytes + FRAME_INFO, sizeof info);
		memcpy(address, s->bytes + FRAME_INFO + 16, sizeof *address);
		return is_memory_fault(info[0], info[2]) ? s : NULL;
	}
	return NULL;
}

static const struct trc_failure *last_fault(const struct mach_run *r, const struct run_thread *t)
{
	const struct trc_failure *f = r->t->failure;

	return f && f->thread == t->index && f->rec.flags == TRC_FAIL_SIGNAL && is_memory_fault(f->signal, f->code) &&
			       t->recs.n - t->s.rec <= NEAR && run_ended(t) ? f : NULL;
}

void run_expect_fault(struct mach_run *r, struct run_thread *t)
{
	const struct trc_failure *f;
	uint64_t address = MEM_NOTHING;

	if (!r->free && !next_fault(t, &address)) {
		f = last_fault(r, t);
		address = f ? f->address : MEM_NOTHING;
	}
	if (address != r->m->mem->refused)
		mem_refuse(r->m->mem, address);
}

bool run_fault_expected(const struct mach_run *r)
{
	return r->m->fault.signal == SIGSEGV && r->m->mem->refused != MEM_NOTHING &&
	       r->m->fault.address / MEM_PAGE == r->m->mem->refused / MEM_PAGE;
}

bool run_fault_elsewhere(const struct mach_run *r, const struct run_thread *t)
{
	const struct trc_failure *f = last_fault(r, t);
	uint64_t address;

	if (!next_fault(t, &address)) {
		if (!f)
			return true;
		address = f->address;
	}
	return address / MEM_PAGE != r->m->fault.address / MEM_PAGE;
}

bool run_registers_are(struct mach_run *r, const uint64_t *regs)
{
	mach_sync_registers(r->m);
	for (unsigned i = 0; i < 16; i++)
		if (*(uint64_t *)mach_at(r->m, gpr_offset(i)) != regs[i])
			return false;
	return true;
}

static bool registers_are_interrupted(struct mach_run *r, const struct trc_signal *s)
{
	static const uint8_t order[16] = { 8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4 };
	uint64_t frame[16], regs[16];

	memcpy(frame, s->bytes + FRAME_REGS, sizeof frame);
	for (unsigned i = 0; i < 16; i++)
		regs[order[i]] = frame[i];
	return run_registers_are(r, regs);
}

enum action run_fault_is_recorded(struct mach_run *r, struct run_thread *t)
{
	uint64_t pc = r->m->frame->g.guest_RIP, address;
	const struct trc_signal *s = next_fault(t, &address);
	const struct trc_failure *f = last_fault(r, t);

	if (s && s->interrupted_pc == pc && registers_are_interrupted(r, s)) {
		run_pass_marks(t);
		while (run_head(t) && run_head(t) != &s->rec)
			t->s.rec++;
		return ACT_SIGNAL;
	}
	if (!s && f && f->regs[TRC_RIP] == pc && run_registers_are(r, f->regs))
		return ACT_FAILURE;
	return ACT_RUN;
}

bool run_stack_grows(struct mach_run *r)
{
	uint64_t at = r->m->fault.address & ~(uint64_t)(MEM_PAGE - 1);

	if (r->m->fault.signal != SIGSEGV || mem_find(r->m->mem, at))
		return false;
	for (size_t i = 0; i < r->growing.n; i++) {
		uint64_t end = r->growing.v[i];
		const struct mem_map *map = mem_find(r->m->mem, end - 1);
		uint8_t prot;

		if (at >= end || end - at > STACK_MOST || !map)
			continue;
		for (const struct mem_map *below = map; below; below = mem_find(r->m->mem, map->start - 1))
			map = below;
		prot = map->prot;
		if (map->start > at && !mem_overlaps(r->m->mem, at, map->start))
			return mem_map(r->m->mem, at, map->start, prot, false);
	}
	return false;
}
