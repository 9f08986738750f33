/* The opcode maps as data: one descriptor per opcode. See decode.c. */
#ifndef CSCHED_TRANSLATE_DECODE_TABLES_H
#define CSCHED_TRANSLATE_DECODE_TABLES_H

#include <stdint.h>

/* Descriptor: immediate | modrm | byte | usage | flags effect | kind */
enum {
	D_IMM = 7,      /* mask of enum imm_kind */
	D_M = 8,        /* a modrm byte follows */
	D_B = 16,       /* 8-bit operands */
	D_V = 32,       /* vector registers in modrm (some may be general: treated as both) */
	D_USAGE_SHIFT = 6, D_USAGE = 31 << D_USAGE_SHIFT,
	D_FS = 1 << 11, /* sets all status flags, reads none */
	D_FK = 1 << 12, /* keeps the status flags, reads none */
	D_KIND_SHIFT = 13, D_KIND = 31 << D_KIND_SHIFT,
};

enum imm_kind { IMM_NONE, IMM_B, IMM_Z, IMM_W, IMM_V, IMM_WB, IMM_MOFFS };

/* How the general registers of an instruction are used. */
enum usage {
	U_ANY,      /* unknown: everything may be read */
	U_NONE,     /* only the memory operand's address registers */
	U_MR_RW,    /* rm read and written, reg read */
	U_RM_RW,    /* reg read and written, rm read */
	U_MR_W,     /* rm written, reg read */
	U_RM_W,     /* reg written, rm read */
	U_MR_R,     /* both read */
	U_XCHG,     /* both read and written */
	U_M_R, U_M_RW, U_M_W,
	U_ACC_RW, U_ACC_R, U_ACC_W, /* rax */
	U_O_R, U_O_W, U_O_RW,       /* register in the opcode */
	U_PUSH_O, U_POP_O,          /* ... and the stack */
	U_XCHG_ACC,                 /* register in the opcode and rax */
	U_STACK,                    /* rsp read and written, rm read */
	U_CWDE, U_CDQ,
	U_SHIFT_CL,                 /* rm read and written, rcx read */
	U_MULDIV,                   /* rm, rax, rdx read; rax, rdx written */
	U_LEAVE,
	U_SHXD_CL,                  /* rm read and written, reg and rcx read */
};

/* Opcodes that need a closer look than their descriptor. */
enum kind {
	K_PLAIN, K_BAD, K_TRAP, K_INT, K_JCC, K_LOOP, K_JMP, K_CALL, K_RET, K_SYSCALL,
	K_GRP1,  /* 80..83 */
	K_GRP3,  /* F6 F7 */
	K_GRP4,  /* FE */
	K_GRP5,  /* FF */
	K_GRP7,  /* 0F01 */
	K_GRP8,  /* 0FBA */
	K_GRP9,  /* 0FC7 */
	K_GRP15, /* 0FAE */
	K_POP_RM,
	K_MOV_IMM, /* C6 C7: xabort, xbegin */
	K_MOV_SREG,
	K_NONDET,
	K_VZERO, /* 0F77 */
	K_GS,    /* pop gs and kin */
	K_LEA,
	K_PUSHF,
	K_NOP,   /* 90 */
};

extern const uint32_t insn_map0[256]; /* one byte */
extern const uint32_t insn_map1[256]; /* 0F */
uint32_t insn_map2(uint8_t op);       /* 0F38 */
uint32_t insn_map3(uint8_t op);       /* 0F3A */

#endif
