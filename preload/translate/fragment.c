/* Making fragments: decode, copy, and arrange for every way out. */
#include "preload/translate/build.h"
#include "preload/translate/hooks.h"

bool tr_tables_full(void);
bool emit_constants_full(void);
struct ctl_wish (*ctl_plan)(uint64_t pc, const struct insn *in);

/* A conditional branch. Returns false when the fragment ends here. */
static bool conditional(struct build *b, const struct insn *in)
{
	enum tr_usual usual = in->cls == INSN_JCC ? tr_usual_way(b->pc) : TR_USUAL_UNKNOWN;
	uint64_t next = b->pc + in->len;

	b->hot |= usual != TR_USUAL_UNKNOWN;
	if (follow_loop(b, in, usual)) {
		go_along(b, in);
		return true;
	}
	unsigned max = b->hot ? TR_MAX_SIDES : TR_STRAIGHT_SIDES;

	if (usual == TR_USUAL_TAKEN && b->nsides + 1 < max && in->target != b->frag->pc &&
	    tr_code_avail(in->target) && follow(b, in->target, b->nsides + 1)) {
		go_along(b, in);
		return true;
	}
	side_exit(b, in);
	b->pc = next;
	if (b->nsides < max && usual != TR_USUAL_TAKEN && follow(b, next, b->nsides))
		return true;
	end_direct(b, next);
	return false;
}

/* Returns false when the fragment ends here. */
static bool direct_transfer(struct build *b, const struct insn *in)
{
	if (in->cls == INSN_CALL) {
		vec15_settle(b);
		emit_push_constant(b->pc + in->len);
	}
	/* A function may be called again by itself. */
	bool call = in->cls == INSN_CALL, again = call && b->hot;
	/*
	 * Where nothing is known, a call is not followed: the function would be there twice as soon as it is
	 * called from elsewhere, and the code behind its return again. python3's start: 4.84 -> 4.49.
	 */
	unsigned max = b->hot ? TR_MAX_FOLLOW : call ? 0 : TR_COLD_FOLLOW;

	/* The record primitive ends the fragment, and by whom it was called should be known: leave.c. */
	bool event = in->target == tr_machine.event_pc;

	if (event || (b->nfollowed < max && b->ninsns < max_insns(b) / 2 &&
		      tr_code_avail(in->target) && (again || follow(b, in->target, b->nsides)))) {
		if (call)
			push_call(b, b->pc + in->len);
		b->nfollowed++;
		b->pc = in->target;
		return true;
	}
	end_direct(b, in->target);
	return false;
}

/* VEX.L, EVEX.L'L; or the rounding that may stand in its place */
static bool is_wide(const struct insn *in, const uint8_t *code)
{
	return in->vex && code[in->op_off - 1] & (in->vex == 1 ? 0x04 : 0x70);
}

/*
 * The application's xmm15 into the register. Instructions without VEX neither read nor change
 * what is above 128 bits; those that do not use more must not make it look used.
 */
static void vec15_wanted(struct build *b, const struct insn *in, const uint8_t *code)
{
	bool low = !in->vex && !(in->flags & INSN_XSTATE);

	if (b->vec15_low && !low)
		vec15_settle(b);
	if (b->vec15_in)
		return;
	if (low)
		emit_vec15_low_in();
	else if (is_wide(in, code))
		emit_vec15_in();
	else
		emit_vec15_in_exact();
	b->vec15_in = true;
	b->vec15_low = low;
}

static void plain(struct build *b, const struct insn *in)
{
	const uint8_t *code = (const uint8_t *)b->pc;

	if (in->map == 1 && in->op == 0x1e && code[in->len - 1] == 0xfa && in->len == 4)
		return; /* endbr64 */
	if (in->flags & INSN_XMM15)
		vec15_wanted(b, in, code);
	if (b->in_slot)
		value_copy(in, code, CTX_R11);
	else
		emit_copy(in, code, b->pc);
	if ((in->flags & INSN_VZEROUPPER) && (!b->vec15_in || b->vec15_low))
		emit_vzeroupper_fix();
}

