/*
 * Stubs: see native.c. The vector registers are loaded in the 256 bits everybody
 * uses, and in all 512 as soon as the program has used those of any.
 */
#include "analyzer/engine/native.h"

#include <string.h>

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

static const ZydisRegister low_regs[8] = {
	ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_RDX, ZYDIS_REGISTER_RBX,
	ZYDIS_REGISTER_RSP, ZYDIS_REGISTER_RBP, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDI,
};

struct emitter {
	uint8_t *p;
	unsigned base;    /* holds the frame */
	unsigned pointer; /* holds the operand buffer */
	unsigned spare;   /* stands for rsp */
	bool wide;        /* all 512 bits of each vector register */
};

static void byte(struct emitter *e, unsigned b)
{
	*e->p++ = (uint8_t)b;
}

/* modrm for [base + disp32], register field reg */
static void frame_operand(struct emitter *e, unsigned reg, uint32_t offset)
{
	byte(e, 0x80 | (reg & 7) << 3 | e->base);
	memcpy(e->p, &offset, 4);
	e->p += 4;
}

static void move_gpr(struct emitter *e, bool load, unsigned reg, uint32_t offset)
{
	byte(e, 0x48 | (reg >> 3) << 2);
	byte(e, load ? 0x8b : 0x89);
	frame_operand(e, reg, offset);
}

/* The prefix of an EVEX instruction between register and frame; length 1: 256, 2: 512 bits. */
static void evex(struct emitter *e, unsigned reg, unsigned map, unsigned pp, unsigned other,
		 unsigned length)
{
	byte(e, 0x62);
	byte(e, (reg & 8 ? 0 : 0x80) | 0x60 | (reg & 16 ? 0 : 0x10) | map);
	byte(e, 0x80 | (~other & 15) << 3 | 4 | pp);
	byte(e, length << 5 | (other & 16 ? 0 : 8));
}

/* Bits 256 to 511 of a register below 16: vinserti64x4, vextracti64x4 $1. */
static void move_upper(struct emitter *e, bool load, unsigned reg)
{
	evex(e, reg, 3, 1, load ? reg : 0, 2);
	byte(e, load ? 0x3a : 0x3b);
	frame_operand(e, reg, vec_upper(reg));
	byte(e, 1);
}

static void move_high_vec(struct emitter *e, bool load, unsigned reg, bool wide)
{
	evex(e, reg, 1, 2, 0, wide ? 2 : 1); /* vmovdqu64 */
	byte(e, load ? 0x6f : 0x7f);
	frame_operand(e, reg, vec_offset(reg));
}

static void move_mask(struct emitter *e, bool load, unsigned reg)
{
	byte(e, 0xc4); /* kmovq */
	byte(e, 0xe1);
	byte(e, 0xf8);
	byte(e, load ? 0x90 : 0x91);
	frame_operand(e, reg, MACH_WIDE(k) + 8 * reg);
}

static void move_vec(struct emitter *e, bool load, unsigned reg)
{
	if (host_has_avx()) { /* vmovups ymm */
		byte(e, 0xc5);
		byte(e, (reg < 8 ? 0x80 : 0) | 0x78 | 0x04);
	} else { /* movups xmm */
		if (reg >= 8)
			byte(e, 0x44);
		byte(e, 0x0f);
	}
	byte(e, load ? 0x10 : 0x11);
	frame_operand(e, reg, vec_offset(reg));
}

static void move_vectors(struct emitter *e, bool load, uint32_t regs)
{
	for (unsigned r = 0; r < 32; r++) {
		if (!(regs >> r & 1))
			continue;
		if (r >= 16) {
			move_high_vec(e, load, r, e->wide);
			continue;
		}
		move_vec(e, load, r);
		if (e->wide)
			move_upper(e, load, r);
	}
}

static void push_pop(struct emitter *e, bool push, unsigned reg)
{
	if (reg >= 8)
		byte(e, 0x41);
	byte(e, (push ? 0x50 : 0x58) | (reg & 7));
}

static unsigned pick(uint16_t *used)
{
	static const uint8_t order[] = { RDI, RSI, RAX, RCX, RDX, RBX, RBP };

	for (size_t i = 0; i < sizeof order; i++)
		if (!(*used >> order[i] & 1)) {
			*used |= (uint16_t)(1u << order[i]);
			return order[i];
		}
	return 8; /* no instruction names that many */
}

