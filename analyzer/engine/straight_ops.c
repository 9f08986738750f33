/* See straight.h: the machine code of one operation. */
#include "analyzer/engine/straight_ops.h"

#include "analyzer/engine/straight.h"

/* ---- the frame's registers ---- */

/* 8 bytes from one place of the frame to another */
static void do_put(struct straight_run *r, uint32_t to, uint32_t from)
{
	struct straight_value v = val_operand(r, 64, from, R_NONE);

	if (v.constant && val_fits(v.bits)) {
		val_forget(r, to);
		x_frame(&r->code, 0xc7, true, 0, to); /* mov imm32, sign-extended */
		x_u32(&r->code, (uint32_t)v.bits);
		return;
	}
	if (v.constant)
		v.reg = (uint8_t)val_own(r, v, 64, R_NONE);
	x_frame(&r->code, I_STORE, true, v.reg, to);
	val_holds(r, v.reg, to);
}

static void do_narrow_put(struct straight_run *r, const struct mach_op *op, unsigned bits)
{
	val_into(r, R_AX, val_operand(r, bits, op->a, R_NONE), bits);
	if (bits == 16)
		x_byte(&r->code, 0x66);
	x_frame(&r->code, bits == 8 ? I_STORE8 : I_STORE, false, R_AX, op->d);
	val_forget(r, op->d & ~7u);
}

/* ---- memory ---- */

static struct straight_exit *leaves(struct straight_run *r, uint8_t *from, uint32_t op)
{
	struct straight_exit *x = &r->exits[r->nexits++];

	*x = (struct straight_exit){ .from = from, .op = op };
	return x;
}

static unsigned log2_of(unsigned size)
{
	return size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0;
}

/* As mem_hit(): rdx is the host's page, rcx the offset in it; who is not there leaves. */
static struct straight_exit *translate(struct straight_run *r, unsigned address, unsigned size,
				       bool store, uint32_t index)
{
	uint32_t table = (uint32_t)(store ? offsetof(struct mem, write) : offsetof(struct mem, read));
	struct code *c = &r->code;

	x_rr(c, I_MOV, true, R_AX, address);
	x_shift_imm(c, 5, false, R_AX, 8);
	x_ri(c, 4, false, R_AX, (MEM_TLB - 1) * (uint32_t)sizeof(struct mem_tlb));
	x_rr(c, I_MOV, true, R_CX, address);
	x_indexed(c, I_XOR, true, R_CX, R_SI, R_AX, table + (uint32_t)offsetof(struct mem_tlb, tag));
	x_indexed(c, I_MOV, true, R_DX, R_SI, R_AX, table + (uint32_t)offsetof(struct mem_tlb, host));
	x_ri(c, 7, true, R_CX, MEM_PAGE - size);
	struct straight_exit *x = leaves(r, x_jcc(c, CC_A), index);

	x->size = (uint8_t)size;
	x->address = (uint8_t)address;
	x->store = store;
	return x;
}

_Static_assert(sizeof(struct mem_tlb) == 16 && MEM_PAGE == 4096,
	       "an address shifted by 8 is the offset of its entry");

static void do_load(struct straight_run *r, unsigned address, unsigned size, uint32_t d,
		    uint32_t index)
{
	static const uint32_t insns[] = { I_ZX8, I_ZX16, I_MOV, I_MOV };
	struct straight_exit *x = translate(r, address, size, false, index);
	unsigned to = val_fresh(r, R_NONE, R_NONE);

	x->value = (uint8_t)to;
	x_indexed(&r->code, insns[log2_of(size)], size == 8, to, R_DX, R_CX, 0);
	x->back = r->code.p;
	val_result(r, to, 64, d);
}

