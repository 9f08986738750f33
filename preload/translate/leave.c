/* Ways out of a fragment: exits of all kinds, and going on along a branch. */
#include "preload/translate/build.h"

uint64_t tr_event_next(struct tr_ctx *c); /* for entry.S */

/* Enters the dispatcher with the exit's number; rcx is saved first. */
static uint8_t *stub(struct tr_region *r, uint32_t exit, enum low_pointer p)
{
	uint8_t *hot = tr_at, *at = r->cold;

	tr_at = at;
	emit_gs_store(CTX_RCX, REG_RCX_);
	e8(0xb9), e32(exit);
	emit_jump_pointer(p);
	r->cold = tr_at;
	tr_at = hot;
	return at;
}

struct tr_exit *exit_new(struct build *b, uint64_t target, enum low_pointer p, unsigned index)
{
	struct tr_exit *x;
	uint32_t id = tr_exit_new(&x);

	x->target = target;
	x->pc = b->pc;
	x->frag = b->frag_index;
	x->index = (uint8_t)index;
	x->stub = stub(b->region, id, p);
	return x;
}

void exit_rel32(struct tr_exit *x)
{
	x->patch = tr_at;
	e32((uint32_t)(x->stub - (tr_at + 4)));
}

static struct tr_exit *exit_here(struct build *b, uint64_t target, enum low_pointer p,
				 unsigned index)
{
	struct tr_exit *x = exit_new(b, target, p, index);

	exit_rel32(x);
	return x;
}

void vec15_settle(struct build *b)
{
	if (b->vec15_in && b->vec15_low)
		emit_vec15_low_out();
	else if (b->vec15_in)
		emit_vec15_out();
	b->vec15_in = b->vec15_low = false;
}

/* The byte that says "no side exit was taken", when there was one to take. */
static void record_fall_through(struct build *b, uint64_t target)
{
	if (b->nsides)
		emit_record_byte(b->nsides + 1, tr_dead_registers(target));
}

void end_direct(struct build *b, uint64_t target)
{
	struct tr_frag *f = tr_lookup(target);

	vec15_settle(b);
	b->next = target;
	b->frag->kind = TRC_FRAG_DIRECT;
	record_fall_through(b, target);
	emit_align_rel32(1);
	e8(0xe9);
	struct tr_exit *x = exit_here(b, target, LOW_P_DIRECT, 0);
	if (f)
		tr_link_direct(x, f);
}

void end_special(struct build *b, enum trc_frag_kind kind, uint64_t next)
{
	struct tr_exit *x;

	vec15_settle(b);
	record_fall_through(b, b->pc);
	uint32_t id = tr_exit_new(&x);
	x->target = next;
	x->pc = b->pc;
	x->kind = (uint8_t)kind;
	x->frag = b->frag_index;
	b->frag->kind = (uint8_t)kind;
	b->next = next;
	emit_gs_store(CTX_RCX, REG_RCX_);
	e8(0xb9), e32(id);
	emit_jump_pointer(LOW_P_SPECIAL);
}

/*
 * The ret behind the record primitive, for those who come from this jump or call: each has one of its own, so that it leads
 * to few places. One for all had as many targets as a program has calls of lock and unlock.
 */
static uint64_t event_ret(uint64_t from)
{
	static uint64_t sites[EVENT_RETS];
	unsigned i = 1;

	while (i < EVENT_RETS && sites[i] && sites[i] != from)
		i++;
	if (!from || i == EVENT_RETS)
		i = 0;
	else
		sites[i] = from;
	return (uint64_t)tr_event_ret + i;
}

/* The thread is about to go on behind an event: at which ret? */
uint64_t tr_event_next(struct tr_ctx *c)
{
	const struct tr_frag *f = tr_frag_of(c->resume);

	return f ? tr_exit_at(f->exits + f->nsides)->target : (uint64_t)tr_event_ret;
}

/* Straight into native code and back to a direct exit; see tr_enter_event. */
void end_event(struct build *b, uint64_t from)
{
	uint64_t next = event_ret(from);

	vec15_settle(b);
	record_fall_through(b, b->pc);
	b->frag->kind = TRC_FRAG_EVENT;
	b->next = next;
	e8(0x48), e8(0x8d), e8(0x05), e32(7); /* lea rax, [behind the jump] */
	emit_jump_pointer(LOW_P_EVENT);
	emit_align_rel32(1);
	e8(0xe9);
	exit_here(b, next, LOW_P_DIRECT, 0);
}

/* Goes on where the branch leads; the way straight on becomes the side exit. */
void go_along(struct build *b, const struct insn *in)
{
	uint64_t out = b->pc + in->len;

	vec15_settle(b);
	emit_align_rel32(2);
	e8(0x0f), e8(0x80 | ((in->op & 15) ^ 1));
	exit_here(b, out, LOW_P_SIDE, b->nsides);
	b->passed_taken |= 1u << b->nsides;
	b->sides[b->nsides++] = (struct trc_side){ b->pc, out };
	b->goes_along = true;
	b->pc = in->target;
}

void side_exit(struct build *b, const struct insn *in)
{
	const uint8_t *code = (const uint8_t *)b->pc;

	vec15_settle(b);
	if (in->cls == INSN_JCC) {
		emit_align_rel32(2);
		e8(0x0f), e8(0x80 | (in->op & 15));
		exit_here(b, in->target, LOW_P_SIDE, b->nsides);
	} else { /* loop, jrcxz: short only; hop over the long jump */
		if (in->prefixes & INSN_P67)
			e8(0x67);
		e8(code[in->op_off]), e8(2);
		e8(0xeb);
		uint8_t *over = tr_at++;
		emit_align_rel32(1);
		e8(0xe9);
		exit_here(b, in->target, LOW_P_SIDE, b->nsides);
		*over = (uint8_t)(tr_at - (over + 1));
	}
	b->sides[b->nsides++] = (struct trc_side){ b->pc, in->target };
}
