/*
 * Indirect branches. Where nothing is known of one it ends its fragment: a jump through the
 * table. Where the profile knows a few targets, the fragment compares with these first:
 *
 *      save rcx;  rcx = target;  save rdx
 *      rcx -= A;  jrcxz a;  rcx -= B - A;  jrcxz b;  jmp other
 *   a: record k;  restore rcx, rdx;  jmp fragment of A, a direct exit
 *   b: record k + 1;  ...
 *   other: rcx += B;  through the table
 *
 * The target it nearly always has is compared first and followed; the rest of the above
 * then stands elsewhere, and `other` begins with a record that the usual was not met.
 * One byte and predicted branches instead of two bytes and a jump by table: xz leaves 87 instead of 129 MB,
 * fib takes 1.70 instead of 2.26 times as long as natively (medians of 7, interleaved, on a busy machine).
 */
#include "preload/translate/build.h"

enum { RCX = REG_RCX_, RDX = REG_RDX_ };

#define MOST_CASES 3 /* jrcxz reaches 127 bytes, and what is done for one takes up to 46 */
_Static_assert(TR_TARGETS <= MOST_CASES + 1, "the first may be followed, the others are cases");

/* rcx is the target less *base; now it is less `to`. */
static void move_base(uint64_t *base, uint64_t to)
{
	emit_add_to_rcx(*base - to);
	*base = to;
}

/* Does comparing with all of them, and undoing it, take rdx? */
static bool takes_rdx(const struct tr_targets *t)
{
	bool small = emit_small(-t->to[0]) && emit_small(t->to[t->n - 1]);

	for (unsigned i = 1; i < t->n; i++)
		small &= emit_small(t->to[i - 1] - t->to[i]);
	return !small;
}

static void restore(uint64_t target, bool rdx)
{
	uint32_t unseen = tr_dead_registers(target).unseen;

	if (!(unseen & 1 << RCX))
		emit_gs_load(RCX, CTX_RCX);
	if (rdx && !(unseen & 1 << RDX))
		emit_gs_load(RDX, CTX_RDX);
}

static void record(int reg, unsigned byte)
{
	emit_ptr_get(reg);
	e8(0xc6), e8((unsigned)reg), e8(byte); /* mov byte [reg], byte */
	emit_ptr_add(1);
}

/* It went to this one: the branch is left by a direct exit. */
static void hit(struct tr_exit *x, bool rdx)
{
	record(RCX, x->index + 1u);
	restore(x->target, rdx);
	emit_align_rel32(1);
	e8(0xe9);
	exit_rel32(x);
}

/* When all is in its place: a link to another region is made with code, too. */
static void link_cases(const struct tr_targets *t, unsigned first, struct tr_exit *const *x)
{
	for (unsigned i = first; i < t->n; i++) {
		struct tr_frag *f = tr_lookup(t->to[i]);

		if (f)
			tr_link_direct(x[i], f);
	}
}

/* The targets from `first` on, then any other; each of `x` is the exit for one. */
static void cases(const struct tr_targets *t, unsigned first, uint64_t base, bool rdx,
		  struct tr_exit *const *x, unsigned astray)
{
	uint8_t *to[TR_TARGETS], *other = NULL;

	for (unsigned i = first; i < t->n; i++) {
		move_base(&base, t->to[i]);
		e8(0xe3), to[i] = tr_at++; /* jrcxz hit */
	}
	if (first < t->n)
		e8(0xe9), other = tr_at, e32(0);
	for (unsigned i = first; i < t->n; i++) {
		*to[i] = (uint8_t)(tr_at - (to[i] + 1));
		hit(x[i], rdx);
	}
	if (other)
		((struct tr_unaligned *)other)->v32 = (uint32_t)(tr_at - (other + 4));
	if (base)
		move_base(&base, 0);
	if (!rdx)
		emit_gs_store(CTX_RDX, RDX);
	if (astray)
		record(RDX, astray);
	emit_table_jump();
}

/* Side exits for the targets from `first` on. */
static void new_cases(struct build *b, const struct tr_targets *t, unsigned first,
		      struct tr_exit **x)
{
	for (unsigned i = first; i < t->n; i++) {
		x[i] = exit_new(b, t->to[i], LOW_P_DIRECT, b->nsides);
		b->cases |= 1u << b->nsides;
		b->sides[b->nsides++] = (struct trc_side){ b->pc, t->to[i] };
	}
}

