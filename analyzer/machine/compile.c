/*
 * Guest code -> block: decode a straight run, hand the integer parts to libVEX,
 * turn its IR into operations, and put the rest between them.
 *
 * Two things are done to the IR. A register that is read (Get) is not copied:
 * its users read the guest register itself, until a write to it forces the
 * copy. And writes to registers that a later write in the block makes
 * superfluous move to the block's side list (see engine.h).
 */
#include "analyzer/machine/code.h"

#include "analyzer/machine/irops.h"

#include <stdio.h>
#include <string.h>

#define NO_ALIAS UINT32_MAX
#define MAX_RUN_TEMPS 8192

struct builder {
	struct mach *m;
	struct mach_block *b;
	VEC(struct mach_op) ops;
	unsigned insn;      /* index of the current instruction */
	uint32_t temp_base; /* frame offset of temporary 0 of this run */
	/* Of the run being converted, by temporary: */
	const IRTypeEnv *types;
	uint32_t alias[MAX_RUN_TEMPS];    /* guest register it is a copy of, or NO_ALIAS */
	uint32_t last_use[MAX_RUN_TEMPS]; /* statement index */
	VEC(uint32_t) aliased;
	uint32_t stmt;
};

static struct builder builder; /* one lifter, one compiler: see machine.h */

/* ---- memory of blocks ---- */

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	max_align_t data[];
};

static struct arena_chunk *arena_of(struct mach *m);

void *mach_arena(struct mach *m, size_t n)
{
	struct arena_chunk *c = arena_of(m);
	size_t size = 1u << 20;

	n = (n + 15) & ~(size_t)15;
	if (!c || c->size - c->used < n) {
		struct arena_chunk *fresh;

		if (size < n)
			size = n;
		fresh = xmalloc(sizeof *fresh + size);
		fresh->next = c;
		fresh->used = 0;
		fresh->size = size;
		m->arena = c = fresh;
	}
	c->used += n;
	return (uint8_t *)c->data + c->used - n;
}

static struct arena_chunk *arena_of(struct mach *m)
{
	return m->arena;
}

void mach_blocks_flush(struct mach *m)
{
	struct arena_chunk *c = m->arena, *next;

	for (; c; c = next) {
		next = c->next;
		free(c);
	}
	m->arena = NULL;
	memset(m->blocks, 0, m->blocks_cap * sizeof *m->blocks);
	m->nblocks = 0;
	m->consts = MACH_CONSTS;
	m->flush_wanted = false;
	m->flushes++;
	native_flush(m);
}

/* Constants lie in the frame like everything else; equal neighbours are shared. */
uint32_t mach_const(struct mach *m, uint64_t lo, uint64_t hi)
{
	uint64_t value[2] = { lo, hi };
	uint32_t recent = m->consts - MACH_CONSTS < 64 * MACH_TEMP_SIZE ?
				  MACH_CONSTS : m->consts - 64 * MACH_TEMP_SIZE;

	for (uint32_t at = recent; at < m->consts; at += MACH_TEMP_SIZE)
		if (!memcmp(mach_at(m, at), value, sizeof value))
			return at;
	memcpy(mach_at(m, m->consts), value, sizeof value);
	m->consts += MACH_TEMP_SIZE;
	return m->consts - MACH_TEMP_SIZE;
}

/* ---- emitting ---- */

static struct mach_op *emit(struct builder *w, enum mach_code code)
{
	struct mach_op op = { .code = (uint16_t)code, .insn = (uint8_t)w->insn };

	vec_push(&w->ops, op);
	return &w->ops.v[w->ops.n - 1];
}

static uint32_t temp_offset(const struct builder *w, IRTemp t)
{
	return w->temp_base + t * MACH_TEMP_SIZE;
}

static unsigned type_size(IRType ty)
{
	switch (ty) {
	case Ity_I1:
	case Ity_I8:
		return 1;
	case Ity_I16:
		return 2;
	case Ity_I32:
		return 4;
	case Ity_I64:
		return 8;
	case Ity_I128:
		return 16;
	default:
		return 0; /* floating point and vectors */
	}
}

/* base is the 8-bit member of a family of four operations. */
static enum mach_code by_size(enum mach_code base, unsigned size)
{
	return base + (size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3);
}

