/* Inside of the engine: decoding, lifting and compiling guest code. */
#ifndef CSCHED_MACHINE_CODE_H
#define CSCHED_MACHINE_CODE_H

#include "analyzer/engine/engine.h"

#include <Zydis/Zydis.h>
#include <valgrind/libvex.h>

/* What has to be done with an instruction. */
enum insn_class {
	INSN_BAD,      /* not an instruction, or one the machine must not execute */
	INSN_PLAIN,    /* libVEX */
	INSN_NOTHING,  /* no effect here: fences, prefetches, cache control, pause */
	INSN_NATIVE,   /* the host executes it */
	INSN_SPECIAL,  /* special.c */
	INSN_LOCKED,   /* libVEX, but one atomic step with an order */
	INSN_COND, INSN_DIRECT, INSN_INDIRECT, /* control flow: libVEX, ends the block */
	INSN_SYSCALL, INSN_NONDET, INSN_TRAP,  /* the engine stops before it */
};

struct insn {
	uint64_t pc;
	enum insn_class class;
	bool call, ret;
	uint64_t target; /* INSN_COND */
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

/* False: the bytes are no instruction (or are cut off at n). */
bool insn_decode(const uint8_t *bytes, size_t n, uint64_t pc, struct insn *out);
/* Of a trap (int3 and kin), which the kernel shows with rip after it; 0: of all others, which it shows where they are. */
unsigned mach_trap_length(const struct insn *in);

/* Names a register of 512 bits. */
bool insn_is_wide(const struct insn *in);

/* Guest instruction text for messages. */
void insn_text(const struct insn *in, char *buf, size_t n);

/* ---- lift.c ---- */

struct lifted {
	IRSB *sb;        /* lives until the next lift */
	unsigned ninsns;
	bool undecoded;  /* it ended because libVEX does not know the next instruction */
};
void lift_init(void);
bool lift(const uint8_t *bytes, uint64_t pc, unsigned max_insns, struct lifted *out);
/*
 * One cmpxchg of 32 bits. When it finds what it expects it does not write eax; libVEX has it written with
 * what was there, and the upper half of rax cleared.
 */
bool lift_cmpxchg32(const uint8_t *bytes, uint64_t pc, struct lifted *out);

/* ---- compile.c: things operations point to ---- */

struct mach_cas {
	uint32_t address, expected[2], data[2], old[2];
	uint8_t size; /* of one half */
	bool two;
};

struct mach_call {
	uint64_t (*fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
	const char *name;
	uint8_t nargs;
	uint8_t size;     /* bytes of the result */
	uint32_t arg[6];
};

void *mach_arena(struct mach *m, size_t n);

/* ---- native.c ---- */

/* Where the memory operand of an instruction is. Registers as frame offsets;
 * 0 means none (offset 0 of the frame is no register). */
struct operand_address {
	uint32_t base, index, segment;
	uint8_t scale;
	bool small;     /* 32-bit address size */
	int64_t displacement;
};

struct native_insn {
	void (*stub)(struct mach_frame *f);
	struct operand_address address;
	uint16_t size;      /* of the memory operand; 0: none */
	uint8_t align;      /* that it must have; 0: any */
	bool reads, writes; /* the memory operand */
	bool reads_flags, writes_flags;
	bool x87;
	bool waits; /* raises the x87 exception that is pending */
	uint16_t gpr_read, gpr_written; /* bits by x86 number */
	uint32_t vec_read, vec_written; /* what the shadow must forget */
	uint16_t mnemonic;
	/* Of the memory operand only the elements that mask register `mask` names are
	 * accessed (native_lanes.c). 0: all of it. */
	uint8_t mask, lane_bytes, lanes;
	bool broadcast; /* one element for all lanes: accessed when any of them is chosen */
	bool packed;    /* the chosen elements lie side by side */
	/* For the shadow: move_bytes are copied from src to dst (0: memory), and
	 * behind them clear_bytes of dst become zero. 0: not a plain move. */
	uint8_t move_bytes, clear_bytes;
	bool clear_upper;
	uint32_t move_dst, move_src;
	uint32_t dst_upper, src_upper; /* from the 33rd byte on; 0: memory */
	bool zeroes; /* x ^ x and the like: the result does not depend on x */
};

/* The same instruction, shorter and of the same end, when some of its prefixes mean nothing. */
bool native_canonical(const struct insn *in, uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH],
		      struct insn *out);
/* NULL: this host or this function cannot execute it. */
struct native_insn *native_make(struct mach *m, const struct insn *in);
void native_find_move(const struct insn *in, struct native_insn *n); /* native_moves.c */
/* native_lanes.c: of an instruction with a mask, and what it accesses by it */
void native_find_lanes(const struct insn *in, const ZydisDecodedOperand *memory,
		       struct native_insn *n);
bool native_load_lanes(struct mach *m, const struct native_insn *n, uint64_t pc, uint64_t at);
bool native_store_lanes(struct mach *m, const struct native_insn *n, uint64_t pc, uint64_t at);
bool native_may_store_lanes(struct mach *m, const struct native_insn *n, uint64_t at);
/* The processor that runs this cannot execute it. */
bool native_host_lacks(const struct insn *in);
void native_init(struct mach *m);
void native_free(struct mach *m);
void native_flush(struct mach *m);
bool operand_address(const struct insn *in, const ZydisDecodedOperand *op,
		     struct operand_address *out);
uint64_t operand_compute(const struct mach *m, const struct operand_address *a);
uint32_t reg_offset(ZydisRegister reg); /* general register -> frame offset, or 0 */

static inline uint32_t gpr_offset(unsigned x86_number)
{
	return MACH_OFF(RAX) + 8 * x86_number;
}
static inline uint32_t vec_offset(unsigned number)
{
	return number < 16 ? MACH_OFF(YMM0) + 32 * number : MACH_WIDE(high) + 64 * (number - 16);
}
/* Its bits from 256 on. */
static inline uint32_t vec_upper(unsigned number)
{
	return number < 16 ? MACH_WIDE(upper) + 32 * number : vec_offset(number) + 32;
}

/* ---- special.c ---- */

struct special_insn;
typedef enum mach_stop special_fn(struct mach *m, const struct special_insn *s);

struct special_insn {
	special_fn *fn;
	struct operand_address address;
	uint64_t pc;
	uint32_t reg;      /* frame offset of the register operand, or 0 */
	uint32_t mask_reg; /* gathers and masked moves: vector register offset, or mask's */
	uint32_t index_reg;
	uint32_t reg_upper, index_upper; /* gathers: of their bits from 256 on */
	uint8_t size;      /* element or operand bytes */
	uint8_t index_size, lanes, scale;
	bool wide;         /* 256 bits, or a 64-bit operand */
	uint16_t mnemonic;
	uint16_t how;      /* by function */
};

struct special_insn *special_make(struct mach *m, const struct insn *in);
bool special_known(ZydisMnemonic mnemonic, const ZydisDecodedInstruction *i);

/* ---- access with hooks: exec.c ---- */
bool mach_load(struct mach *m, uint64_t pc, uint64_t address, void *buf, size_t n);
bool mach_store(struct mach *m, uint64_t pc, uint64_t address, const void *buf, size_t n);
enum mach_stop mach_access_fault(struct mach *m, bool write);

#endif
