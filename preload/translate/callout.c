/* Callouts into preload/control/, and the logging of loaded values. See hooks.h. */
#include "preload/translate/build.h"
#include "preload/translate/hooks.h"

#define CALLOUTS_MAX (1u << 18)
#define CALLOUT_OFF_JUMP 0xeb

struct callout {
	uint64_t pc;
	uint8_t *start, *go_on;
	uint32_t id;
	enum ctl_at at;
};

static struct callout *callouts;
static uint32_t ncallouts;

/* One callout: 21 bytes that can be jumped over by patching the first two. */
void callout_emit(struct build *b, uint32_t id, enum ctl_at at)
{
	if (!callouts)
		callouts = tr_alloc(CALLOUTS_MAX * sizeof *callouts);
	if (!callouts || ncallouts == CALLOUTS_MAX)
		return;
	struct callout *k = &callouts[ncallouts];

	while (((uint64_t)tr_at & 7) == 7)
		e8(0x90);
	k->pc = b->pc;
	k->id = id;
	k->at = at;
	k->start = tr_at;
	emit_gs_store(CTX_RCX, REG_RCX_);
	e8(0xb9), e32(ncallouts++);
	emit_jump_pointer(LOW_P_CALLOUT);
	k->go_on = tr_at;
}

/* The code they stand in is gone: what is written there next is not to be patched for them. */
void callouts_forget(void)
{
	ncallouts = 0;
}

void tr_callout_enable(uint32_t id, bool on)
{
	tr_lock();
	for (uint32_t i = 0; i < ncallouts; i++) {
		struct callout *k = &callouts[i];
		uint16_t jump = (uint16_t)(CALLOUT_OFF_JUMP | (k->go_on - k->start - 2) << 8);

		if (k->id == id)
			__atomic_store_n((uint16_t *)k->start, on ? 0x4865 : jump, __ATOMIC_RELEASE);
	}
	tr_unlock();
}

/* Returns to the middle of the fragment: tr_resume_inside looks for no signals. */
void tr_callout(struct tr_ctx *c);
void tr_callout(struct tr_ctx *c)
{
	struct callout k = callouts[c->exit];

	c->resume = (uint64_t)k.go_on;
	c->pc = k.pc;
	if (ctl_callout)
		ctl_callout(c, k.id, k.pc, k.at);
	/* A signal noted meanwhile: step from here to the next boundary. */
	if (c->pending) {
		c->stepping = true;
		c->rflags |= 0x100;
	}
}

uint64_t tr_operand_address(const struct insn *in, uint64_t pc, const uint8_t *code,
			    const struct tr_ctx *c)
{
	int64_t disp = 0;

	if (!(in->flags & INSN_MEM))
		return 0;
	if (in->disp_len == 1) {
		disp = (int8_t)code[in->disp_off];
	} else if (in->disp_len == 4) {
		int32_t d;

		memcpy(&d, code + in->disp_off, 4);
		disp = d;
	}
	if (in->flags & INSN_RIPREL)
		return pc + in->len + (uint64_t)disp;
	uint64_t at = (uint64_t)disp;

	if ((in->modrm & 7) != 4)
		return at + c->regs[insn_rm(in)];
	if (!((in->sib & 7) == 5 && in->modrm >> 6 == 0))
		at += c->regs[(in->sib & 7) | (in->rex & 1) << 3];
	unsigned index = (in->sib >> 3 & 7) | (in->rex & 2) << 2;
	if (index != 4)
		at += c->regs[index] << (in->sib >> 6);
	return at;
}

/* mov (zero-extending) of `size` bytes between rcx and [rdx+1], or from memory into rcx */
static void load_value(const struct insn *in, const uint8_t *code, uint64_t pc, unsigned size)
{
	if (in->flags & INSN_USES_FS)
		e8(0x64);
	if (in->prefixes & INSN_P67)
		e8(0x67);
	e8(0x40 | (size == 8 ? 8 : 0) | (in->rex & 3));
	if (size <= 2) {
		e8(0x0f);
		e8(size == 1 ? 0xb6 : 0xb7);
	} else {
		e8(0x8b);
	}
	emit_operand(REG_RCX_, in, code, pc);
}

