/* Inside of the compiler: compile.c (blocks), convert.c (IR -> operations), late_puts.c. */
#ifndef CSCHED_MACHINE_COMPILE_H
#define CSCHED_MACHINE_COMPILE_H

#include "analyzer/engine/code.h"

#define MAX_INSN_BYTES 15
#define MAX_RUN_TEMPS 8192

struct builder {
	struct mach *m;
	struct mach_block *b;
	VEC(struct mach_op) ops;
	unsigned insn;      /* index of the current instruction */
	const struct insn *insns; /* of the block */
	const struct insn *canonical; /* the one of the run, in other bytes; NULL: as it is */
	uint32_t temp_base; /* frame offset of temporary 0 of this run */
	/* Of the run being converted, by temporary: */
	const IRTypeEnv *types;
	uint32_t alias[MAX_RUN_TEMPS];    /* where it lies that it is a copy of, or NO_ALIAS */
	uint32_t last_use[MAX_RUN_TEMPS]; /* statement index */
	VEC(uint32_t) aliased;
	uint32_t uses[MAX_RUN_TEMPS];     /* how many statements read it */
	struct bit_copy {
		uint32_t from; /* a single bit that it is the extension of; 0: none */
		uint32_t op;   /* the operation that makes it */
	} bit[MAX_RUN_TEMPS];
	uint32_t stmt;
};

/* convert.c */
struct mach_op *compile_emit(struct builder *w, enum mach_code code);
/* The frame offset of an atom; false: of a type the bytecode does not have. */
bool compile_operand(struct builder *w, const IRExpr *e, uint32_t *out);
/*
 * Converts a lifted run that begins at instruction index w->insn. Returns how
 * many of its instructions were converted whole; what an instruction emitted
 * before it turned out to be unknown is taken back.
 */
unsigned compile_run(struct builder *w, const struct lifted *l);

/* late_puts.c: takes superfluous register writes out of the finished operations. */
void compile_late_puts(struct builder *w);

/* fuse.c: then makes one operation of several. */
void compile_fuse(struct builder *w);

/* compile.c: one block, in the arena and in no table yet. */
struct mach_block *compile_block(struct mach *m, uint64_t pc, enum block_variant variant);

/* blocks.c: from now on it is what is found there. */
void mach_block_put(struct mach *m, struct mach_block *b);

#endif
