/* See emit.h. */
#include "preload/translate/emit.h"

uint32_t tr_low;
uint8_t *tr_at;

/*
 * Some opcode bytes, then 32 bits, in two stores: bytes behind those given are overwritten by
 * what comes next. With a store for each byte every one waited for the cursor of the one before.
 */
static void opcode_and_32(uint64_t bytes, unsigned n, uint32_t v)
{
	uint8_t *at = tr_at;

	((struct tr_unaligned *)at)->v64 = bytes;
	((struct tr_unaligned *)(at + n))->v32 = v;
	tr_at = at + n + 4;
}

static void modrm_abs(int reg, uint32_t address)
{
	e8(0x04 | (reg & 7) << 3);
	e8(0x25);
	e32(address);
}

/* gs prefix, REX.W, opcode, modrm, sib, offset */
static void gs_move(unsigned opcode, int reg, unsigned offset)
{
	uint32_t first = 0x65 | (0x48u | (uint32_t)(reg >> 3) << 2) << 8 | opcode << 16 |
			 (0x04u | (uint32_t)(reg & 7) << 3) << 24;

	opcode_and_32(first | 0x25ull << 32, 5, offset);
}

void emit_gs_load(int reg, unsigned offset)
{
	gs_move(0x8b, reg, offset);
}

void emit_gs_store(unsigned offset, int reg)
{
	gs_move(0x89, reg, offset);
}

void emit_gs_zero(unsigned offset)
{
	e8(0x65);
	e8(0x48);
	e8(0xc7);
	modrm_abs(0, offset);
	e32(0);
}

void emit_jump_pointer(enum low_pointer p)
{
	opcode_and_32(0x2524ff, 3, tr_low + LOW_POINTERS + 8 * p);
}

void emit_jump_to(const uint8_t *to)
{
	e8(0xe9);
	e32((uint32_t)(to - (tr_at + 4)));
}

void emit_align_rel32(unsigned before)
{
	while ((((uint64_t)tr_at + before) & 63) > 60)
		e8(0x90);
}

/* VEX where there is AVX: mixing both costs a state transition on some processors. */
void emit_ptr_get(int reg)
{
	uint32_t first = tr_machine.avx ? 0x7ef941c4u | (reg > 7 ? 0 : 0x2000u) :
					  0x7e0f4c66u | (uint32_t)(reg >> 3) << 8;

	e32(first);
	e8(0xf8 | (reg & 7));
}

void emit_ptr_add(unsigned n)
{
	uint32_t addend = tr_low + LOW_ADDENDS + 16 * n;

	if (tr_machine.avx)
		opcode_and_32(0x253cd401c5, 5, addend);
	else
		opcode_and_32(0x253cd40f4466, 6, addend);
}

/* VEC: all of it, as wide as it is. */
enum vec15_move { PTR_STORE, PTR_LOAD, VEC_LOAD, VEC_STORE, XMM_LOAD, YMM_LOAD, XMM_STORE };

static void vec15_move(enum vec15_move m)
{
	bool whole = m == VEC_LOAD || m == VEC_STORE, wide = whole || m == YMM_LOAD;
	static const uint8_t opcode[] = { 0xd6, 0x7e, 0x6f, 0x7f, 0x6f, 0x6f, 0x7f };
	static const uint8_t prefix[] = { 0x66, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3 };

	e8(0x65);
	if (whole && tr_machine.avx512) { /* vmovdqu64 zmm15 */
		e8(0x62);
		e8(0x71);
		e8(0xfe);
		e8(0x48);
		e8(opcode[m]);
		modrm_abs(7, CTX_VEC15);
		return;
	}
	if (tr_machine.avx) {
		e8(0xc5);
		e8(0x78 | (wide ? 4 : 0) | (prefix[m] == 0x66 ? 1 : 2));
	} else {
		e8(prefix[m]);
		e8(0x44);
		e8(0x0f);
	}
	e8(opcode[m]);
	modrm_abs(7, m == PTR_STORE || m == PTR_LOAD ? CTX_PTR : CTX_VEC15);
}

void emit_vec15_in(void)
{
	vec15_move(PTR_STORE);
	vec15_move(VEC_LOAD);
}

void emit_vec15_out(void)
{
	vec15_move(VEC_STORE);
	vec15_move(PTR_LOAD);
}

void emit_vec15_low_in(void)
{
	vec15_move(PTR_STORE);
	vec15_move(XMM_LOAD);
}

void emit_vec15_low_out(void)
{
	vec15_move(XMM_STORE);
	vec15_move(PTR_LOAD);
}

