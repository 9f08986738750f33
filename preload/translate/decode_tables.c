/*
 * The opcode maps of 64-bit mode, by opcode number. A row reads: immediate,
 * modrm, operand width, which general registers are used, what happens to the
 * status flags. Opcodes left out are invalid and decode as INSN_UNKNOWN.
 */
#include "preload/translate/decode_tables.h"

#define U(x) ((uint32_t)U_##x << D_USAGE_SHIFT)
#define K(x) ((uint32_t)K_##x << D_KIND_SHIFT)
#define FS D_FS
#define FK D_FK
#define VALID U(NONE)

/* add or adc sbb and sub xor cmp share one shape; adc and sbb read the carry. */
#define ALU(b, fl)                                                        \
	[b] = D_M | D_B | U(MR_RW) | fl, [b + 1] = D_M | U(MR_RW) | fl,   \
	[b + 2] = D_M | D_B | U(RM_RW) | fl, [b + 3] = D_M | U(RM_RW) | fl, \
	[b + 4] = IMM_B | D_B | U(ACC_RW) | fl, [b + 5] = IMM_Z | U(ACC_RW) | fl

const uint32_t insn_map0[256] = {
	ALU(0x00, FS), ALU(0x08, FS), ALU(0x10, 0), ALU(0x18, 0),
	ALU(0x20, FS), ALU(0x28, FS), ALU(0x30, FS),
	/* Of 32-bit programs; here the processor knows them no more. */
	[0x06 ... 0x07] = K(TRAP), [0x0e] = K(TRAP), [0x16 ... 0x17] = K(TRAP), [0x1e ... 0x1f] = K(TRAP),
	[0x27] = K(TRAP), [0x2f] = K(TRAP), [0x37] = K(TRAP), [0x3f] = K(TRAP), [0x60 ... 0x61] = K(TRAP),
	[0x82] = K(TRAP), [0x9a] = K(TRAP), [0xce] = K(TRAP), [0xd4] = K(TRAP), [0xd6] = K(TRAP), [0xea] = K(TRAP),
	[0x38] = D_M | D_B | U(MR_R) | FS, [0x39] = D_M | U(MR_R) | FS,
	[0x3a] = D_M | D_B | U(MR_R) | FS, [0x3b] = D_M | U(MR_R) | FS,
	[0x3c] = IMM_B | D_B | U(ACC_R) | FS, [0x3d] = IMM_Z | U(ACC_R) | FS,
	[0x50 ... 0x57] = U(PUSH_O) | FK, [0x58 ... 0x5f] = U(POP_O) | FK,
	[0x63] = D_M | U(RM_W) | FK, /* movsxd */
	[0x68] = IMM_Z | U(STACK) | FK, [0x69] = IMM_Z | D_M | U(RM_W) | FS,
	[0x6a] = IMM_B | U(STACK) | FK, [0x6b] = IMM_B | D_M | U(RM_W) | FS,
	[0x6c ... 0x6f] = K(TRAP), /* ins, outs */
	[0x70 ... 0x7f] = IMM_B | K(JCC),
	[0x80] = IMM_B | D_M | D_B | K(GRP1) | FS, [0x81] = IMM_Z | D_M | K(GRP1) | FS,
	[0x83] = IMM_B | D_M | K(GRP1) | FS,
	[0x84] = D_M | D_B | U(MR_R) | FS, [0x85] = D_M | U(MR_R) | FS,
	[0x86] = D_M | D_B | U(XCHG) | FK, [0x87] = D_M | U(XCHG) | FK,
	[0x88] = D_M | D_B | U(MR_W) | FK, [0x89] = D_M | U(MR_W) | FK,
	[0x8a] = D_M | D_B | U(RM_W) | FK, [0x8b] = D_M | U(RM_W) | FK,
	[0x8c] = D_M | U(M_RW) | FK, [0x8d] = D_M | U(RM_W) | K(LEA) | FK,
	[0x8e] = D_M | K(MOV_SREG), [0x8f] = D_M | K(POP_RM) | FK,
	[0x90] = U(XCHG_ACC) | K(NOP) | FK, [0x91 ... 0x97] = U(XCHG_ACC) | FK,
	[0x98] = U(CWDE) | FK, [0x99] = U(CDQ) | FK,
	[0x9b] = VALID | FK, [0x9c] = U(STACK) | K(PUSHF), [0x9d] = U(STACK),
	[0x9e] = U(ACC_R), [0x9f] = U(ACC_RW),
	[0xa0] = IMM_MOFFS | D_B | U(ACC_W) | FK, [0xa1] = IMM_MOFFS | U(ACC_W) | FK,
	[0xa2] = IMM_MOFFS | D_B | U(ACC_R) | FK, [0xa3] = IMM_MOFFS | U(ACC_R) | FK,
	[0xa4 ... 0xa5] = FK, [0xa6 ... 0xa7] = D_B, /* movs, cmps: any register */
	[0xa8] = IMM_B | D_B | U(ACC_R) | FS, [0xa9] = IMM_Z | U(ACC_R) | FS,
	[0xaa ... 0xad] = FK, [0xae ... 0xaf] = D_B,
	[0xb0 ... 0xb7] = IMM_B | D_B | U(O_W) | FK, [0xb8 ... 0xbf] = IMM_V | U(O_W) | FK,
	[0xc0] = IMM_B | D_M | D_B | U(M_RW), [0xc1] = IMM_B | D_M | U(M_RW),
	[0xc2] = IMM_W | K(RET), [0xc3] = K(RET),
	[0xc6] = IMM_B | D_M | D_B | U(M_W) | K(MOV_IMM) | FK,
	[0xc7] = IMM_Z | D_M | U(M_W) | K(MOV_IMM) | FK,
	[0xc8] = IMM_WB | FK, [0xc9] = U(LEAVE) | FK,
	[0xca] = IMM_W | K(BAD), [0xcb] = K(BAD), [0xcc] = K(TRAP), [0xcd] = IMM_B | K(INT),
	[0xcf] = K(BAD),
	[0xd0] = D_M | D_B | U(M_RW), [0xd1] = D_M | U(M_RW),
	[0xd2] = D_M | D_B | U(SHIFT_CL), [0xd3] = D_M | U(SHIFT_CL),
	[0xd7] = FK, /* xlat */
	[0xd8 ... 0xdf] = D_M, /* x87 */
	[0xe0 ... 0xe3] = IMM_B | K(LOOP),
	[0xe4 ... 0xe7] = IMM_B | K(TRAP),
	[0xe8] = IMM_Z | K(CALL), [0xe9] = IMM_Z | K(JMP), [0xeb] = IMM_B | K(JMP),
	[0xec ... 0xef] = K(TRAP), [0xf1] = K(TRAP), [0xf4] = K(TRAP),
	[0xf5] = VALID, [0xf6] = D_M | D_B | K(GRP3), [0xf7] = D_M | K(GRP3),
	[0xf8 ... 0xf9] = VALID, [0xfa ... 0xfb] = K(TRAP), [0xfc ... 0xfd] = VALID | FK,
	[0xfe] = D_M | D_B | K(GRP4), [0xff] = D_M | K(GRP5),
};