/* Copies one instruction; false when it ended the fragment. */
static bool one(struct build *b, const struct insn *in, bool ordered)
{
	uint64_t next = b->pc + in->len;

	switch (in->cls) {
	case INSN_JCC: case INSN_LOOP:
		return conditional(b, in);
	case INSN_JMP: case INSN_CALL:
		return direct_transfer(b, in);
	case INSN_RET: case INSN_JMP_IND: case INSN_CALL_IND:
		return indirect_transfer(b, in);
	case INSN_SYSCALL:
		end_special(b, TRC_FRAG_SYSCALL, next);
		return false;
	case INSN_NONDET:
		end_special(b, TRC_FRAG_NONDET, next);
		return false;
	case INSN_TRAP:
		vec15_settle(b);
		b->frag->kind = TRC_FRAG_TRAP;
		b->next = 0;
		emit_copy(in, (const uint8_t *)b->pc, b->pc);
		e8(0x0f), e8(0x0b); /* never reached: the instruction faults */
		return false;
	default:
		break;
	}
	if (ordered && !b->in_slot) {
		vec15_settle(b);
		order_emit(b, in);
	} else {
		plain(b, in);
	}
	b->pc = next;
	return true;
}

static void record(const struct build *b)
{
	const struct tr_frag *f = b->frag;
	size_t sides = b->nsides * sizeof(struct trc_side);
	size_t items = b->nitems * sizeof(struct trc_item);
	size_t size = sizeof(struct trc_fragment) + sides + items;
	/* tr_lock() is enough: nothing else writes this stream. */
	struct trc_fragment *r = rec_begin(&tr_frags_stream, size);
	if (r) {
		r->id = f->id;
		r->ninsns = f->ninsns;
		r->generation = tr.generation;
		r->pc = f->pc;
		r->next = b->next;
		r->last_pc = b->last_pc;
		r->nsides = (uint16_t)b->nsides;
		r->nitems = (uint16_t)b->nitems;
		r->passed_taken = b->passed_taken;
		r->guessed = b->guessed;
		r->cases = b->cases;
		__builtin_memcpy(r + 1, b->sides, sides);
		if (items)
			memcpy((uint8_t *)(r + 1) + sides, b->items, items);
		rec_commit(&tr_frags_stream, r, TRC_FRAGMENT, f->kind, size);
	}
}

static bool is_ordered(const struct insn *in, const struct ctl_wish *w)
{
	return ((in->flags & INSN_LOCKED) && tr.multi) ||
	       ((w->flags & CTL_ORDER) && order_possible(in));
}

/*
 * A breakpoint that a debugger has put there, not one of the program's own: the debugger knows
 * it by its address, so the program must meet it there. Asked only where there is one.
 */
static bool is_debuggers(const struct insn *in)
{
	static const char key[] = "TracerPid:\t";
	char status[512];

	if (in->cls != INSN_TRAP || in->map || in->op != 0xcc)
		return false;
	long n = raw_slurp("/proc/thread-self/status", status, sizeof status);
	for (long i = 0; i + (long)sizeof key <= n; i++)
		if (!memcmp(status + i, key, sizeof key - 1))
			return status[i + (long)sizeof key - 1] != '0';
	return false;
}

static bool translatable(const struct insn *in)
{
	return in->cls != INSN_UNKNOWN && in->cls != INSN_SEGMENT &&
	       !(in->flags & INSN_USES_GS && in->flags & INSN_MEM) && !is_debuggers(in);
}

/* Must the fragment end before this instruction? */
static bool must_stop(const struct build *b, const struct insn *in, const struct ctl_wish *w)
{
	bool items = (w->flags & (CTL_LOG_VALUE | CTL_SPLIT)) || is_ordered(in, w);

	/* At most three each: its value and, in halves, two tickets. */
	if (items && (b->nsides || b->nitems + 3 > TR_MAX_ITEMS))
		return true;
	if (b->ninsns >= max_insns(b))
		return true;
	if (!translatable(in))
		return true;
	/* A branch through a pointer finds it anywhere: calls of other modules, which are made through such, are followed. */
	if (in->cls == INSN_JMP_IND || in->cls == INSN_CALL_IND || emit_copy_reaches(in, (const uint8_t *)b->pc, b->pc))
		return false;
	return w->flags || is_ordered(in, w) || !emit_far_possible(in);
}