static void do_store(struct straight_run *r, unsigned address, unsigned size, uint32_t from,
		     uint32_t index)
{
	struct straight_value v = val_operand(r, 8 * size, from, address);

	if (v.constant)
		v.reg = (uint8_t)val_own(r, v, 64, address);
	struct straight_exit *x = translate(r, address, size, true, index);

	x->value = v.reg;
	if (size == 2)
		x_byte(&r->code, 0x66);
	x_indexed(&r->code, size == 1 ? I_STORE8 : I_STORE, size == 8, v.reg, R_DX, R_CX, 0);
	x->back = r->code.p;
}

static unsigned address_at(struct straight_run *r, uint32_t offset)
{
	struct straight_value v = val_operand(r, 64, offset, R_NONE);

	return v.constant ? val_own(r, v, 64, R_NONE) : v.reg;
}

/* a + b, which is kept at `to` as well */
static unsigned sum(struct straight_run *r, const struct mach_op *op, uint32_t to)
{
	struct mach_op add = { .code = OP_ADD64, .d = to, .a = op->a, .b = op->b };

	straight_alu(r, &add);
	return address_at(r, to);
}

/* ---- calls ---- */

static void call_host(struct straight_run *r, uint64_t function)
{
	struct code *c = &r->code;

	x_constant(c, R_DI, (uint64_t)r->m);
	x_constant(c, R_AX, function);
	x_op(c, 0x83, true, 0, 0, 0, false), x_byte(c, 0xec), x_byte(c, 8); /* sub 8, rsp */
	x_byte(c, 0xff), x_byte(c, 0xd0);
	x_op(c, 0x83, true, 0, 0, 0, false), x_byte(c, 0xc4), x_byte(c, 8);
	x_constant(c, R_DI, (uint64_t)r->m->f);
	x_constant(c, R_SI, (uint64_t)r->m->mem);
	val_forget_all(r);
}

static void do_call_out(struct straight_run *r, const struct mach_op *op, uint32_t index)
{
	x_constant(&r->code, R_SI, op->code == OP_NATIVE ? op->imm : (uint64_t)op);
	if (op->code == OP_CALL) {
		call_host(r, (uint64_t)straight_call);
		return;
	}
	x_constant(&r->code, R_DX, r->b->insn_pc[op->insn]);
	call_host(r, (uint64_t)straight_native);
	x_rr(&r->code, I_TEST, false, R_AX, R_AX);
	leaves(r, x_jcc(&r->code, CC_NE), index)->stopped = true;
}

static void do_exit(struct straight_run *r, const struct mach_op *op, uint32_t index)
{
	val_into(r, R_AX, val_operand(r, 8, op->a, R_NONE), 8);
	x_ri(&r->code, 4, false, R_AX, 1);
	leaves(r, x_jcc(&r->code, CC_NE), index);
}

/* ---- which is which ---- */

static bool do_access(struct straight_run *r, const struct mach_op *op, uint32_t index)
{
	unsigned size;

	if (IS_ONE_OF(op->code, LOADAT)) {
		size = 1u << (op->code - OP_LOADAT8);
		do_load(r, sum(r, op, (uint32_t)op->imm), size, op->d, index);
	} else if (IS_ONE_OF(op->code, STOREAT)) {
		size = 1u << (op->code - OP_STOREAT8);
		do_store(r, sum(r, op, op->d), size, (uint32_t)op->imm, index);
	} else if (IS_ONE_OF(op->code, LOAD)) {
		size = 1u << (op->code - OP_LOAD8);
		do_load(r, address_at(r, op->a), size, op->d, index);
	} else if (IS_ONE_OF(op->code, STORE)) {
		size = 1u << (op->code - OP_STORE8);
		do_store(r, address_at(r, op->a), size, op->b, index);
	} else {
		return false;
	}
	return true;
}

