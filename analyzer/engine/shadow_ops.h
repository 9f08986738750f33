/*
 * What the watched interpreter calls: one function per kind of operation.
 * Those that take only an op are called before the operation has written its
 * result, and only when there are expressions (m->slots is not NULL).
 */
#ifndef CSCHED_MACHINE_SHADOW_OPS_H
#define CSCHED_MACHINE_SHADOW_OPS_H

#include "analyzer/engine/code.h"
#include "analyzer/engine/shadow.h"

#include <string.h>

void shadow_binary_slow(struct mach *m, const struct mach_op *op);
void shadow_unary_slow(struct mach *m, const struct mach_op *op);

/* The fast path: everything concrete, and the result was. */
static inline void shadow_binary(struct mach *m, const struct mach_op *op)
{
	if (m->slots[op->a / 8] | m->slots[op->b / 8] | m->slots[op->d / 8])
		shadow_binary_slow(m, op);
}
static inline void shadow_unary(struct mach *m, const struct mach_op *op)
{
	if (m->slots[op->a / 8] | m->slots[op->d / 8])
		shadow_unary_slow(m, op);
}

void shadow_block(struct mach *m); /* a block begins */
void shadow_wide(struct mach *m, const struct mach_op *op, uint64_t pc);
void shadow_bad_division(struct mach *m, const struct mach_op *op, uint64_t pc); /* it faults */
void shadow_move(struct mach *m, const struct mach_op *op);
void shadow_put(struct mach *m, const struct mach_op *op);
void shadow_ite(struct mach *m, const struct mach_op *op);
void shadow_call(struct mach *m, const struct mach_op *op, uint64_t pc);
void shadow_exit(struct mach *m, const struct mach_op *op);
void shadow_target(struct mach *m, const struct mach_op *op);
/* An address operand: made concrete when symbolic. */
void shadow_address(struct mach *m, uint32_t offset, uint64_t pc);
void shadow_operand_address(struct mach *m, const struct operand_address *a, uint64_t pc);

/* These are called with hooks only, too. */
void shadow_load(struct mach *m, uint64_t pc, const struct mach_op *op, uint64_t address,
		 uint64_t value);
void shadow_store(struct mach *m, uint64_t pc, const struct mach_op *op, uint64_t address);
void shadow_cas_read(struct mach *m, const struct mach_cas *c, uint64_t pc, uint64_t address,
		     bool equal);
void shadow_cas_write(struct mach *m, const struct mach_cas *c, unsigned half, uint64_t pc,
		      uint64_t address, uint64_t data);

/*
 * Ranges: what a native or special instruction loads is staged, 8 bytes a
 * piece, and what it stores takes its expressions from the stage.
 */
void shadow_stage_load(struct mach *m, uint64_t pc, uint64_t address, const void *bytes, size_t n);
void shadow_stage_store(struct mach *m, uint64_t pc, uint64_t address, const void *bytes, size_t n);
/* What was staged is used in a way that has no expression; the same of the 8 bytes at `at`. */
void shadow_stage_concretize(struct mach *m, uint64_t pc, const char *why);
void shadow_stage_concretize_at(struct mach *m, uint64_t pc, size_t at, const char *why);
/*
 * Instructions of many registers: n bytes are about to be stored; the 8 at `at` are this register's
 * (0: concrete). And of what was loaded, `at` goes to a register, which holds the value already.
 */
void shadow_stage_begin(struct mach *m, size_t n);
void shadow_stage_put(struct mach *m, size_t at, uint32_t offset);
void shadow_stage_take(struct mach *m, size_t at, uint32_t offset, unsigned size);
void shadow_native_before(struct mach *m, const struct native_insn *n, uint64_t pc);
void shadow_native_after(struct mach *m, const struct native_insn *n);
void shadow_special(struct mach *m, const struct special_insn *s);

/* Of the branch that ended the last block: holds on the way taken; or EXPR_NONE. */
expr_id shadow_branch_condition(struct mach *m);

/* ---- between the shadow's own files ---- */

struct mem_words; /* address / 8 -> expression */

#define SHADOW_STAGE 128 /* pieces of 8 bytes */

struct shadow {
	struct mach *m;
	struct expr_pool *pool;
	struct shadow_hooks hooks;
	uint32_t *slots;
	struct mem_words *words;
	expr_id guard;  /* of the conditional branch, in the sense it went */
	expr_id stage[SHADOW_STAGE];
	size_t staged;  /* bytes on the stage; 0: nothing */
	uint64_t stage_value[SHADOW_STAGE];
	expr_id move[8]; /* of a native move, between before and after */
	VEC(uint16_t) depth; /* of expressions, by id; 0: not computed yet */
	unsigned deep;       /* expressions that became too deep since the last new symbol */
};

/* The expression of an operand of so many bits (1: Boolean); EXPR_NONE: concrete. */
expr_id shadow_expr(struct mach *m, uint32_t offset, unsigned bits);
/* The same, a constant when concrete. */
expr_id shadow_expr_or_const(struct mach *m, uint32_t offset, unsigned bits);
expr_id shadow_as_bool(struct mach *m, expr_id e);
/* Sets a temporary; an expression without symbols counts as none. */
void shadow_set(struct mach *m, uint32_t offset, expr_id e);
/* Writes bits of a register: e, or when it is none, value. */
void shadow_set_register(struct mach *m, uint32_t offset, unsigned size, expr_id e,
			 uint64_t value);
void shadow_concretize(struct mach *m, uint64_t pc, expr_id e, uint64_t value, const char *why);
void shadow_concretize_operand(struct mach *m, uint64_t pc, uint32_t offset, unsigned bits,
			       const char *why);
expr_id shadow_memory(struct mach *m, uint64_t address, unsigned size, uint64_t value);
/* value: what is being stored; NULL: memory holds it already. */
void shadow_set_memory(struct mach *m, uint64_t address, unsigned size, expr_id e,
		       const uint64_t *value);

/* shadow_flags.c: the value of a condition-code helper; EXPR_NONE: no table row. */
expr_id shadow_flags_call(struct mach *m, const struct mach_call *c);

/* The eight bytes at this offset of the state, as they are. */
static inline uint64_t shadow_concrete(struct mach *m, uint32_t offset)
{
	uint64_t v;

	memcpy(&v, mach_at(m, offset), 8);
	return v;
}

#endif