/* The exit that keeps its place in the row, for profile.c and fault.c */
static void place_in_row(struct build *b, uint64_t target)
{
	struct tr_exit *x;

	tr_exit_new(&x);
	x->pc = b->pc;
	x->target = target;
	x->frag = b->frag_index;
}

static void end_indirect(struct build *b, struct tr_targets *t)
{
	struct tr_exit *x[TR_TARGETS];

	if (t->n > MOST_CASES)
		t->n = MOST_CASES;
	bool rdx = t->n && takes_rdx(t);

	new_cases(b, t, 0, x);
	place_in_row(b, 0);
	b->frag->kind = TRC_FRAG_INDIRECT;
	b->next = 0;
	if (rdx)
		emit_gs_store(CTX_RDX, RDX);
	cases(t, 0, 0, rdx, x, 0);
	link_cases(t, 0, x);
}

/*
 * rcx -= target, flags untouched. Where the target is no small number, this takes rdx, or is done in halves: the sum is
 * zero as well when its halves have changed places in between. A store and a load less, at each indirect branch.
 */
static bool in_halves(uint64_t target)
{
	return tr_machine.bmi2 && !emit_small(-target) && (int32_t)target != INT32_MIN && target >> 62 == 0;
}

static void swap_halves(void)
{
	e32(0xf0fbe3c4), e16(0x20c9); /* rorx rcx, rcx, 32 */
}

static void less_in_halves(uint64_t target)
{
	int32_t low = (int32_t)target;

	emit_add_to_rcx(-(uint64_t)(int64_t)low);
	swap_halves();
	emit_add_to_rcx(-((target - (uint64_t)(int64_t)low) >> 32));
}

/* The opposite; rdx is put away then, for what may come. */
static void more_in_halves(uint64_t target)
{
	int32_t low = (int32_t)target;

	emit_add_to_rcx((target - (uint64_t)(int64_t)low) >> 32);
	swap_halves();
	emit_add_to_rcx((uint64_t)(int64_t)low);
	emit_gs_store(CTX_RDX, RDX);
}

/* Goes on at the first of the targets. */
static void go_on(struct build *b, const struct tr_targets *t)
{
	struct tr_exit *x[TR_TARGETS];
	uint64_t base = 0, target = t->to[0];
	bool halves = in_halves(target), rdx = !halves && takes_rdx(t);

	new_cases(b, t, 1, x);
	place_in_row(b, target);
	b->guessed |= 1u << b->nsides;
	b->sides[b->nsides++] = (struct trc_side){ b->pc, target };
	if (rdx)
		emit_gs_store(CTX_RDX, RDX);
	if (halves)
		less_in_halves(target);
	else
		move_base(&base, target);
	e8(0xe3), e8(5); /* jrcxz over the jump */
	emit_jump_to(b->region->cold);
	restore(target, rdx);
	uint8_t *hot = tr_at;

	tr_at = b->region->cold;
	if (halves)
		more_in_halves(target);
	cases(t, 1, base, halves || rdx, x, b->nsides);
	b->region->cold = tr_at;
	tr_at = hot;
	link_cases(t, 1, x);
	b->goes_along = true;
	b->pc = target;
}

/* Goes on behind the call that it returns from. */
static void go_back(struct build *b, uint64_t target, unsigned bytes)
{
	place_in_row(b, target);
	b->guessed |= 1u << b->nsides;
	b->sides[b->nsides++] = (struct trc_side){ b->pc, target };
	e32(0x24a48d48), e32(bytes); /* lea rsp, [rsp+bytes] */
	b->goes_along = true;
	b->pc = target;
}

/* Returns false when the fragment ends here. */
bool indirect_transfer(struct build *b, const struct insn *in)
{
	const uint8_t *code = (const uint8_t *)b->pc;
	uint64_t back = b->pc + in->len;
	struct tr_targets t = guess(b, in);

	vec15_settle(b);
	if (t.sure) {
		go_back(b, t.to[0], ret_pops(in, code));
		return true;
	}
	emit_gs_store(CTX_RCX, RCX);
	if (in->cls == INSN_RET) {
		e8(0x59); /* pop rcx */
		if (in->imm_len)
			e32(0x24a48d48), e32(ret_pops(in, code) - 8); /* lea rsp, [rsp+imm] */
	} else {
		emit_load_target(in, code, b->pc);
		if (in->cls == INSN_CALL_IND)
			emit_push_constant(back);
	}
	if (!t.usual) {
		end_indirect(b, &t);
		return false;
	}
	go_on(b, &t);
	if (in->cls == INSN_CALL_IND)
		push_call(b, back);
	return true;
}
