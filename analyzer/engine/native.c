/*
 * Instructions the host executes itself.
 *
 * A stub is a small function made for one guest instruction. It loads the
 * registers the instruction names from the frame, executes it with its memory
 * operand replaced by the frame's operand buffer, and stores what it wrote.
 * Whole vector registers are loaded and stored, so partial writes keep what
 * they must keep (native_emit.c). x87 and MMX instructions get their state by FXRSTOR/FXSAVE.
 *
 * MXCSR is not switched here: the guest's stays loaded while the engine runs.
 */
#include "analyzer/engine/native.h"

#include <string.h>

/* ---- operands ---- */

uint32_t reg_offset(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64)
		return 0;
	return gpr_offset((unsigned)ZydisRegisterGetId(whole));
}

bool operand_address(const struct insn *in, const ZydisDecodedOperand *op,
		     struct operand_address *out)
{
	memset(out, 0, sizeof *out);
	out->displacement = op->mem.disp.has_displacement ? op->mem.disp.value : 0;
	out->scale = op->mem.scale;
	out->small = in->i.address_width == 32;
	if (op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_EIP)
		out->displacement += (int64_t)(in->pc + in->i.length);
	else if (op->mem.base != ZYDIS_REGISTER_NONE && !(out->base = reg_offset(op->mem.base)))
		return false;
	if (op->mem.index != ZYDIS_REGISTER_NONE && !(out->index = reg_offset(op->mem.index)))
		return false;
	if (op->mem.segment == ZYDIS_REGISTER_FS)
		out->segment = MACH_OFF(FS_CONST);
	else if (op->mem.segment == ZYDIS_REGISTER_GS)
		out->segment = MACH_OFF(GS_CONST);
	return true;
}

static uint64_t word_at(const struct mach *m, uint32_t offset)
{
	return offset ? *(const uint64_t *)mach_at(m, offset) : 0;
}

uint64_t operand_compute(const struct mach *m, const struct operand_address *a)
{
	uint64_t at = (uint64_t)a->displacement + word_at(m, a->base) +
		      word_at(m, a->index) * a->scale;

	if (a->small)
		at = (uint32_t)at;
	return at + word_at(m, a->segment);
}

static void touch_register(struct touched *t, const ZydisDecodedOperand *op)
{
	ZydisRegister reg = op->reg.value;
	bool read = op->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
	bool write = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
	int id = ZydisRegisterGetId(reg);
	uint32_t offset;

	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
		offset = reg_offset(reg);
		id = (int)(offset - gpr_offset(0)) / 8;
		t->gpr |= (uint16_t)(1u << id);
		if (read || ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) < 32)
			t->gpr_read |= (uint16_t)(1u << id);
		if (write)
			t->gpr_written |= (uint16_t)(1u << id);
		break;
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_ZMM:
		t->vec |= 1u << id;
		if (read)
			t->vec_read |= 1u << id;
		if (write)
			t->vec_written |= 1u << id;
		break;
	case ZYDIS_REGCLASS_MASK:
		t->k |= (uint8_t)(1u << id);
		if (write)
			t->k_written |= (uint8_t)(1u << id);
		break;
	case ZYDIS_REGCLASS_MMX:
	case ZYDIS_REGCLASS_X87:
		t->x87 = true;
		break;
	case ZYDIS_REGCLASS_FLAGS:
		break;
	default: /* segments, control registers, tiles */
		if (reg == ZYDIS_REGISTER_X87CONTROL || reg == ZYDIS_REGISTER_X87STATUS ||
		    reg == ZYDIS_REGISTER_X87TAG || reg == ZYDIS_REGISTER_MXCSR)
			break;
		t->ok = false;
	}
}

static void touch(const struct insn *in, struct touched *t)
{
	memset(t, 0, sizeof *t);
	t->ok = true;
	t->memory = -1;
	t->x87 = in->i.meta.isa_ext == ZYDIS_ISA_EXT_X87 ||
		 in->i.meta.isa_ext == ZYDIS_ISA_EXT_MMX ||
		 in->i.meta.category == ZYDIS_CATEGORY_X87_ALU;
	for (int k = 0; k < in->i.operand_count; k++) {
		const ZydisDecodedOperand *op = &in->op[k];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			touch_register(t, op);
		} else if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			if (op->mem.type != ZYDIS_MEMOP_TYPE_MEM || t->memory >= 0 ||
			    op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
				t->ok = false; /* gathers, address computations, two operands */
			t->memory = k;
		} else if (op->type == ZYDIS_OPERAND_TYPE_POINTER) {
			t->ok = false;
		}
	}
}

