/*
 * Instructions the host executes itself.
 *
 * A stub is a small function made for one guest instruction. It loads the
 * registers the instruction names from the frame, executes it with its memory
 * operand replaced by the frame's operand buffer, and stores what it wrote.
 * Whole vector registers are loaded and stored, so partial writes keep what
 * they must keep. x87 and MMX instructions get their state by FXRSTOR/FXSAVE.
 *
 * MXCSR is not switched here: the guest's stays loaded while the engine runs.
 */
#include "analyzer/machine/code.h"

#include <cpuid.h>
#include <string.h>
#include <sys/mman.h>

#define STUB_SPACE (32u << 20)
#define STUB_MAX 512u

struct native_code {
	uint8_t *base, *next;
};

/* ---- what this host can do ---- */

enum cpuid_reg { R_EBX, R_ECX, R_EDX };

static const struct {
	ZydisISAExt ext;
	uint8_t leaf;
	uint8_t reg; /* enum cpuid_reg */
	uint8_t bit;
} needs[] = {
	{ ZYDIS_ISA_EXT_SSE3, 1, R_ECX, 0 },      { ZYDIS_ISA_EXT_SSSE3, 1, R_ECX, 9 },
	{ ZYDIS_ISA_EXT_SSE4, 1, R_ECX, 19 },     { ZYDIS_ISA_EXT_AES, 1, R_ECX, 25 },
	{ ZYDIS_ISA_EXT_PCLMULQDQ, 1, R_ECX, 1 }, { ZYDIS_ISA_EXT_AVX, 1, R_ECX, 28 },
	{ ZYDIS_ISA_EXT_F16C, 1, R_ECX, 29 },     { ZYDIS_ISA_EXT_FMA, 1, R_ECX, 12 },
	{ ZYDIS_ISA_EXT_AVX2, 7, R_EBX, 5 },      { ZYDIS_ISA_EXT_SHA, 7, R_EBX, 29 },
	{ ZYDIS_ISA_EXT_VAES, 7, R_ECX, 9 },      { ZYDIS_ISA_EXT_VPCLMULQDQ, 7, R_ECX, 10 },
	{ ZYDIS_ISA_EXT_GFNI, 7, R_ECX, 8 },      { ZYDIS_ISA_EXT_ADOX_ADCX, 7, R_EBX, 19 },
	{ ZYDIS_ISA_EXT_BMI1, 7, R_EBX, 3 },      { ZYDIS_ISA_EXT_BMI2, 7, R_EBX, 8 },
};

static bool host_bit(unsigned leaf, unsigned reg, unsigned bit)
{
	unsigned a, b, c, d;

	if (!__get_cpuid_count(leaf, 0, &a, &b, &c, &d))
		return false;
	return ((reg == R_EBX ? b : reg == R_ECX ? c : d) >> bit) & 1;
}

static bool host_can(ZydisISAExt ext)
{
	for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
		if (needs[i].ext == ext)
			return host_bit(needs[i].leaf, needs[i].reg, needs[i].bit);
	/* The rest is either part of x86-64 or refused by its operands (AVX-512). */
	return true;
}

static bool host_has_avx(void)
{
	static int known = -1;

	if (known < 0)
		known = host_bit(1, R_ECX, 28);
	return known;
}

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
	if (op->mem.base == ZYDIS_REGISTER_RIP)
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

/* What an instruction touches, gathered from all its operands. */
struct touched {
	uint16_t gpr, gpr_read, gpr_written;
	uint16_t vec, vec_read, vec_written;
	bool x87, ok;
	int memory; /* operand index, or -1 */
};

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
		if (id > 15) {
			t->ok = false;
			break;
		}
		t->vec |= (uint16_t)(1u << id);
		if (read)
			t->vec_read |= (uint16_t)(1u << id);
		if (write)
			t->vec_written |= (uint16_t)(1u << id);
		break;
	case ZYDIS_REGCLASS_MMX:
	case ZYDIS_REGCLASS_X87:
		t->x87 = true;
		break;
	case ZYDIS_REGCLASS_FLAGS:
		break;
	default: /* mask registers, 512 bits, segments, control registers */
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

/* ---- emitting machine code ---- */

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

	if (ZYAN_FAILED(ZydisEncoderDecodedInstructionToEncoderRequest(
		    &in->i, in->op, in->i.operand_count_visible, &req)))
		return false;
	req.prefixes &= ~(ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS |
			  ZYDIS_ATTRIB_HAS_SEGMENT_CS | ZYDIS_ATTRIB_HAS_SEGMENT_SS |
			  ZYDIS_ATTRIB_HAS_SEGMENT_DS | ZYDIS_ATTRIB_HAS_SEGMENT_ES);
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
	if (ZYAN_FAILED(ZydisEncoderEncodeInstruction(&req, e->p, &length)))
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
	for (unsigned r = 0; r < 16; r++)
		if (t->vec >> r & 1)
			move_vec(e, true, r);
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
	}
	for (unsigned r = 0; r < 16; r++)
		if (t->gpr_written >> r & 1)
			move_gpr(e, false, r == RSP ? e->spare : r, gpr_offset(r));
	for (unsigned r = 0; r < 16; r++)
		if (t->vec_written >> r & 1)
			move_vec(e, false, r);
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

static bool emit_stub(struct mach *m, const struct insn *in, const struct touched *t,
		      struct native_insn *n)
{
	static const uint8_t preserved[] = { RBX, RBP, 12, 13, 14, 15 };
	struct native_code *c = m->native;
	uint16_t used = t->gpr | 1u << RSP;
	struct emitter e = { .p = c->next };
	size_t pushed = 0;

	if (c->next + STUB_MAX > c->base + STUB_SPACE) {
		m->flush_wanted = true; /* room again from the next block on */
		return false;
	}
	e.base = pick(&used);
	e.pointer = n->size ? pick(&used) : 0;
	e.spare = t->gpr >> RSP & 1 ? pick(&used) : 0;
	if (e.base > 7 || e.pointer > 7 || e.spare > 7)
		return false;
	n->stub = (void (*)(struct mach_frame *))(uintptr_t)e.p;
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
	touch(in, &t);
	if (!t.ok || !host_can(in->i.meta.isa_ext) || !m->native->base)
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
	n->gpr_read = t.gpr_read;
	n->gpr_written = t.gpr_written;
	n->vec_read = t.vec_read;
	n->vec_written = t.vec_written;
	n->mnemonic = (uint16_t)in->i.mnemonic;
	native_find_move(in, n);
	return emit_stub(m, in, &t, n) ? n : NULL;
}

void native_init(struct mach *m)
{
	struct native_code *c = xcalloc(1, sizeof *c);

	c->base = mmap(NULL, STUB_SPACE, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->base == MAP_FAILED)
		c->base = NULL;
	c->next = c->base;
	m->native = c;
}

void native_flush(struct mach *m)
{
	if (m->native)
		m->native->next = m->native->base;
}

void native_free(struct mach *m)
{
	if (m->native && m->native->base)
		munmap(m->native->base, STUB_SPACE);
	free(m->native);
}
