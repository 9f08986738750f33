/* Between straight.c (runs) and straight_ops.c (what one operation becomes). */
#ifndef CSCHED_MACHINE_STRAIGHT_OPS_H
#define CSCHED_MACHINE_STRAIGHT_OPS_H

#include "analyzer/engine/engine.h"
#include "analyzer/engine/straight_emit.h"

struct straight_thunks {
	const uint8_t *load[4], *store[4]; /* by log2 of the size */
};

#define STRAIGHT_CACHED 4 /* r8 to r11 */
#define STRAIGHT_EXITS 256
#define NO_WORD UINT32_MAX
#define IS_ONE_OF(code, name) ((code) >= OP_##name##8 && (code) <= OP_##name##64)

struct straight_run {
	struct code code;
	struct mach *m;
	struct mach_block *b;
	const struct straight_thunks *thunks;
	/* Which words of the frame a register holds, or NO_WORD; the least recently used goes. */
	struct {
		uint32_t word[2];
		uint32_t used;
	} cached[STRAIGHT_CACHED];
	uint32_t clock;
	/* What lies behind the code: returns, and accesses the buffers do not know. */
	struct straight_exit {
		uint8_t *from; /* the jump to it */
		uint8_t *back; /* where an access that was made goes on; NULL: a return */
		uint32_t op;
		uint8_t size, address, value; /* of an access: registers */
		bool store, stopped;
	} exits[STRAIGHT_EXITS];
	unsigned nexits;
};

/* ---- straight_values.c ---- */

/* An operand: a constant, or in a register whose bits above the operand's may be anything. */
struct straight_value {
	bool constant;
	uint8_t reg;
	uint64_t bits; /* constant */
};

void val_forget_all(struct straight_run *r);
void val_forget(struct straight_run *r, uint32_t word);
/* From now on the register holds that word, too. */
void val_holds(struct straight_run *r, unsigned reg, uint32_t word);
/* A register for a new value; those of `a` and `b` are still needed. */
unsigned val_fresh(struct straight_run *r, unsigned a, unsigned b);
/* The operand of so many bits at an offset; `other`: a register that must not be given away. */
struct straight_value val_operand(struct straight_run *r, unsigned bits, uint32_t offset,
				  unsigned other);
/* The operand in a register of its own, which may be changed, extended by zeros or by its sign. */
unsigned val_own(struct straight_run *r, struct straight_value v, unsigned bits, unsigned other);
unsigned val_own_signed(struct straight_run *r, struct straight_value v, unsigned bits,
			unsigned other);
/* In this register (rax, rcx, rdx), extended by zeros. */
void val_into(struct straight_run *r, unsigned reg, struct straight_value v, unsigned bits);
/* A result of so many bits: what is above them becomes zero; it is stored and remembered. */
void val_result(struct straight_run *r, unsigned reg, unsigned bits, uint32_t d);
/* As a 32-bit immediate that is extended by its sign. */
bool val_fits(uint64_t v);

/* ---- straight_alu.c, straight_ops.c ---- */

/* False: it is none of those. */
bool straight_alu(struct straight_run *r, const struct mach_op *op);
bool straight_knows(const struct mach_op *op);
void straight_begin(struct straight_run *r);
/* False: no room for it. */
bool straight_op(struct straight_run *r, const struct mach_op *op, uint32_t index);
void straight_end(struct straight_run *r, uint32_t next);

#endif
