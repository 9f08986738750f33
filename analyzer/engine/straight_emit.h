/* Writing x86-64 machine code for straight.c. Registers by their x86 numbers. */
#ifndef CSCHED_MACHINE_STRAIGHT_EMIT_H
#define CSCHED_MACHINE_STRAIGHT_EMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { R_AX, R_CX, R_DX, R_BX, R_SP, R_BP, R_SI, R_DI, R_8, R_9, R_10, R_11, R_NONE = 16 };
enum { CC_B = 2, CC_AE = 3, CC_E = 4, CC_NE = 5, CC_BE = 6, CC_A = 7, CC_L = 12, CC_LE = 14 };

/* Opcodes, register field first: reg <- reg/mem unless said otherwise. */
enum {
	I_ADD = 0x03, I_OR = 0x0b, I_AND = 0x23, I_SUB = 0x2b, I_XOR = 0x33, I_CMP = 0x3b,
	I_CMP8 = 0x3a, I_MOV = 0x8b, I_STORE = 0x89, I_STORE8 = 0x88, I_TEST = 0x85,
	I_MUL = 0x0faf, I_ZX8 = 0x0fb6, I_ZX16 = 0x0fb7, I_SX8 = 0x0fbe, I_SX16 = 0x0fbf,
	I_SX32 = 0x63, I_CMOVE = 0x0f44, I_CMOVNE = 0x0f45,
	I_POPCNT = 0xf30fb8, I_TZCNT = 0xf30fbc, I_LZCNT = 0xf30fbd,
};

struct code {
	uint8_t *p, *end;
};

static inline void x_byte(struct code *c, unsigned b)
{
	*c->p++ = (uint8_t)b;
}

static inline void x_u32(struct code *c, uint32_t v)
{
	memcpy(c->p, &v, 4);
	c->p += 4;
}

static inline void x_u64(struct code *c, uint64_t v)
{
	memcpy(c->p, &v, 8);
	c->p += 8;
}

/* Prefixes and opcode; byte: an 8-bit register is named, so 4 to 7 need a REX. */
static inline void x_op(struct code *c, uint32_t op, bool wide, unsigned reg, unsigned index,
			unsigned base, bool byte)
{
	unsigned rex = (wide ? 8u : 0) | (reg >> 3 & 1) << 2 | (index >> 3 & 1) << 1 | (base >> 3 & 1);

	if (op > 0xffff)
		x_byte(c, op >> 16);
	if (rex || byte)
		x_byte(c, 0x40 | rex);
	if (op > 0xff)
		x_byte(c, op >> 8 & 0xff);
	x_byte(c, op & 0xff);
}

static inline void x_rr(struct code *c, uint32_t op, bool wide, unsigned reg, unsigned rm)
{
	x_op(c, op, wide, reg, 0, rm, op == I_ZX8 || op == I_SX8 || op == I_CMP8);
	x_byte(c, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

/* [rdi + offset]: the frame */
static inline void x_frame(struct code *c, uint32_t op, bool wide, unsigned reg, uint32_t offset)
{
	x_op(c, op, wide, reg, 0, R_DI, op == I_STORE8);
	x_byte(c, 0x80 | (reg & 7) << 3 | R_DI);
	x_u32(c, offset);
}

/* [base + index + offset] */
static inline void x_indexed(struct code *c, uint32_t op, bool wide, unsigned reg, unsigned base,
			     unsigned index, uint32_t offset)
{
	x_op(c, op, wide, reg, index, base, op == I_STORE8);
	x_byte(c, 0x84 | (reg & 7) << 3);
	x_byte(c, (index & 7) << 3 | (base & 7));
	x_u32(c, offset);
}

/* An opcode whose second half is n, in the place of a register: op /n reg */
static inline void x_group(struct code *c, unsigned op, unsigned n, bool wide, unsigned reg)
{
	x_op(c, op, wide, 0, 0, reg, false);
	x_byte(c, 0xc0 | n << 3 | (reg & 7));
}

/* add 0, or 1, and 4, sub 5, xor 6, cmp 7 */
static inline void x_ri(struct code *c, unsigned n, bool wide, unsigned reg, uint32_t imm)
{
	x_group(c, 0x81, n, wide, reg);
	x_u32(c, imm);
}

/* not 2, neg 3, mul 4, imul 5 */
static inline void x_unary(struct code *c, unsigned n, bool wide, unsigned reg)
{
	x_group(c, 0xf7, n, wide, reg);
}

/* shl 4, shr 5, sar 7 */
static inline void x_shift_imm(struct code *c, unsigned n, bool wide, unsigned reg, unsigned by)
{
	x_group(c, 0xc1, n, wide, reg);
	x_byte(c, by);
}

/* by cl */
static inline void x_shift_cl(struct code *c, unsigned n, bool wide, unsigned reg)
{
	x_group(c, 0xd3, n, wide, reg);
}

static inline void x_setcc(struct code *c, unsigned cc, unsigned reg)
{
	x_op(c, 0x0f90 | cc, false, 0, 0, reg, true);
	x_byte(c, 0xc0 | (reg & 7));
}

static inline void x_bswap(struct code *c, bool wide, unsigned reg)
{
	x_op(c, 0x0fc8 | (reg & 7), wide, 0, 0, reg, false);
}

static inline void x_constant(struct code *c, unsigned reg, uint64_t value)
{
	if (value <= UINT32_MAX) {
		x_op(c, 0xb8 | (reg & 7), false, 0, 0, reg, false);
		x_u32(c, (uint32_t)value);
	} else {
		x_op(c, 0xb8 | (reg & 7), true, 0, 0, reg, false);
		x_u64(c, value);
	}
}

/* Jumps forward: returns what x_lands() fills in. */
static inline uint8_t *x_jcc(struct code *c, unsigned cc)
{
	x_byte(c, 0x0f);
	x_byte(c, 0x80 | cc);
	x_u32(c, 0);
	return c->p - 4;
}

static inline void x_lands(uint8_t *from, const uint8_t *to)
{
	int32_t distance = (int32_t)(to - (from + 4));

	memcpy(from, &distance, 4);
}

static inline void x_jump(struct code *c, const uint8_t *to)
{
	x_byte(c, 0xe9);
	x_u32(c, 0);
	x_lands(c->p - 4, to);
}

static inline void x_call(struct code *c, const uint8_t *to)
{
	x_byte(c, 0xe8);
	x_u32(c, 0);
	x_lands(c->p - 4, to);
}

#endif