/* Forms that only read their memory operand, and read insn_memory_size() bytes of it. */
static bool only_loads(const struct insn *in)
{
	unsigned part = in->modrm >> 3 & 7;

	if (in->vex || in->prefixes & INSN_P67 || in->flags & (INSN_USES_FS | INSN_LOCKED))
		return false;
	if (in->map == 1)
		return in->op == 0xb6 || in->op == 0xb7 || in->op == 0xbe || in->op == 0xbf;
	if (in->map)
		return false;
	switch (in->op) {
	case 0x63: case 0x84: case 0x85: case 0x8a: case 0x8b: /* movsxd, test, mov */
	case 0x38: case 0x39: case 0x3a: case 0x3b:            /* cmp */
		return true;
	case 0x80: case 0x81: case 0x83:                       /* cmp with a constant */
		return part == 7;
	case 0xf6: case 0xf7:                                  /* test with a constant */
		return part == 0;
	default:                                               /* add, or, ..., xor: register, memory */
		return in->op < 0x38 && (in->op & 6) == 2;
	}
}

/*
 * The value the instruction loads, logged just before it. The far end is
 * touched first: a chunk's end is met there, before anything is written. Memory is
 * read once: the instruction itself gets the value from ctx (value_copy), else
 * another thread could write between the two reads, and the log would lie.
 */
bool value_emit(struct build *b, const struct insn *in, unsigned size, bool ordered)
{
	if (b->nitems + ordered >= TR_MAX_ITEMS || !only_loads(in) ||
	    !(size == 1 || size == 2 || size == 4 || size == 8))
		return false;
	value_log(b, in, size, ordered, CTX_R11);
	return true;
}

void value_log(struct build *b, const struct insn *in, unsigned size, bool ordered, uint32_t slot)
{
	if (ordered)
		order_begin(b, in);
	emit_gs_store(CTX_RCX, REG_RCX_);
	load_value(in, (const uint8_t *)b->pc, b->pc, size);
	emit_gs_store(slot, REG_RCX_);
	if (ordered) {
		emit_gs_load(REG_RCX_, CTX_RCX);
		order_end(b);
		emit_gs_load(REG_RCX_, slot);
	}
	emit_gs_store(CTX_RDX, REG_RDX_);
	emit_ptr_get(REG_RDX_);
	e8(0xc6), e8(0x42), e8(size), e8(0);          /* mov byte [rdx+size], 0 */
	e8(0xc6), e8(0x02), e8(1 + size);             /* mov byte [rdx], 1+size */
	if (size == 2)
		e8(0x66);
	if (size == 8)
		e8(0x48);
	e8(size == 1 ? 0x88 : 0x89), e8(0x4a), e8(1); /* mov [rdx+1], rcx */
	emit_ptr_add(1 + size);
	emit_gs_load(REG_RCX_, CTX_RCX);
	emit_gs_load(REG_RDX_, CTX_RDX);
	b->items[b->nitems++] = (struct trc_item){ b->pc, TRC_ITEM_VALUE, size };
}

void value_copy(const struct insn *in, const uint8_t *code, uint32_t slot)
{
	uint8_t *at;

	e8(0x65);
	at = tr_at;
	emit_bytes(code, in->modrm_off);
	/* REX.X would make the absence of an index r12. */
	unsigned rex_at = in->op_off - (in->map ? 2u : 1u);
	if (in->op_off > in->map && (code[rex_at] & 0xf0) == 0x40)
		at[rex_at] &= (uint8_t)~3u;
	e8((in->modrm & 0x38) | 4);
	e8(0x25);
	e32(slot);
	emit_bytes(code + in->imm_off, in->imm_len);
}