static bool const_value(const IRConst *c, uint64_t *out)
{
	switch (c->tag) {
	case Ico_U1:
		*out = c->Ico.U1;
		return true;
	case Ico_U8:
		*out = c->Ico.U8;
		return true;
	case Ico_U16:
		*out = c->Ico.U16;
		return true;
	case Ico_U32:
		*out = c->Ico.U32;
		return true;
	case Ico_U64:
		*out = c->Ico.U64;
		return true;
	default:
		return false;
	}
}

/* The frame offset of an atom; false: of a type the bytecode does not have. */
static bool operand(struct builder *w, const IRExpr *e, uint32_t *out)
{
	uint64_t value;

	if (e->tag == Iex_RdTmp) {
		IRTemp t = e->Iex.RdTmp.tmp;

		*out = w->alias[t] != NO_ALIAS ? w->alias[t] : temp_offset(w, t);
		return true;
	}
	if (e->tag != Iex_Const || !const_value(e->Iex.Const.con, &value))
		return false;
	*out = mach_const(w->m, value, 0);
	return true;
}

/* A register is about to change: copies of it that are still needed are made now. */
static void materialise(struct builder *w, uint32_t offset, unsigned size)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->aliased.n; i++) {
		IRTemp t = w->aliased.v[i];
		unsigned n = type_size(typeOfIRTemp(w->types, t));
		uint32_t at = w->alias[t];

		if (w->last_use[t] < w->stmt)
			continue; /* dead: forget it */
		if (at + n <= offset || offset + size <= at) {
			w->aliased.v[kept++] = t;
			continue;
		}
		struct mach_op *op = emit(w, by_size(OP_GET8, n));

		op->size = (uint8_t)n;
		op->a = at;
		op->d = temp_offset(w, t);
		w->alias[t] = NO_ALIAS;
	}
	w->aliased.n = kept;
}

/* ---- IR -> operations; each returns false for what the bytecode lacks ---- */

static bool convert_call(struct builder *w, const IRExpr *e, uint32_t d)
{
	struct mach_call *call = mach_arena(w->m, sizeof *call);
	struct mach_op *op;

	memset(call, 0, sizeof *call);
	call->fn = (uint64_t (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
				 uint64_t))e->Iex.CCall.cee->addr;
	call->name = e->Iex.CCall.cee->name;
	call->size = (uint8_t)type_size(e->Iex.CCall.retty);
	for (; e->Iex.CCall.args[call->nargs]; call->nargs++)
		if (call->nargs == 6 ||
		    !operand(w, e->Iex.CCall.args[call->nargs], &call->arg[call->nargs]))
			return false;
	op = emit(w, OP_CALL);
	op->d = d;
	op->size = call->size;
	op->imm = (uint64_t)call;
	return call->size && call->size <= 8;
}

static bool convert_operator(struct builder *w, IROp irop, const IRExpr *a, const IRExpr *b,
			     uint32_t d)
{
	uint16_t code;
	uint8_t size;
	uint32_t at = 0, bt = 0;
	struct mach_op *op;

	if (!irop_find(irop, &code, &size) || !operand(w, a, &at) || (b && !operand(w, b, &bt)))
		return false;
	op = emit(w, code);
	op->size = size;
	op->a = at;
	op->b = bt;
	op->d = d;
	return true;
}

static bool convert_tmp(struct builder *w, IRTemp t, const IRExpr *e)
{
	uint32_t d = temp_offset(w, t), a, b, c;
	unsigned size = type_size(typeOfIRTemp(w->types, t));
	struct mach_op *op;

	if (!size)
		return false;
	switch (e->tag) {
	case Iex_Get:
		w->alias[t] = (uint32_t)e->Iex.Get.offset;
		vec_push(&w->aliased, t);
		return true;
	case Iex_RdTmp:
	case Iex_Const:
		if (!operand(w, e, &a))
			return false;
		/* A forwarded register of less than 8 bytes has neighbours behind it. */
		op = emit(w, size == 16 ? OP_MOVE : by_size(OP_GET8, size));
		op->size = (uint8_t)size;
		op->a = a;
		op->d = d;
		return true;
	case Iex_Load:
		if (size > 8 || !operand(w, e->Iex.Load.addr, &a))
			return false;
		op = emit(w, by_size(OP_LOAD8, size));
		op->size = (uint8_t)size;
		op->a = a;
		op->d = d;
		return true;
	case Iex_Unop:
		return convert_operator(w, e->Iex.Unop.op, e->Iex.Unop.arg, NULL, d);
	case Iex_Binop:
		return convert_operator(w, e->Iex.Binop.op, e->Iex.Binop.arg1,
					e->Iex.Binop.arg2, d);
	case Iex_ITE:
		if (!operand(w, e->Iex.ITE.cond, &c) || !operand(w, e->Iex.ITE.iftrue, &a) ||
		    !operand(w, e->Iex.ITE.iffalse, &b) || size > 8)
			return false;
		op = emit(w, OP_ITE);
		op->size = (uint8_t)size;
		op->a = c;
		op->b = a;
		op->imm = b;
		op->d = d;
		return true;
	case Iex_CCall:
		return convert_call(w, e, d);
	default:
		return false;
	}
}