/* To `nonzero`, a forward jump to be filled in, when any of these words is not zero. */
static unsigned jump_if_used(unsigned from, unsigned to, uint8_t **nonzero)
{
	unsigned n = 0;

	for (unsigned at = from; at < to; at += 8) {
		uint8_t *zero;

		emit_gs_load(REG_RCX_, CTX_VEC15 + at);
		e8(0xe3), zero = tr_at++; /* jrcxz: flags stay */
		e8(0xeb), nonzero[n++] = tr_at++;
		*zero = (uint8_t)(tr_at - (zero + 1));
	}
	return n;
}

static void jump_lands_here(uint8_t *from)
{
	*from = (uint8_t)(tr_at - (from + 1));
}

/* One width of the load below, and over the others. */
static uint8_t *load_vec15_as(enum vec15_move m)
{
	emit_gs_load(REG_RCX_, CTX_RCX);
	vec15_move(m);
	e8(0xeb);
	return tr_at++;
}

/*
 * No wider than what is in use: a 256-bit load of zeros is a use, too. xsave and kin show it; and
 * while the upper parts of any register are in use, Intel's processors (measured: family 6, model
 * 207) take some 300 cycles from an instruction without VEX to one with it, and as many back: in
 * code made for SSE that is before and behind each path record.
 */
void emit_vec15_in_exact(void)
{
	uint8_t *upper[4], *half[2], *done[2];
	unsigned nupper = 0, ndone = 0;

	vec15_move(PTR_STORE);
	if (!tr_machine.avx) {
		vec15_move(VEC_LOAD);
		return;
	}
	emit_gs_store(CTX_RCX, REG_RCX_);
	if (tr_machine.avx512)
		nupper = jump_if_used(32, 64, upper);
	jump_if_used(16, 32, half);
	done[ndone++] = load_vec15_as(XMM_LOAD);
	for (unsigned i = 0; i < 2; i++)
		jump_lands_here(half[i]);
	done[ndone++] = load_vec15_as(YMM_LOAD);
	for (unsigned i = 0; i < nupper; i++)
		jump_lands_here(upper[i]);
	if (nupper) {
		emit_gs_load(REG_RCX_, CTX_RCX);
		vec15_move(VEC_LOAD);
	}
	for (unsigned i = 0; i < ndone; i++)
		jump_lands_here(done[i]);
}

void emit_vzeroupper_fix(void)
{
	for (unsigned at = 16; at < (tr_machine.avx512 ? 64 : 32); at += 8)
		emit_gs_zero(CTX_VEC15 + at);
}

static int64_t new_displacement(const struct insn *in, const uint8_t *code, uint64_t pc,
				const uint8_t *end, unsigned old_len)
{
	int32_t d = (int32_t)((const struct tr_unaligned *)(code + in->disp_off))->v32;

	return (int64_t)(pc + old_len + (uint64_t)(int64_t)d - (uint64_t)end);
}

bool emit_copy_reaches(const struct insn *in, const uint8_t *code, uint64_t pc)
{
	if (!(in->flags & INSN_RIPREL))
		return true;
	int64_t d = new_displacement(in, code, pc, tr_at, in->len);

	return d > -0x7ff00000 && d < 0x7ff00000 && !(in->prefixes & INSN_P67);
}

/*
 * Loads into a general register, and lea: the register itself can hold the address. Without these a fragment ended wherever
 * a call had led into a module that is far away: such code begins by loading something of its own.
 */
bool emit_far_possible(const struct insn *in)
{
	unsigned prefixes = INSN_P66 | INSN_P67 | INSN_PF2 | INSN_PF3 | INSN_PLOCK;
	bool load = in->map == 0 ? in->op == 0x8b || in->op == 0x63 :
		    in->map == 1 && (in->op & 0xf6) == 0xb6;
	bool lea = in->map == 0 && in->op == 0x8d && in->rex & 8;

	return (load || lea) && in->cls == INSN_NORMAL && !in->vex && !(in->prefixes & prefixes) &&
	       !(in->flags & (INSN_USES_FS | INSN_USES_GS)) && insn_reg(in) != REG_RSP_;
}

/* movabs reg, address;  the instruction with [reg] */
static void copy_far(const struct insn *in, const uint8_t *code, uint64_t pc)
{
	unsigned reg = (unsigned)insn_reg(in), low = reg & 7, high = reg >> 3;

	e8(0x48 | high), e8(0xb8 | low);
	e64((uint64_t)new_displacement(in, code, pc, NULL, in->len));
	if (in->op == 0x8d)
		return;
	e8(0x40 | (in->rex & 8) | high << 2 | high);
	if (in->map == 1)
		e8(0x0f);
	e8(in->op);
	e8((low == REG_RBP_ ? 0x40 : 0) | low << 3 | low);
	if (low == REG_RSP_)
		e8(0x24); /* r12 takes a sib */
	if (low == REG_RBP_)
		e8(0); /* rbp and r13 a displacement */
}