static bool do_other(struct straight_run *r, const struct mach_op *op, uint32_t index)
{
	switch (op->code) {
	case OP_LOW128: do_put(r, op->d, op->a); break;
	case OP_HIGH128: do_put(r, op->d, op->a + 8); break;
	case OP_MOVE:
		do_put(r, op->d, op->a);
		do_put(r, op->d + 8, op->a + 8);
		break;
	case OP_GET64: case OP_PUT64: do_put(r, op->d, op->a); break;
	case OP_PUT8: do_narrow_put(r, op, 8); break;
	case OP_PUT16: do_narrow_put(r, op, 16); break;
	case OP_PUT32: do_narrow_put(r, op, 32); break;
	case OP_PUTS4:
	case OP_PUTS3:
		do_put(r, op->d, op->a);
		do_put(r, op->d + 8, op->b);
		do_put(r, op->d + 16, (uint32_t)op->imm);
		if (op->code == OP_PUTS4)
			do_put(r, op->d + 24, (uint32_t)(op->imm >> 32));
		break;
	case OP_PUTS2:
		do_put(r, op->d, op->a);
		do_put(r, (uint32_t)op->imm, op->b);
		break;
	case OP_CALL: case OP_NATIVE: do_call_out(r, op, index); break;
	case OP_EXIT: do_exit(r, op, index); break;
	default: return false;
	}
	return true;
}

/* Words of the frame are remembered as a whole. */
static bool writes_words(const struct mach_op *op)
{
	bool narrow = op->code == OP_PUT8 || op->code == OP_PUT16 || op->code == OP_PUT32;

	return narrow || op->d % 8 == 0;
}

bool straight_knows(const struct mach_op *op)
{
	if (!writes_words(op))
		return false;
	switch (op->code) {
	case OP_DIVU128: case OP_DIVS128: case OP_DIVU64: case OP_DIVS64:
	case OP_CAS: case OP_SPECIAL: case OP_LOCK: case OP_UNLOCK: case OP_FENCE:
	case OP_END: case OP_ENDI: case OP_STOP: case OP_STRAIGHT: case OP_NOTHING:
		return false;
	default:
		return true;
	}
}

#define OP_ROOM 512 /* bytes of code, its part behind the run included */

bool straight_op(struct straight_run *r, const struct mach_op *op, uint32_t index)
{
	if (r->nexits + 4 > STRAIGHT_EXITS || r->code.end - r->code.p < OP_ROOM + 128 * (int)r->nexits)
		return false;
	return straight_alu(r, op) || do_access(r, op, index) || do_other(r, op, index);
}

void straight_begin(struct straight_run *r)
{
	val_forget_all(r);
}

/* ---- behind the run ---- */

static void emit_return(struct straight_run *r, uint32_t index)
{
	x_constant(&r->code, R_AX, index);
	x_byte(&r->code, 0xc3);
}

/* The buffers do not know the page: memory.c is asked, and the interpreter only if it refuses. */
static void emit_access(struct straight_run *r, const struct straight_exit *x)
{
	struct code *c = &r->code;
	unsigned which = log2_of(x->size);

	x_rr(c, I_MOV, true, R_DX, x->address);
	if (x->store)
		x_rr(c, I_MOV, true, R_CX, x->value);
	x_call(c, x->store ? r->thunks->store[which] : r->thunks->load[which]);
	x_rr(c, I_TEST, false, R_AX, R_AX);
	uint8_t *refused = x_jcc(c, CC_E);

	if (!x->store)
		x_rr(c, I_MOV, true, x->value, R_DX);
	x_jump(c, x->back);
	x_lands(refused, c->p);
	emit_return(r, x->op);
}

static void emit_stop(struct straight_run *r, uint32_t index)
{
	struct code *c = &r->code;

	x_constant(c, R_CX, (uint64_t)&r->m->straight_stop);
	x_byte(c, 0x89), x_byte(c, 0x01); /* mov eax, (rcx) */
	emit_return(r, index | STRAIGHT_STOPPED);
}

void straight_end(struct straight_run *r, uint32_t next)
{
	emit_return(r, next);
	for (unsigned i = 0; i < r->nexits; i++) {
		const struct straight_exit *x = &r->exits[i];

		x_lands(x->from, r->code.p);
		if (x->stopped)
			emit_stop(r, x->op);
		else if (x->back)
			emit_access(r, x);
		else
			emit_return(r, x->op);
	}
}