static bool convert_put(struct builder *w, uint32_t offset, const IRExpr *data)
{
	unsigned size = type_size(typeOfIRExpr(w->types, data));
	uint32_t a;
	struct mach_op *op;

	if (offset == MACH_OFF(RIP))
		return true; /* known from the block at every operation */
	if (!size || size > 8)
		return false;
	materialise(w, offset, size);
	if (!operand(w, data, &a))
		return false;
	op = emit(w, by_size(OP_PUT8, size));
	op->size = (uint8_t)size;
	op->a = a;
	op->d = offset;
	return true;
}

static bool convert_cas(struct builder *w, const IRCAS *c)
{
	struct mach_cas *cas = mach_arena(w->m, sizeof *cas);
	struct mach_op *op;

	memset(cas, 0, sizeof *cas);
	cas->two = c->oldHi != IRTemp_INVALID;
	cas->size = (uint8_t)type_size(typeOfIRExpr(w->types, c->dataLo));
	if (!cas->size || cas->size > 8 || !operand(w, c->addr, &cas->address) ||
	    !operand(w, c->expdLo, &cas->expected[0]) || !operand(w, c->dataLo, &cas->data[0]))
		return false;
	cas->old[0] = temp_offset(w, c->oldLo);
	if (cas->two) {
		if (!operand(w, c->expdHi, &cas->expected[1]) ||
		    !operand(w, c->dataHi, &cas->data[1]))
			return false;
		cas->old[1] = temp_offset(w, c->oldHi);
	}
	op = emit(w, OP_CAS);
	op->size = cas->size;
	op->imm = (uint64_t)cas;
	return true;
}

static bool convert_stmt(struct builder *w, const IRStmt *s)
{
	struct mach_op *op;
	uint32_t a, b;
	unsigned size;

	switch (s->tag) {
	case Ist_NoOp:
	case Ist_AbiHint:
	case Ist_MBE:
		return true;
	case Ist_Put:
		return convert_put(w, (uint32_t)s->Ist.Put.offset, s->Ist.Put.data);
	case Ist_WrTmp:
		return convert_tmp(w, s->Ist.WrTmp.tmp, s->Ist.WrTmp.data);
	case Ist_Store:
		size = type_size(typeOfIRExpr(w->types, s->Ist.Store.data));
		if (!size || size > 8 || !operand(w, s->Ist.Store.addr, &a) ||
		    !operand(w, s->Ist.Store.data, &b))
			return false;
		op = emit(w, by_size(OP_STORE8, size));
		op->size = (uint8_t)size;
		op->a = a;
		op->b = b;
		return true;
	case Ist_CAS:
		return convert_cas(w, s->Ist.CAS.details);
	case Ist_Exit:
		if (!operand(w, s->Ist.Exit.guard, &a) || s->Ist.Exit.dst->tag != Ico_U64)
			return false;
		op = emit(w, OP_EXIT);
		op->a = a;
		op->imm = s->Ist.Exit.dst->Ico.U64;
		return true;
	default: /* LoadG, StoreG, Dirty, PutI: only what goes native makes them */
		return false;
	}
}

/* ---- uses of temporaries ---- */

static void use(struct builder *w, const IRExpr *e)
{
	if (e && e->tag == Iex_RdTmp)
		w->last_use[e->Iex.RdTmp.tmp] = w->stmt;
}