/* The guest's instruction with its memory operand and rsp replaced. */
static bool emit_instruction(struct emitter *e, const struct insn *in, const struct touched *t)
{
	ZydisEncoderRequest req;
	ZyanUSize length = ZYDIS_MAX_INSTRUCTION_LENGTH;
	const struct native_made as = {
		.pointer = t->memory >= 0 ? low_regs[e->pointer] : ZYDIS_REGISTER_NONE,
		.spare = t->gpr >> RSP & 1 ? low_regs[e->spare] : ZYDIS_REGISTER_NONE,
	};

	if (ZYAN_FAILED(ZydisEncoderDecodedInstructionToEncoderRequest(
		    &in->i, in->op, in->i.operand_count_visible, &req)))
		return false;
	req.address_size_hint = ZYDIS_ADDRESS_SIZE_HINT_NONE;
	for (int k = 0; k < req.operand_count; k++) {
		ZydisEncoderOperand *op = &req.operands[k];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && k == t->memory) {
			op->mem.base = low_regs[e->pointer];
			op->mem.index = ZYDIS_REGISTER_NONE;
			op->mem.scale = 0;
			op->mem.displacement = 0;
		} else if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
			   reg_offset(op->reg.value) == gpr_offset(RSP)) {
			op->reg.value = ZydisRegisterEncode(
				ZydisRegisterGetClass(op->reg.value),
				(ZyanU8)e->spare);
		}
	}
	req.prefixes = 0;
	if (ZYAN_FAILED(ZydisEncoderEncodeInstruction(&req, e->p, &length)) ||
	    !native_made_right(in, e->p, length, &as))
		return false;
	e->p += length;
	return true;
}

static void fx_state(struct emitter *e, bool load)
{
	byte(e, 0x48);
	byte(e, 0x0f);
	byte(e, 0xae);
	frame_operand(e, load ? 1 : 0, (uint32_t)offsetof(struct mach_frame, fx));
}

static void load_registers(struct emitter *e, const struct native_insn *n,
			   const struct touched *t, uint16_t gpr)
{
	if (t->x87)
		fx_state(e, true);
	move_vectors(e, true, t->vec);
	for (unsigned r = 0; r < 8; r++)
		if (t->k >> r & 1)
			move_mask(e, true, r);
	if (n->size) { /* lea operand(base), pointer */
		byte(e, 0x48);
		byte(e, 0x8d);
		frame_operand(e, e->pointer, (uint32_t)offsetof(struct mach_frame, operand));
	}
	if (n->reads_flags) { /* push flags(base); popfq */
		byte(e, 0xff);
		frame_operand(e, 6, (uint32_t)offsetof(struct mach_frame, flags));
		byte(e, 0x9d);
	}
	for (unsigned r = 0; r < 16; r++)
		if (gpr >> r & 1)
			move_gpr(e, true, r == RSP ? e->spare : r, gpr_offset(r));
}

static void store_registers(struct emitter *e, const struct native_insn *n,
			    const struct touched *t)
{
	if (n->writes_flags) { /* pushfq; pop flags(base) */
		byte(e, 0x9c);
		byte(e, 0x8f);
		frame_operand(e, 0, (uint32_t)offsetof(struct mach_frame, flags));
		byte(e, 0xfc); /* cld: the host expects it, whatever the instruction did */
	}
	for (unsigned r = 0; r < 16; r++)
		if (t->gpr_written >> r & 1)
			move_gpr(e, false, r == RSP ? e->spare : r, gpr_offset(r));
	move_vectors(e, false, t->vec_written);
	for (unsigned r = 0; r < 8; r++)
		if (t->k_written >> r & 1)
			move_mask(e, false, r);
	if (t->x87) {
		fx_state(e, false);
		byte(e, 0xdb); /* fninit: the host expects a clean stack */
		byte(e, 0xe3);
	}
	if (t->vec && host_has_avx()) { /* vzeroupper */
		byte(e, 0xc5);
		byte(e, 0xf8);
		byte(e, 0x77);
	}
}

bool native_emit(struct mach *m, const struct insn *in, const struct touched *t,
		 struct native_insn *n)
{
	static const uint8_t preserved[] = { RBX, RBP, 12, 13, 14, 15 };
	struct native_code *c = m->native;
	uint16_t used = t->gpr | 1u << RSP;
	struct emitter e = { .p = c->next, .wide = m->wide };
	size_t pushed = 0;

	if (c->next + STUB_MAX > c->space.write + STUB_SPACE) {
		m->flush_wanted = true; /* room again from the next block on */
		return false;
	}
	e.base = pick(&used);
	e.pointer = n->size ? pick(&used) : 0;
	e.spare = t->gpr >> RSP & 1 ? pick(&used) : 0;
	if (e.base > 7 || e.pointer > 7 || e.spare > 7)
		return false;
	n->stub = (void (*)(struct mach_frame *))(uintptr_t)exec_space_run(&c->space, e.p);
	for (; pushed < sizeof preserved; pushed++)
		if (used >> preserved[pushed] & 1)
			push_pop(&e, true, preserved[pushed]);
	if (e.base != RDI) { /* mov rdi, base */
		byte(&e, 0x48);
		byte(&e, 0x89);
		byte(&e, 0xc0 | RDI << 3 | e.base);
	}
	load_registers(&e, n, t, t->gpr);
	if (!emit_instruction(&e, in, t))
		return false;
	store_registers(&e, n, t);
	while (pushed-- > 0)
		if (used >> preserved[pushed] & 1)
			push_pop(&e, false, preserved[pushed]);
	byte(&e, 0xc3);
	c->next = e.p;
	return true;
}