void emit_copy(const struct insn *in, const uint8_t *code, uint64_t pc)
{
	uint8_t *at = tr_at;

	if (emit_far_possible(in) && !emit_copy_reaches(in, code, pc)) {
		copy_far(in, code, pc);
		return;
	}
	emit_plain(code, in->len);
	if (in->flags & INSN_RIPREL)
		((struct tr_unaligned *)(at + in->disp_off))->v32 =
			(uint32_t)new_displacement(in, code, pc, tr_at, in->len);
}

void emit_operand(int reg, const struct insn *in, const uint8_t *code, uint64_t pc)
{
	unsigned tail = in->disp_off + in->disp_len - in->modrm_off - 1u;

	e8((in->modrm & 0xc7) | (reg & 7) << 3);
	if (insn_rm_is_reg(in))
		return;
	emit_bytes(code + in->modrm_off + 1, tail);
	if (in->flags & INSN_RIPREL)
		((struct tr_unaligned *)(tr_at - 4))->v32 =
			(uint32_t)new_displacement(in, code, pc, tr_at, in->len);
}

/* The instruction's operand under another opcode: 8B (load) or 8D (lea). */
static void operand_with(unsigned opcode, int reg, const struct insn *in, const uint8_t *code,
			 uint64_t pc)
{
	if ((in->flags & INSN_USES_FS) && opcode != 0x8d)
		e8(0x64);
	if (in->prefixes & INSN_P67)
		e8(0x67);
	e8(0x48 | (reg >> 3) << 2 | (in->rex & 3));
	e8(opcode);
	emit_operand(reg, in, code, pc);
}

void emit_lea(int reg, const struct insn *in, const uint8_t *code, uint64_t pc)
{
	operand_with(0x8d, reg, in, code, pc);
}

void emit_load_target(const struct insn *in, const uint8_t *code, uint64_t pc)
{
	if (insn_rm_is_reg(in) && insn_rm(in) == REG_RCX_)
		return;
	if (emit_copy_reaches(in, code, pc)) {
		operand_with(0x8b, REG_RCX_, in, code, pc);
		return;
	}
	e16(0xb948), e64((uint64_t)new_displacement(in, code, pc, NULL, in->len)); /* movabs rcx, address */
	e8(0x48), e8(0x8b), e8(0x09);                                             /* mov rcx, [rcx] */
}

static uint32_t constants_used;

uint32_t emit_constant(uint64_t v)
{
	uint32_t at = tr_low + LOW_CONSTANTS + constants_used;

	if (LOW_CONSTANTS + constants_used + 8 > LOW_SIZE)
		at = tr_low + LOW_CONSTANTS; /* unreachable: tr_find refuses before */
	else
		constants_used += 8;
	*(uint64_t *)(uint64_t)at = v;
	return at;
}

bool emit_constants_full(void);
bool emit_constants_full(void)
{
	return LOW_CONSTANTS + constants_used + 4096 > LOW_SIZE;
}

void emit_push_constant(uint64_t v)
{
	if ((uint64_t)(int64_t)(int32_t)v == v) {
		e8(0x68);
		e32((uint32_t)v);
	} else {
		e8(0xff);
		modrm_abs(6, emit_constant(v));
	}
}

/* Registers whose [reg] form needs neither sib nor displacement, cheapest first. */
static int pick(uint32_t dead)
{
	static const uint8_t order[] = { 0, 1, 2, 6, 7, 3, 8, 9, 10, 11, 14, 15 };

	for (unsigned i = 0; i < sizeof order; i++)
		if (dead >> order[i] & 1)
			return order[i];
	return -1;
}

void emit_record_byte(unsigned byte, struct tr_free free)
{
	int r = pick(free.unseen);
	bool save = r < 0, restore = false;

	if (r < 0)
		r = pick(free.dead);
	if (r < 0) {
		r = REG_RCX_;
		restore = true;
	}
	if (save)
		emit_gs_store(CTX_SPILL, r);
	emit_ptr_get(r);
	if (r > 7)
		e8(0x41);
	e16(0xc6 | (unsigned)(r & 7) << 8);
	e8(byte);
	emit_ptr_add(1);
	if (restore)
		emit_gs_load(r, CTX_SPILL);
}

void emit_add_to_rcx(uint64_t v)
{
	if (emit_small(v)) {
		e8(0x48), e8(0x8d), e8(0x89), e32((uint32_t)v); /* lea rcx, [rcx+v] */
		return;
	}
	e8(0x48), e8(0xba), e64(v); /* movabs rdx, v */
	e32(0x110c8d48);            /* lea rcx, [rcx+rdx] */
}