static void uses_of_expr(struct builder *w, const IRExpr *e)
{
	switch (e->tag) {
	case Iex_RdTmp:
		use(w, e);
		break;
	case Iex_Unop:
		use(w, e->Iex.Unop.arg);
		break;
	case Iex_Binop:
		use(w, e->Iex.Binop.arg1);
		use(w, e->Iex.Binop.arg2);
		break;
	case Iex_Load:
		use(w, e->Iex.Load.addr);
		break;
	case Iex_ITE:
		use(w, e->Iex.ITE.cond);
		use(w, e->Iex.ITE.iftrue);
		use(w, e->Iex.ITE.iffalse);
		break;
	case Iex_CCall:
		for (int i = 0; e->Iex.CCall.args[i]; i++)
			use(w, e->Iex.CCall.args[i]);
		break;
	default:
		break;
	}
}

static void uses_of_stmt(struct builder *w, const IRStmt *s)
{
	switch (s->tag) {
	case Ist_Put:
		use(w, s->Ist.Put.data);
		break;
	case Ist_WrTmp:
		uses_of_expr(w, s->Ist.WrTmp.data);
		break;
	case Ist_Store:
		use(w, s->Ist.Store.addr);
		use(w, s->Ist.Store.data);
		break;
	case Ist_Exit:
		use(w, s->Ist.Exit.guard);
		break;
	case Ist_CAS:
		use(w, s->Ist.CAS.details->addr);
		use(w, s->Ist.CAS.details->expdLo);
		use(w, s->Ist.CAS.details->dataLo);
		if (s->Ist.CAS.details->oldHi != IRTemp_INVALID) {
			use(w, s->Ist.CAS.details->expdHi);
			use(w, s->Ist.CAS.details->dataHi);
		}
		break;
	default:
		break;
	}
}

static void find_uses(struct builder *w, const IRSB *sb)
{
	memset(w->last_use, 0, (size_t)sb->tyenv->types_used * sizeof w->last_use[0]);
	for (w->stmt = 0; w->stmt < (uint32_t)sb->stmts_used; w->stmt++)
		uses_of_stmt(w, sb->stmts[w->stmt]);
	w->stmt = (uint32_t)sb->stmts_used;
	use(w, sb->next);
	w->stmt = 0;
}

/* ---- runs ---- */

/*
 * Converts a lifted run that begins at instruction index w->insn. Returns how
 * many of its instructions were converted whole; what an instruction emitted
 * before it turned out to be unknown is taken back.
 */
static unsigned convert_run(struct builder *w, const struct lifted *l)
{
	const IRSB *sb = l->sb;
	unsigned done = 0, first = w->insn;
	size_t mark = w->ops.n;

	w->types = sb->tyenv;
	if (sb->tyenv->types_used > MAX_RUN_TEMPS ||
	    w->temp_base + (uint32_t)sb->tyenv->types_used * MACH_TEMP_SIZE > MACH_CONSTS)
		return 0;
	for (int t = 0; t < sb->tyenv->types_used; t++)
		w->alias[t] = NO_ALIAS;
	w->aliased.n = 0;
	find_uses(w, sb);
	bool started = false;
	for (int i = 0; i < sb->stmts_used; i++) {
		w->stmt = (uint32_t)i;
		if (sb->stmts[i]->tag == Ist_IMark) {
			if (started)
				done++;
			started = true;
			w->insn = first + done;
			mark = w->ops.n;
			continue;
		}
		if (!convert_stmt(w, sb->stmts[i])) {
			w->ops.n = mark;
			w->insn = first + done;
			return done;
		}
	}
	w->stmt = (uint32_t)sb->stmts_used;
	return done + started;
}

static void emit_end(struct builder *w, uint64_t pc)
{
	struct mach_op *op = emit(w, OP_END);

	op->imm = pc;
}

static void emit_stop(struct builder *w, enum mach_stop why, uint64_t pc)
{
	struct mach_op *op = emit(w, OP_STOP);

	op->size = (uint8_t)why;
	op->imm = pc;
	w->b->end = BLOCK_STOP;
}

/* ---- superfluous register writes ---- */

#define SLOTS ((MACH_STATE_SIZE + 7) / 8)

struct liveness {
	uint32_t until[SLOTS]; /* op index of the next whole write of the slot; 0: it is read first */
};

static void reads_slot(struct liveness *l, uint32_t offset, unsigned size)
{
	if (offset >= MACH_STATE_SIZE)
		return;
	for (uint32_t s = offset / 8; s <= (offset + size - 1) / 8 && s < SLOTS; s++)
		l->until[s] = 0;
}

