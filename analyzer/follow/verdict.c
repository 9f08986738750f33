/* The end of a run against the record: failure, registers, final memory. */
#include "analyzer/follow/follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const reg_names[TRC_NREGS] = {
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",    "r8",
	"r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip", "rflags",
};

char *run_place(struct mach_run *r, uint64_t pc)
{
	struct img_module *m = img_module_at(r->images, pc);
	char *symbol = img_symbol_text(r->images, pc);
	char *s = xasprintf("0x%" PRIx64 " (%s%s%s)", pc, m ? img_module_name(m) : "",
			    m ? ": " : "", symbol);

	free(symbol);
	return s;
}

bool mach_regs(struct mach_run *r, uint32_t thread, uint64_t regs[TRC_NREGS], uint64_t *fs_base)
{
	const VexGuestAMD64State *g;

	/* Killed before its first instruction a thread has ended and never had any. */
	if (thread >= r->nthreads || r->threads[thread].s.life == LIFE_UNBORN ||
	    !r->threads[thread].start)
		return false;
	if (r->current == thread) {
		mach_sync_registers(r->m);
		g = &r->m->frame->g;
	} else {
		g = &r->threads[thread].s.cpu.g;
	}
	memcpy(regs, &g->guest_RAX, 16 * 8);
	regs[TRC_RIP] = g->guest_RIP;
	regs[TRC_RFLAGS] = mach_rflags(g) | 0x202;
	if (fs_base)
		*fs_base = g->guest_FS_CONST;
	return true;
}

/* Assertions and csched_fail() record where, not every register. */
static bool has_registers(const struct trc_failure *f)
{
	return f->rec.flags == TRC_FAIL_SIGNAL || f->rec.flags == TRC_FAIL_ABORT ||
	       f->rec.flags == TRC_FAIL_EXCEPTION;
}

static void compare_registers(struct mach_run *r, const struct trc_failure *f,
			      const uint64_t regs[TRC_NREGS])
{
	struct mach_result *res = &r->res;
	uint64_t flags = 0xcd5; /* carry parity adjust zero sign direction overflow */

	for (unsigned i = 0; i < TRC_NREGS; i++) {
		uint64_t mine = regs[i], theirs = f->regs[i];

		if (i == TRC_RFLAGS) {
			mine &= flags;
			theirs &= flags;
		}
		if (mine != theirs)
			res->differ[res->ndiffer++] =
				(struct mach_register_difference){ reg_names[i], regs[i], f->regs[i] };
	}
}

void verdict_failure(struct mach_run *r, struct run_thread *t)
{
	const struct trc_failure *f = r->t->failure;
	struct mach_result *res = &r->res;
	uint64_t regs[TRC_NREGS];

	res->failure_reached = true;
	res->same_thread = f->thread == t->index;
	res->same_kind = true;
	if (!mach_regs(r, t->index, regs, NULL))
		return;
	if (has_registers(f)) {
		regs[TRC_RIP] = run_shown_pc(r, regs[TRC_RIP]);
		res->same_pc = regs[TRC_RIP] == f->regs[TRC_RIP];
		compare_registers(r, f, regs);
	} else if (f->rec.flags == TRC_FAIL_EXIT || f->rec.flags == TRC_FAIL_DEADLOCK ||
		   f->rec.flags == TRC_FAIL_HANG) {
		res->same_pc = true; /* the call that never returned was compared on entry */
	} else {
		/* The record primitive was called with the failing site as an argument. */
		res->same_pc = regs[2] == f->regs[TRC_RIP];
	}
	for (size_t i = 0; i < res->ndiffer; i++)
		if (strcmp(res->differ[i].name, "rflags"))
			run_undetermined(r, "register %s of %s", res->differ[i].name,
					 trc_thread_id(r->t, t->index));
}

/* ---- the stream `final` ---- */

static bool skipped(const struct trc_region *g)
{
	return g->rec.flags & (TRC_REGION_SHIM | TRC_REGION_SHARED);
}

/*
 * Below a stack pointer and its red zone nothing is alive: what lies there is
 * left over from calls that returned (the loader's xsavec area, whose unused
 * parts depend on the processor).
 */
static bool is_dead_stack(struct mach_run *r, uint64_t address)
{
	for (uint32_t i = 0; i < r->nthreads; i++) {
		uint64_t regs[TRC_NREGS], lo, hi;

		if (mach_regs(r, i, regs, NULL) && address < regs[TRC_RSP] - 128 &&
		    mach_mapping(r, regs[TRC_RSP], &lo, &hi) && address >= lo)
			return true;
	}
	return false;
}

static void compare_pages(struct mach_run *r, const struct trc_pages *p)
{
	uint8_t mine[MEM_PAGE];

	for (uint32_t at = 0; at < p->length; at += MEM_PAGE) {
		uint32_t n = p->length - at < MEM_PAGE ? p->length - at : MEM_PAGE;

		/* What no recorded call mapped is the recorder's own. */
		if (!mem_peek(r->m->mem, p->address + at, mine, n))
			continue;
		r->res.final_bytes += n;
		if (!memcmp(mine, p->bytes + at, n))
			continue;
		for (uint32_t i = 0; i < n; i++)
			if (mine[i] != p->bytes[at + i] &&
			    !is_dead_stack(r, p->address + at + i) && !r->res.final_differ++)
				r->res.final_first = p->address + at + i;
	}
}

void verdict_final_memory(struct mach_run *r)
{
	struct trc_iter it;
	const struct trc_rec *rec;
	bool skip = false;

	if (!r->t->final)
		return;
	r->res.final_compared = true;
	trc_iter_init(&it, r->t->final);
	for (;;) {
		err_t e = trc_next(&it, &rec);

		if (e) {
			run_note(r, "%s", e->msg);
			err_free(e);
			return;
		}
		if (!rec)
			return;
		if (rec->type == TRC_REGION)
			skip = skipped((const struct trc_region *)rec);
		else if (rec->type == TRC_PAGES && !skip)
			compare_pages(r, (const struct trc_pages *)rec);
	}
}