static void wishes_before(struct build *b, const struct insn *in, const struct ctl_wish *w)
{
	vec15_settle(b);
	if (w->flags & CTL_CALLOUT_BEFORE)
		callout_emit(b, w->id, CTL_AT_BEFORE);
	if ((w->flags & (CTL_CALLOUT_MIDDLE | CTL_SPLIT)) == CTL_CALLOUT_MIDDLE)
		callout_emit(b, w->id, CTL_AT_MIDDLE);
	if (w->flags & CTL_LOG_VALUE && in->flags & INSN_MEM)
		b->in_slot = value_emit(b, in, insn_memory_size(in), is_ordered(in, w));
}

static struct ctl_wish wish_at(uint64_t pc, const struct insn *in)
{
	struct ctl_wish wish = { 0 };

	if (ctl_plan && in->len)
		wish = ctl_plan(pc, in);
	if (tr.multi)
		wish.flags |= libc_wishes(pc, in);
	else
		wish.flags &= ~(unsigned)(CTL_LOG_VALUE | CTL_ORDER | CTL_SPLIT);
	if ((wish.flags & CTL_SPLIT) && split_possible(in))
		wish.flags &= ~(unsigned)(CTL_LOG_VALUE | CTL_ORDER); /* it has its own */
	else
		wish.flags &= ~(unsigned)CTL_SPLIT;
	return wish;
}

static void halves(struct build *b, const struct insn *in, const struct ctl_wish *w)
{
	vec15_settle(b);
	split_emit(b, in, w->flags & CTL_CALLOUT_MIDDLE ? w->id : UINT32_MAX);
	b->pc += in->len;
}

/* Belongs to the instruction just copied: b->last_pc, though b->pc is one further. */
static void callout_after(struct build *b, uint32_t id)
{
	uint64_t pc = b->pc;

	vec15_settle(b);
	b->pc = b->last_pc;
	callout_emit(b, id, CTL_AT_AFTER);
	b->pc = pc;
}

#define COPIED_AS_IT_IS(in) ((in)->cls == INSN_NORMAL && \
	!((in)->flags & (INSN_RIPREL | INSN_LOCKED | INSN_XMM15 | INSN_USES_GS | INSN_VZEROUPPER | \
			 INSN_XSTATE)) && !((in)->map == 1 && (in)->op == 0x1e /* endbr64 */))

/*
 * A run of instructions that nothing is to be known or done about: most of all code. The loop in
 * fill() executes three times as many instructions for each.
 */
static void copy_run(struct build *b)
{
	uint64_t page = 0, pc = b->pc, last = b->last_pc, event = tr_machine.event_pc;
	unsigned n = b->ninsns, max = max_insns(b);

	while (n < max && pc != event) {
		const struct insn *in = tr_insn_at(pc);

		if (!COPIED_AS_IT_IS(in))
			break;
		if (pc >> 12 != page) {
			page = pc >> 12;
			tr_code_used(pc);
		}
		emit_plain((const uint8_t *)pc, in->len);
		if (b->ncalls)
			returns_note(b, in, (const uint8_t *)pc);
		b->lens[n++] = in->len;
		last = pc;
		pc += in->len;
	}
	b->ninsns = n;
	b->pc = pc;
	b->last_pc = last;
}

static void fill(struct build *b)
{
	bool plain = !ctl_plan && !tr.multi; /* nobody can wish for anything */

	for (;;) {
		struct insn in;

		if (plain && !b->vec15_in)
			copy_run(b);
		uint8_t *at = tr_at;

		if (b->pc == tr_machine.event_pc) {
			uint64_t from = b->ninsns ? b->last_pc : 0;

			b->last_pc = b->pc;
			end_event(b, from);
			b->lens[b->ninsns++] = (uint16_t)(tr_at - at);
			return;
		}
		in = *tr_insn_at(b->pc);
		struct ctl_wish wish = wish_at(b->pc, &in);
		if (must_stop(b, &in, &wish)) {
			end_direct(b, b->pc);
			return;
		}
		tr_code_used(b->pc);
		b->last_pc = b->pc;
		if (wish.flags)
			wishes_before(b, &in, &wish);
		bool more = true;
		if (wish.flags & CTL_SPLIT)
			halves(b, &in, &wish);
		else
			more = one(b, &in, is_ordered(&in, &wish));
		if (b->ncalls && in.cls == INSN_NORMAL)
			returns_note(b, &in, (const uint8_t *)b->last_pc);
		unsigned flags = (b->ticket ? TR_LEN_TICKET : 0) |
				 (b->vec15_in ? TR_LEN_VEC15 : 0) |
				 (b->vec15_low ? TR_LEN_LOW15 : 0) |
				 (b->goes_along ? TR_LEN_TAKEN : 0);
		if (wish.flags & CTL_CALLOUT_AFTER && more && !b->goes_along)
			callout_after(b, wish.id);
		b->in_slot = b->ticket = b->goes_along = false;
		b->lens[b->ninsns++] = (uint16_t)((unsigned)(tr_at - at) | flags);
		if (!more)
			return;
	}
}