static void reads_all(struct liveness *l)
{
	memset(l->until, 0, sizeof l->until);
}

static void reads_of_op(struct liveness *l, const struct mach_op *op)
{
	switch (op->code) {
	case OP_NATIVE:
	case OP_SPECIAL:
	case OP_LOCK:
	case OP_UNLOCK:
	case OP_EXIT:
	case OP_END:
	case OP_ENDI:
	case OP_STOP:
		reads_all(l);
		break;
	case OP_CALL: {
		const struct mach_call *c = (const struct mach_call *)op->imm;

		for (unsigned i = 0; i < c->nargs; i++)
			reads_slot(l, c->arg[i], 8);
		break;
	}
	case OP_CAS: {
		const struct mach_cas *c = (const struct mach_cas *)op->imm;

		reads_slot(l, c->address, 8);
		for (int i = 0; i < 2; i++) {
			reads_slot(l, c->expected[i], 8);
			reads_slot(l, c->data[i], 8);
		}
		break;
	}
	case OP_ITE:
		reads_slot(l, (uint32_t)op->imm, 8);
		reads_slot(l, op->a, 1);
		reads_slot(l, op->b, 8);
		break;
	default:
		reads_slot(l, op->a, 8);
		reads_slot(l, op->b, 8);
	}
}

static void drop_late_puts(struct builder *w)
{
	struct liveness l;
	VEC(struct mach_late_put) late = { 0 };
	bool *gone = xcalloc(w->ops.n + 1, sizeof *gone);

	reads_all(&l);
	for (size_t i = w->ops.n; i-- > 0;) {
		struct mach_op *op = &w->ops.v[i];

		if (op->code < OP_PUT8 || op->code > OP_PUT64) {
			reads_of_op(&l, op);
			continue;
		}
		uint32_t *until = &l.until[op->d / 8];
		bool whole = op->code == OP_PUT64 && op->d % 8 == 0;

		if (whole && *until && op->a >= MACH_STATE_SIZE) {
			struct mach_late_put put = { (uint32_t)i, *until, op->d, op->a };

			vec_push(&late, put);
			gone[i] = true;
			continue; /* the write that follows also covers those before this */
		}
		if (whole)
			*until = (uint32_t)i;
		else
			reads_slot(&l, op->d, op->size); /* keep the rest of the slot */
		reads_slot(&l, op->a, 8);
		if (whole && op->a / 8 == op->d / 8 && op->a < MACH_STATE_SIZE)
			*until = 0;
	}
	/* Compact, and translate op indices. */
	uint32_t *moved = xmalloc((w->ops.n + 1) * sizeof *moved);
	size_t kept = 0;

	for (size_t i = 0; i < w->ops.n; i++) {
		moved[i] = (uint32_t)kept;
		if (!gone[i])
			w->ops.v[kept++] = w->ops.v[i];
	}
	w->ops.n = kept;
	w->b->nlate = (uint32_t)late.n;
	w->b->late = mach_arena(w->m, late.n * sizeof *late.v + 1);
	for (size_t i = 0; i < late.n; i++) { /* in program order */
		struct mach_late_put put = late.v[late.n - 1 - i];

		put.at = moved[put.at];
		put.until = moved[put.until];
		w->b->late[i] = put;
	}
	free(moved);
	free(gone);
	vec_free(&late);
}

/* ---- blocks ---- */

#define MAX_INSN_BYTES 15

/* Adds instructions [first, first + n) of the same class, from libVEX. */
static bool add_plain(struct builder *w, const uint8_t *bytes, const struct insn *insns,
		      unsigned first, unsigned n)
{
	unsigned done = 0;

	while (done < n) {
		const struct insn *in = &insns[first + done];
		struct lifted l;
		unsigned got = 0;

		w->insn = first + done;
		if (lift(bytes + (in->pc - insns[0].pc), in->pc, n - done, &l)) {
			got = convert_run(w, &l);
			if (got > n - done)
				got = n - done;
			bool last = first + done + got == w->b->ninsns && done + got == n;

			if (last && l.sb->next->tag == Iex_RdTmp) {
				uint32_t a;
				struct mach_op *op;

				if (operand(w, l.sb->next, &a)) {
					op = emit(w, OP_ENDI);
					op->a = a;
				}
			} else if (last && l.sb->next->tag == Iex_Const) {
				emit_end(w, l.sb->next->Iex.Const.con->Ico.U64);
			}
			w->temp_base += (uint32_t)l.sb->tyenv->types_used * MACH_TEMP_SIZE;
		}
		done += got;
		if (got)
			continue;
		/* libVEX or the bytecode does not know this one: the host may. */
		in = &insns[first + done];
		if (in->class != INSN_PLAIN)
			return false;
		struct native_insn *native = native_make(w->m, in);

		if (!native)
			return false;
		w->insn = first + done;
		emit(w, OP_NATIVE)->imm = (uint64_t)native;
		done++;
	}
	return true;
}

