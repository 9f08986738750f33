/*
 * Call stacks. Nearly all code has CFI of the plain form "CFA is register +
 * offset, registers are saved at CFA + offset": that is compiled into a row per
 * pc and kept. What is more complicated (PLT entries, signal trampolines) is
 * evaluated through libdw each time.
 */
#include "analyzer/image/internal.h"

#include <string.h>
#include <sys/mman.h>

const uint8_t img_reg_of_x86[16] = {
	IMG_RAX, IMG_RCX, IMG_RDX, IMG_RBX, IMG_RSP, IMG_RBP, IMG_RSI, IMG_RDI,
	IMG_R8,	 IMG_R9,  IMG_R10, IMG_R11, IMG_R12, IMG_R13, IMG_R14, IMG_R15,
};

/*
 * Registers a callee preserves when its CFI is silent about them. libdw 0.188
 * has a default of its own, but takes rax for rbx in it.
 */
#define PRESERVED                                                                \
	(1u << IMG_RBX | 1u << IMG_RBP | 1u << IMG_R12 | 1u << IMG_R13 | 1u << IMG_R14 | \
	 1u << IMG_R15)

static bool knows(const struct img_regs *r, unsigned reg)
{
	return r->known >> reg & 1;
}

static void open_cfi(struct img_module *m)
{
	if (m->cfi_tried)
		return;
	m->cfi_tried = true;
	if (m->code.elf)
		m->eh_frame = dwarf_getcfi_elf(m->code.elf);
	if (img_module_dwarf(m))
		m->debug_frame = dwarf_getcfi(m->dwarf);
}

/* The caller frees the frame. */
static Dwarf_Frame *frame_at(struct img_module *m, uint64_t vaddr)
{
	Dwarf_Frame *f = NULL;

	open_cfi(m);
	if (m->eh_frame && dwarf_cfi_addrframe(m->eh_frame, vaddr, &f) == 0)
		return f;
	if (m->debug_frame && dwarf_cfi_addrframe(m->debug_frame, vaddr, &f) == 0)
		return f;
	return NULL;
}

/* ---- rows -------------------------------------------------------------- */

static bool simple_cfa(Dwarf_Frame *f, struct img_row *row)
{
	Dwarf_Op *ops;
	size_t n;
	uint64_t reg;
	int64_t offset;

	if (dwarf_frame_cfa(f, &ops, &n) || n != 1)
		return false;
	if (ops->atom >= DW_OP_breg0 && ops->atom <= DW_OP_breg31) {
		reg = ops->atom - DW_OP_breg0;
		offset = (int64_t)ops->number;
	} else if (ops->atom == DW_OP_bregx) {
		reg = ops->number;
		offset = (int64_t)ops->number2;
	} else {
		return false;
	}
	row->cfa_reg = (uint8_t)reg;
	row->cfa_offset = (int32_t)offset;
	return reg < IMG_RIP && offset == row->cfa_offset;
}

