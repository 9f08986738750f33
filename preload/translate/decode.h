/*
 * A lean x86-64 decoder: what a copying translator must know, nothing more.
 *
 * It gives the length and layout of an instruction, its class (how control
 * leaves it), and three conservative facts: whether it may touch xmm15, which
 * general registers it may read, and which it certainly overwrites. Whatever
 * it does not know it calls INSN_UNKNOWN; the translator then lets the program
 * run natively rather than guess. tests/unit/decode_zydis.c holds every fact
 * against Zydis over the code of real libraries.
 */
#ifndef CSCHED_TRANSLATE_DECODE_H
#define CSCHED_TRANSLATE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_class {
	INSN_NORMAL,
	INSN_JCC,       /* target; condition in the low 4 bits of `op` */
	INSN_LOOP,      /* loop, loope, loopne, jrcxz: target */
	INSN_JMP,       /* direct: target */
	INSN_CALL,      /* direct: target */
	INSN_RET,       /* near; imm bytes are popped as well */
	INSN_JMP_IND,
	INSN_CALL_IND,
	INSN_SYSCALL,
	INSN_NONDET,    /* nondet says which */
	INSN_TRAP,      /* faults or is privileged: copied, ends the fragment */
	INSN_SEGMENT,   /* would change or read %gs's base, which is ours */
	INSN_UNKNOWN,   /* not decodable, or of a kind that cannot be translated */
};

enum insn_flag {
	INSN_RIPREL = 1,    /* memory operand relative to rip; disp at disp_off */
	INSN_MEM = 2,       /* has a modrm memory operand */
	INSN_LOCKED = 4,    /* lock prefix, or xchg with memory */
	INSN_XMM15 = 8,     /* may read or write xmm15/ymm15/zmm15 */
	INSN_USES_GS = 16,  /* gs segment override */
	INSN_VZEROUPPER = 32,
	INSN_XSTATE = 64,   /* xsave, xrstor, fxsave ... : whole vector state */
	INSN_SETS_FLAGS = 128,   /* overwrites all status flags without reading them */
	INSN_KEEPS_FLAGS = 256,  /* neither reads nor writes status flags */
	INSN_PUSHF = 512,
	INSN_USES_FS = 1024,
	INSN_EVEX = 2048,
	INSN_LEA_LIKE = 4096,    /* has a memory operand but touches no memory: lea, nop, prefetch */
};

enum insn_prefix { INSN_P66 = 1, INSN_P67 = 2, INSN_PF2 = 4, INSN_PF3 = 8, INSN_PLOCK = 16 };

struct insn {
	uint64_t target;     /* direct branches: absolute address */
	uint32_t flags;      /* enum insn_flag */
	uint8_t cls;         /* enum insn_class */
	uint8_t len;
	uint8_t map;         /* opcode map: 0 one byte, 1 0F, 2 0F38, 3 0F3A */
	uint8_t vex;         /* 0 legacy, 1 VEX, 2 EVEX */
	uint8_t op;
	uint8_t op_off;      /* offset of the opcode byte (legacy: behind prefixes and escapes) */
	uint8_t rex;         /* W R X B in bits 3..0, whatever the encoding */
	uint8_t prefixes;    /* enum insn_prefix */
	uint8_t modrm, sib;
	uint8_t modrm_off;   /* 0: no modrm */
	uint8_t disp_off, disp_len;
	uint8_t imm_off, imm_len;
	uint8_t vvvv;        /* VEX/EVEX second source, else 0 */
	uint8_t nondet;      /* enum trc_nondet_kind */
	uint8_t usage;       /* for insn_registers() */
	uint8_t byte_op;     /* 1: operands are 8 bits wide */
};

/*
 * Decodes the instruction whose bytes start at `code`; `avail` bytes may be
 * read; `pc` is the address it runs at. Returns its length, 0 when it does not
 * fit into avail or is malformed (cls is INSN_UNKNOWN then).
 */
int insn_decode(struct insn *in, const uint8_t *code, size_t avail, uint64_t pc);

/*
 * General registers as bit masks: *reads covers everything the instruction may
 * depend on (partial writes count as reads), *writes only what it certainly
 * overwrites in full. Returns false when nothing is known (all live).
 */
bool insn_registers(const struct insn *in, uint32_t *reads, uint32_t *writes);

/* Bytes the memory operand covers, 0 when unknown; for logging loaded values. */
unsigned insn_memory_size(const struct insn *in);

/* Register number of modrm.reg / modrm.rm / sib parts, REX bits included. */
static inline int insn_reg(const struct insn *in)
{
	return (in->modrm >> 3 & 7) | (in->rex & 4) << 1;
}
static inline int insn_rm(const struct insn *in)
{
	return (in->modrm & 7) | (in->rex & 1) << 3;
}
static inline bool insn_rm_is_reg(const struct insn *in)
{
	return in->modrm_off && in->modrm >> 6 == 3;
}

#endif