static bool add_other(struct builder *w, const uint8_t *bytes, const struct insn *insns,
		      unsigned k)
{
	const struct insn *in = &insns[k];
	void *what;

	w->insn = k;
	switch (in->class) {
	case INSN_NOTHING:
		return true;
	case INSN_NATIVE:
		what = native_make(w->m, in);
		if (!what)
			return false;
		emit(w, OP_NATIVE)->imm = (uint64_t)what;
		return true;
	case INSN_SPECIAL:
		what = special_make(w->m, in);
		if (!what)
			return false;
		emit(w, OP_SPECIAL)->imm = (uint64_t)what;
		return true;
	case INSN_LOCKED:
		emit(w, OP_LOCK)->imm = in->pc;
		w->b->ninsns++; /* so that this one does not look like the last */
		if (!add_plain(w, bytes, insns, k, 1)) {
			w->b->ninsns--;
			return false;
		}
		w->b->ninsns--;
		w->insn = k;
		emit(w, OP_UNLOCK)->imm = in->pc;
		return true;
	default:
		return false;
	}
}

static bool ends_block(enum insn_class class)
{
	return class == INSN_COND || class == INSN_DIRECT || class == INSN_INDIRECT;
}

static bool stops_before(enum insn_class class)
{
	return class == INSN_SYSCALL || class == INSN_NONDET || class == INSN_TRAP ||
	       class == INSN_BAD;
}

static bool is_break(const struct mach *m, uint64_t pc)
{
	size_t lo = 0, hi = m->nbreak_pcs;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->break_pcs[mid] < pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < m->nbreak_pcs && m->break_pcs[lo] == pc;
}

/* Decodes up to max instructions; returns how many belong to the block. */
static unsigned scan(struct mach *m, uint64_t pc, const uint8_t *bytes, size_t n,
		     struct insn *insns, enum block_variant variant, enum mach_stop *stop)
{
	unsigned max = variant == BLOCK_STEP ? 1 : MACH_MAX_INSNS;
	size_t at = 0;
	unsigned k;

	*stop = STOP_NONE;
	for (k = 0; k < max; k++) {
		if (m->event_pc && pc + at == m->event_pc) {
			*stop = STOP_EVENT;
			return k;
		}
		if (variant == BLOCK_BREAK && is_break(m, pc + at)) {
			*stop = STOP_BREAK;
			return k;
		}
		if (at >= n || !insn_decode(bytes + at, n - at, pc + at, &insns[k])) {
			/* Cut off by the end of executable memory: a fault, not bad code. */
			*stop = n - at < MAX_INSN_BYTES ? STOP_FAULT : STOP_UNDECODED;
			return k;
		}
		if (stops_before(insns[k].class)) {
			*stop = insns[k].class == INSN_SYSCALL ? STOP_SYSCALL :
				insns[k].class == INSN_NONDET  ? STOP_NONDET :
				insns[k].class == INSN_TRAP    ? STOP_FAULT :
								 STOP_UNDECODED;
			return k;
		}
		at += insns[k].i.length;
		if (ends_block(insns[k].class))
			return k + 1;
	}
	return k;
}

/* Emits everything; returns how many instructions could be. */
static unsigned assemble(struct builder *w, const uint8_t *bytes, const struct insn *insns,
			 unsigned n)
{
	unsigned k = 0;

	while (k < n) {
		unsigned run = 0;

		while (k + run < n &&
		       (insns[k + run].class == INSN_PLAIN || ends_block(insns[k + run].class)))
			run++;
		if (run) {
			if (!add_plain(w, bytes, insns, k, run))
				return w->insn < n ? w->insn : k;
			k += run;
		} else {
			if (!add_other(w, bytes, insns, k))
				return k;
			k++;
		}
	}
	return n;
}