static bool simple_register(Dwarf_Frame *f, unsigned reg, struct img_row *row)
{
	Dwarf_Op mem[3], *ops;
	size_t n;

	if (dwarf_frame_register(f, (int)reg, mem, &ops, &n))
		return false;
	if (n == 0) {
		row->same |= PRESERVED & 1u << reg;
		return true;
	}
	if (n > 2 || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (n == 2 && ops[1].atom != DW_OP_plus_uconst)
		return false;
	int64_t offset = n == 2 ? (int64_t)ops[1].number : 0;

	row->saved |= 1u << reg;
	row->at_cfa[reg] = (int32_t)offset;
	return offset == row->at_cfa[reg];
}

static struct img_row make_row(struct img_module *m, uint64_t vaddr)
{
	struct img_row row = { 0 };
	Dwarf_Frame *f = frame_at(m, vaddr);

	if (!f) {
		row.none = true;
		return row;
	}
	dwarf_frame_info(f, NULL, NULL, &row.signal);
	row.simple = simple_cfa(f, &row);
	for (unsigned reg = 0; row.simple && reg < IMG_NREGS; reg++)
		if (reg != IMG_RSP) /* the caller's is the CFA, by definition of the latter */
			row.simple = simple_register(f, reg, &row);
	free(f);
	return row;
}

static const struct img_row *row_at(struct img_module *m, uint64_t vaddr)
{
	uint64_t *known = img_table_find(&m->row_of, vaddr);

	if (known)
		return &m->rows.v[*known];
	struct img_row row = make_row(m, vaddr);

	vec_push(&m->rows, row);
	img_table_put(&m->row_of, vaddr, m->rows.n - 1);
	return &m->rows.v[m->rows.n - 1];
}

/* ---- one step outwards ------------------------------------------------- */

static bool step_simple(struct img_set *set, const struct img_row *row, struct img_regs *regs,
			const struct img_memory *mem)
{
	struct img_regs next = *regs;

	if (!knows(regs, row->cfa_reg) || !(row->saved >> IMG_RIP & 1))
		return false;
	uint64_t cfa = regs->r[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_offset;

	next.known &= row->same;
	for (unsigned reg = 0; reg < IMG_NREGS; reg++)
		if ((row->saved >> reg & 1) &&
		    img_memory_read(set, mem, cfa + (uint64_t)(int64_t)row->at_cfa[reg],
				    &next.r[reg], 8))
			next.known |= 1u << reg;
	next.r[IMG_RSP] = cfa;
	next.known |= 1u << IMG_RSP;
	if (!knows(&next, IMG_RIP))
		return false;
	*regs = next;
	return true;
}

static bool complex_cfa(struct img_eval *e, Dwarf_Frame *f)
{
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(f, &ops, &n) || !n)
		return false;
	struct img_location at = img_eval(e, ops, n, NULL);

	e->cfa_known = at.where != IMG_LOST && at.where != IMG_IN_REGISTER;
	e->cfa = at.value;
	return e->cfa_known;
}

static void complex_register(struct img_eval *e, Dwarf_Frame *f, unsigned reg,
			     struct img_regs *next)
{
	Dwarf_Op mem[3], *ops;
	size_t n;

	if (dwarf_frame_register(f, (int)reg, mem, &ops, &n)) {
		next->known &= ~(1u << reg);
		return;
	}
	if (n == 0 && (PRESERVED >> reg & 1))
		return;
	struct img_location at = { IMG_LOST, 0 };

	if (n)
		at = img_eval(e, ops, n, NULL);
	if (at.where != IMG_LOST && img_location_read(e, at, &next->r[reg], 8))
		next->known |= 1u << reg;
	else
		next->known &= ~(1u << reg);
}

static bool step_complex(struct img_module *m, uint64_t vaddr, struct img_regs *regs,
			 const struct img_memory *mem)
{
	struct img_eval e = { .m = m, .regs = regs, .mem = mem, .vaddr = vaddr };
	struct img_regs next = *regs;
	Dwarf_Frame *f = frame_at(m, vaddr);
	bool good = f && complex_cfa(&e, f);

	for (unsigned reg = 0; good && reg < IMG_NREGS; reg++)
		complex_register(&e, f, reg, &next);
	free(f);
	if (!good || !knows(&next, IMG_RIP))
		return false;
	if (!knows(&next, IMG_RSP)) {
		next.r[IMG_RSP] = e.cfa;
		next.known |= 1u << IMG_RSP;
	}
	*regs = next;
	return true;
}

static bool is_code(struct img_set *set, uint64_t addr)
{
	const struct img_live *l = img_live_at(set, addr);

	return l && (l->prot & PROT_EXEC);
}

/*
 * No CFI. A call through a bad pointer leaves its return address on top of the
 * stack; otherwise there may be a chain of frame pointers. Either is believed
 * only when it leads into code.
 */
static bool step_blind(struct img_set *set, struct img_regs *regs, const struct img_memory *mem,
		       bool is_return)
{
	uint64_t word[2];
	struct img_regs next = *regs;

	if (!is_return && knows(regs, IMG_RSP) && !is_code(set, regs->r[IMG_RIP]) &&
	    img_memory_read(set, mem, regs->r[IMG_RSP], word, 8) && is_code(set, word[0] - 1)) {
		regs->r[IMG_RIP] = word[0];
		regs->r[IMG_RSP] += 8;
		return true;
	}
	if (!knows(regs, IMG_RBP) || !knows(regs, IMG_RSP) ||
	    regs->r[IMG_RBP] < regs->r[IMG_RSP] ||
	    !img_memory_read(set, mem, regs->r[IMG_RBP], word, 16) || !is_code(set, word[1] - 1))
		return false;
	next.r[IMG_RSP] = regs->r[IMG_RBP] + 16;
	next.r[IMG_RBP] = word[0];
	next.r[IMG_RIP] = word[1];
	next.known = 1u << IMG_RSP | 1u << IMG_RBP | 1u << IMG_RIP;
	*regs = next;
	return true;
}

bool img_unwind_step(struct img_set *set, struct img_regs *regs, const struct img_memory *mem,
		     bool is_return, bool *signal)
{
	uint64_t pc = regs->r[IMG_RIP] - is_return;
	struct img_module *m = img_module_at(set, pc);

	*signal = false;
	if (!knows(regs, IMG_RIP))
		return false;
	if (!m)
		return step_blind(set, regs, mem, is_return);
	img_module_dwarf(m);
	struct img_row row = *row_at(m, pc - m->bias);

	*signal = row.signal;
	if (row.none)
		return step_blind(set, regs, mem, is_return);
	if (row.simple)
		return step_simple(set, &row, regs, mem);
	return step_complex(m, pc - m->bias, regs, mem);
}

bool img_cfa(struct img_set *set, const struct img_regs *regs, const struct img_memory *mem,
	     bool is_return, uint64_t *cfa)
{
	uint64_t pc = regs->r[IMG_RIP] - is_return;
	struct img_module *m = img_module_at(set, pc);

	if (!m || !knows(regs, IMG_RIP))
		return false;
	img_module_dwarf(m);
	const struct img_row *row = row_at(m, pc - m->bias);

	if (row->none)
		return false;
	if (row->simple) {
		*cfa = regs->r[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_offset;
		return knows(regs, row->cfa_reg);
	}
	struct img_eval e = { .m = m, .regs = regs, .mem = mem, .vaddr = pc - m->bias };
	Dwarf_Frame *f = frame_at(m, e.vaddr);
	bool good = f && complex_cfa(&e, f);

	free(f);
	*cfa = e.cfa;
	return good;
}

size_t img_unwind(struct img_set *set, const struct img_regs *regs, const struct img_memory *mem,
		  uint64_t *pcs, size_t max)
{
	return img_unwind_ends(set, regs, mem, pcs, NULL, max);
}

size_t img_unwind_ends(struct img_set *set, const struct img_regs *regs, const struct img_memory *mem,
		       uint64_t *pcs, uint64_t *ends, size_t max)
{
	struct img_regs r = *regs;
	bool is_return = false, signal;
	size_t n = 0;

	while (n < max && knows(&r, IMG_RIP) && (n == 0 || r.r[IMG_RIP])) {
		uint64_t sp = r.r[IMG_RSP];

		if (ends)
			ends[n] = 0;
		pcs[n++] = r.r[IMG_RIP] - is_return;
		/* Stacks grow outwards, except from a signal's alternate stack. */
		if (!img_unwind_step(set, &r, mem, is_return, &signal) ||
		    (!signal && r.r[IMG_RSP] <= sp))
			break;
		if (ends && !signal)
			ends[n - 1] = r.r[IMG_RSP];
		is_return = !signal;
	}
	return n;
}