/* Bytes of alignment the memory operand must have, or 0. */
static uint8_t alignment(const struct insn *in, unsigned size)
{
	switch (in->i.mnemonic) {
	case ZYDIS_MNEMONIC_VMOVAPS:
	case ZYDIS_MNEMONIC_VMOVAPD:
	case ZYDIS_MNEMONIC_VMOVDQA:
	case ZYDIS_MNEMONIC_VMOVDQA32:
	case ZYDIS_MNEMONIC_VMOVDQA64:
	case ZYDIS_MNEMONIC_VMOVNTDQ:
	case ZYDIS_MNEMONIC_VMOVNTDQA:
	case ZYDIS_MNEMONIC_VMOVNTPS:
	case ZYDIS_MNEMONIC_VMOVNTPD:
		return (uint8_t)size;
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVUPD:
	case ZYDIS_MNEMONIC_MOVDQU:
	case ZYDIS_MNEMONIC_LDDQU:
	case ZYDIS_MNEMONIC_PCMPESTRI:
	case ZYDIS_MNEMONIC_PCMPESTRM:
	case ZYDIS_MNEMONIC_PCMPISTRI:
	case ZYDIS_MNEMONIC_PCMPISTRM:
		return 0;
	default:
		return in->i.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && size == 16 ? 16 : 0;
	}
}

/* x87 instructions that do not ask whether an exception is pending. */
static bool never_waits(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_FNINIT:
	case ZYDIS_MNEMONIC_FNCLEX:
	case ZYDIS_MNEMONIC_FNSTCW:
	case ZYDIS_MNEMONIC_FNSTSW:
	case ZYDIS_MNEMONIC_FNSTENV:
	case ZYDIS_MNEMONIC_FNSAVE:
		return true;
	default:
		return false;
	}
}

/* ---- entry points ---- */

static void flags_use(const struct insn *in, struct native_insn *n)
{
	const ZydisAccessedFlags *f = in->i.cpu_flags;

	if (!f)
		return;
	n->reads_flags = f->tested != 0;
	n->writes_flags = (f->modified | f->set_0 | f->set_1 | f->undefined) != 0;
	/* What is only partly written keeps its other flags. */
	n->reads_flags |= n->writes_flags;
}

struct native_insn *native_make(struct mach *m, const struct insn *in)
{
	struct native_insn *n = mach_arena(m, sizeof *n);
	struct touched t;

	memset(n, 0, sizeof *n);
	if (insn_is_wide(in))
		mach_go_wide(m);
	touch(in, &t);
	if (!t.ok || !native_allows(in) || !host_can(&in->i) || !m->native->space.write)
		return NULL;
	if (t.memory >= 0) {
		const ZydisDecodedOperand *op = &in->op[t.memory];

		n->size = op->size / 8;
		n->reads = op->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
		n->writes = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
		n->align = alignment(in, n->size);
		if (!n->size || n->size > sizeof m->frame->operand ||
		    !operand_address(in, op, &n->address))
			return NULL;
	}
	flags_use(in, n);
	n->x87 = t.x87;
	n->waits = t.x87 && !never_waits(in->i.mnemonic);
	n->gpr_read = t.gpr_read;
	n->gpr_written = t.gpr_written;
	n->vec_read = t.vec_read;
	n->vec_written = t.vec_written;
	n->mnemonic = (uint16_t)in->i.mnemonic;
	native_find_lanes(in, &in->op[t.memory < 0 ? 0 : t.memory], n);
	native_find_move(in, n);
	return native_emit(m, in, &t, n) ? n : NULL;
}

bool native_host_lacks(const struct insn *in)
{
	return in->class == INSN_NATIVE && !host_can(&in->i);
}

void native_init(struct mach *m)
{
	struct native_code *c = xcalloc(1, sizeof *c);

	exec_space_new(&c->space, STUB_SPACE);
	c->next = c->space.write;
	m->native = c;
}

void native_flush(struct mach *m)
{
	if (m->native)
		m->native->next = m->native->space.write;
}

void native_free(struct mach *m)
{
	if (m->native)
		exec_space_free(&m->native->space);
	free(m->native);
}