/* What stands right before a body: the way by which control comes here for the first time. */
static bool way_in(struct tr_frag *f, const struct tr_way *way)
{
	if (way->kind == TR_WAY_SIDE)
		return tr_side_before(tr_exit_at(way->exit));
	return way->kind == TR_WAY_ENTRY && tr_entry_before(f);
}

static void way_is_open(struct tr_frag *f, const struct tr_way *way, uint8_t *code)
{
	if (way->kind == TR_WAY_SIDE)
		tr_side_linked(tr_exit_at(way->exit), code);
	else
		tr_entry_ready(f, code);
}

/* All but the arrays, which are as large as they are seldom full. */
static void begin(struct build *b, struct tr_region *region, uint64_t pc)
{
	b->region = region;
	b->pc = pc;
	b->last_pc = b->next = 0;
	b->ninsns = b->nsides = b->nitems = b->nfollowed = b->loop_insns = b->loop_sides = 0;
	b->passed_taken = b->guessed = b->cases = b->ncalls = b->nback = 0;
	b->hot = b->in_slot = b->ticket = b->goes_along = b->vec15_in = b->vec15_low = false;
}

static enum tr_found make(uint64_t pc, const struct tr_way *way, struct tr_frag **out)
{
	const struct tr_code *range = tr_code_at(pc);
	struct insn in;

	if (!range)
		return tr_code_is_known() ? TR_UNMAPPED : TR_UNTRANSLATABLE;
	uint8_t first;

	/* A file that is shorter by now, or memory that may only be executed: natively it does what it does. */
	if (!tr_copy(&first, (const void *)pc, 1))
		return TR_UNTRANSLATABLE;
	if (range->writable || tr_tables_full() || emit_constants_full())
		return TR_UNTRANSLATABLE;
	in = *tr_insn_at(pc);
	struct tr_region *region = tr_region_for(pc);
	if (!translatable(&in) || !region)
		return TR_UNTRANSLATABLE;
	struct build b;

	begin(&b, region, pc);
	tr_stay_ahead(&region->hot_area, region->hot);
	tr_stay_ahead(&region->cold_area, region->cold);

	b.frag = tr_frag_new();
	b.frag_index = b.frag->id - 1;
	tr_at = (uint8_t *)(((uint64_t)region->hot + 15) & ~15ull);
	uint8_t *before = tr_at;

	if (!emit_copy_reaches(&in, (const uint8_t *)pc, pc))
		return TR_UNTRANSLATABLE;
	b.frag->pc = pc;
	bool open = way_in(b.frag, way);
	b.frag->body = tr_at;
	b.frag->generation = tr.generation;
	tr_insert(b.frag);
	b.frag->exits = tr_exit_next();
	b.hot = tr_is_hot(pc);
	fill(&b);
	b.frag->len = (uint32_t)(tr_at - b.frag->body);
	b.frag->ninsns = (uint16_t)b.ninsns;
	b.frag->nsides = (uint8_t)b.nsides;
	b.frag->passed_taken = b.passed_taken;
	b.frag->guessed = b.guessed;
	b.frag->cases = b.cases;
	b.frag->nitems = (uint8_t)b.nitems;
	for (unsigned i = 0; i < b.nitems; i++)
		b.frag->values |= (uint16_t)((b.items[i].kind == TRC_ITEM_VALUE) << i);
	b.frag->lens = tr_lens_new(b.lens, b.ninsns);
	region->hot = tr_at;
	record(&b);
	region->frags[region->nfrags] = b.frag_index;
	__atomic_store_n(&region->nfrags, region->nfrags + 1, __ATOMIC_RELEASE);
	if (open)
		way_is_open(b.frag, way, before);
	*out = b.frag;
	return TR_FOUND;
}

enum tr_found tr_find(uint64_t pc, const struct tr_way *way, struct tr_frag **f)
{
	*f = tr_lookup(pc);
	return *f ? TR_FOUND : make(pc, way, f);
}