#define VEC (D_M | D_V | U(NONE) | FK)
/* Vector instructions with a general register in modrm: counted as read. */
#define VGPR (D_M | D_V | U(MR_R) | FK)

const uint32_t insn_map1[256] = {
	[0x00] = D_M | U(M_RW), [0x01] = D_M | K(GRP7), [0x02 ... 0x03] = D_M,
	[0x05] = K(SYSCALL), [0x06] = K(TRAP), [0x07] = K(TRAP), [0x08 ... 0x09] = K(TRAP),
	[0x0b] = K(TRAP), [0x0d] = D_M | U(NONE) | K(LEA) | FK,
	[0x10 ... 0x17] = VEC,
	[0x18 ... 0x1d] = D_M | U(NONE) | K(LEA) | FK,
	[0x1e] = D_M | U(M_RW) | K(LEA) | FK, /* endbr64, rdssp */
	[0x1f] = D_M | U(NONE) | K(LEA) | FK,
	[0x20 ... 0x23] = D_M | K(TRAP),
	[0x28 ... 0x29] = VEC, [0x2a] = VGPR, [0x2b] = VEC, [0x2c ... 0x2d] = VGPR,
	[0x2e ... 0x2f] = D_M | D_V | U(NONE) | FS,
	[0x30] = K(TRAP), [0x31] = K(NONDET), [0x32] = K(TRAP), [0x33 ... 0x34] = K(BAD),
	[0x35] = K(TRAP),
	[0x40 ... 0x4f] = D_M | U(RM_RW),
	[0x50] = VGPR, [0x51 ... 0x6d] = VEC, [0x6e] = VGPR, [0x6f] = VEC,
	[0x70 ... 0x73] = IMM_B | VEC, [0x74 ... 0x76] = VEC,
	[0x77] = VALID | K(VZERO) | FK, [0x78 ... 0x79] = K(BAD),
	[0x7c ... 0x7d] = VEC, [0x7e] = VGPR, [0x7f] = VEC,
	[0x80 ... 0x8f] = IMM_Z | K(JCC),
	[0x90 ... 0x9f] = D_M | D_B | U(M_RW),
	[0xa0] = U(STACK) | FK, [0xa1] = K(BAD), [0xa2] = K(NONDET),
	[0xa3] = D_M | U(MR_R), [0xa4] = IMM_B | D_M | U(MR_RW), [0xa5] = D_M | U(SHXD_CL),
	[0xa8] = K(GS), [0xa9] = K(GS), [0xaa] = K(TRAP), [0xab] = D_M | U(MR_RW),
	[0xac] = IMM_B | D_M | U(MR_RW), [0xad] = D_M | U(SHXD_CL),
	[0xae] = D_M | K(GRP15), [0xaf] = D_M | U(RM_RW) | FS,
	[0xb0] = D_M | D_B | FS, [0xb1] = D_M | FS, /* cmpxchg: any register */
	[0xb2] = K(BAD), [0xb3] = D_M | U(MR_RW), [0xb4 ... 0xb5] = K(BAD),
	[0xb6 ... 0xb7] = D_M | U(RM_W) | FK,
	[0xb8] = D_M | U(RM_W) | FS, [0xb9] = D_M | K(TRAP),
	[0xba] = IMM_B | D_M | K(GRP8), [0xbb] = D_M | U(MR_RW),
	[0xbc ... 0xbd] = D_M | U(RM_RW), [0xbe ... 0xbf] = D_M | U(RM_W) | FK,
	[0xc0] = D_M | D_B | U(XCHG) | FS, [0xc1] = D_M | U(XCHG) | FS,
	[0xc2] = IMM_B | VEC, [0xc3] = D_M | U(MR_W) | FK,
	[0xc4 ... 0xc5] = IMM_B | VGPR, [0xc6] = IMM_B | VEC,
	[0xc7] = D_M | K(GRP9), [0xc8 ... 0xcf] = U(O_RW) | FK,
	[0xd0 ... 0xd6] = VEC, [0xd7] = VGPR, [0xd8 ... 0xf6] = VEC,
	[0xf7] = D_M | D_V, /* maskmovdqu writes at rdi */
	[0xf8 ... 0xfe] = VEC, [0xff] = D_M | K(TRAP),
};

uint32_t insn_map2(uint8_t op)
{
	/* ptest, vtestps; crc32, movbe, adx, bmi: flags or general registers. */
	if (op == 0x17 || op == 0x0e || op == 0x0f)
		return D_M | D_V | U(NONE);
	if (op >= 0xf0)
		return D_M | U(ANY);
	if (op >= 0x80 && op <= 0x82)
		return K(BAD); /* invept and kin */
	if (op >= 0x7a && op <= 0x7c)
		return VGPR; /* vpbroadcast from a general register */
	return VEC;
}

uint32_t insn_map3(uint8_t op)
{
	if (op == 0xf0)
		return IMM_B | D_M | U(ANY) | FK; /* rorx */
	if (op >= 0x60 && op <= 0x63)
		return IMM_B | D_M | D_V; /* pcmpestri: rax, rdx, rcx, flags */
	if ((op >= 0x14 && op <= 0x17) || (op >= 0x20 && op <= 0x22))
		return IMM_B | VGPR;
	return IMM_B | D_M | D_V | U(NONE) | FK;
}