static void finish(struct builder *w, const struct insn *insns, unsigned n, enum mach_stop stop)
{
	struct mach_block *b = w->b;
	const struct insn *last = n ? &insns[n - 1] : NULL;

	b->ninsns = (uint8_t)n;
	b->end_pc = last ? last->pc + last->i.length : b->pc;
	b->last_pc = last ? last->pc : b->pc;
	for (unsigned i = 0; i < n; i++)
		b->insn_pc[i] = insns[i].pc;
	b->insn_pc[n] = b->end_pc;
	b->end = BLOCK_FALL;
	if (last && stop == STOP_NONE) {
		b->call = last->call;
		b->ret = last->ret;
		b->target = last->target;
		b->end = last->class == INSN_COND     ? BLOCK_COND :
			 last->class == INSN_DIRECT   ? BLOCK_DIRECT :
			 last->class == INSN_INDIRECT ? BLOCK_INDIRECT :
							BLOCK_FALL;
	}
	w->insn = n;
	if (stop != STOP_NONE)
		emit_stop(w, stop, b->end_pc);
	else if (!w->ops.n || (w->ops.v[w->ops.n - 1].code != OP_END &&
			       w->ops.v[w->ops.n - 1].code != OP_ENDI))
		emit_end(w, b->end_pc);
}

static struct mach_block *compile(struct mach *m, uint64_t pc, enum block_variant variant)
{
	static struct insn insns[MACH_MAX_INSNS + 1];
	uint8_t bytes[MACH_MAX_INSNS * MAX_INSN_BYTES + 64];
	struct builder *w = &builder;
	enum mach_stop stop;
	size_t have = mem_fetch(m->mem, pc, bytes, sizeof bytes - 64);
	unsigned n, done;

	memset(bytes + have, 0, sizeof bytes - have);
	n = scan(m, pc, bytes, have, insns, variant, &stop);
	w->m = m;
	w->b = mach_arena(m, sizeof *w->b);
	for (;;) {
		memset(w->b, 0, sizeof *w->b);
		w->b->pc = pc;
		w->b->variant = (uint8_t)variant;
		w->b->ninsns = (uint8_t)n;
		w->ops.n = 0;
		w->insn = 0;
		w->temp_base = MACH_TEMPS;
		done = assemble(w, bytes, insns, n);
		if (done == n)
			break;
		n = done; /* the next one is unknown: a shorter block that stops there */
		stop = STOP_UNDECODED;
	}
	finish(w, insns, n, stop);
	w->b->temps = (w->temp_base - MACH_TEMPS) / MACH_TEMP_SIZE;
	drop_late_puts(w);
	w->b->nops = (uint32_t)w->ops.n;
	w->b->ops = mach_arena(m, w->ops.n * sizeof *w->ops.v);
	memcpy(w->b->ops, w->ops.v, w->ops.n * sizeof *w->ops.v);
	m->lifted += n;
	return w->b;
}

static size_t block_slot(const struct mach *m, uint64_t pc)
{
	return (size_t)(pc * 0x9e3779b97f4a7c15ull >> 32) & (m->blocks_cap - 1);
}

static void grow(struct mach *m)
{
	struct mach_block **old = m->blocks;
	size_t cap = m->blocks_cap;

	m->blocks_cap = cap ? cap * 2 : 4096;
	m->blocks = xcalloc(m->blocks_cap, sizeof *m->blocks);
	for (size_t i = 0; i < cap; i++)
		for (struct mach_block *b = old[i], *next; b; b = next) {
			size_t s = block_slot(m, b->pc);

			next = b->next;
			b->next = m->blocks[s];
			m->blocks[s] = b;
		}
	free(old);
}

struct mach_block *mach_block_get(struct mach *m, uint64_t pc, enum block_variant variant)
{
	struct mach_block *b;
	size_t s;

	if (m->nblocks >= m->blocks_cap)
		grow(m);
	for (b = m->blocks[block_slot(m, pc)]; b; b = b->next)
		if (b->pc == pc && b->variant == variant)
			return b;
	b = compile(m, pc, variant);
	s = block_slot(m, pc);
	b->next = m->blocks[s];
	m->blocks[s] = b;
	m->nblocks++;
	return b;
}
