/*
 * libVEX's IR -> operations. A register that is read (Get) is not copied: its
 * users read the guest register itself, until a write to it forces the copy.
 */
#include "analyzer/engine/compile.h"

#include "analyzer/engine/irops.h"

#include <string.h>

#define NO_ALIAS UINT32_MAX

/* ---- emitting ---- */

struct mach_op *compile_emit(struct builder *w, enum mach_code code)
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

bool compile_operand(struct builder *w, const IRExpr *e, uint32_t *out)
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
		struct mach_op *op = compile_emit(w, by_size(OP_GET8, n));

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
		    !compile_operand(w, e->Iex.CCall.args[call->nargs], &call->arg[call->nargs]))
			return false;
	op = compile_emit(w, OP_CALL);
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

	if (!irop_find(irop, &code, &size) || !compile_operand(w, a, &at) || (b && !compile_operand(w, b, &bt)))
		return false;
	op = compile_emit(w, code);
	op->size = size;
	op->a = at;
	op->b = bt;
	op->d = d;
	return true;
}

/*
 * Conversions that change nothing. Operations read no more bytes of an operand than they need, and
 * write their results with zeroes in front: the low part of a value can be read where the
 * value is, and a result is its own extension.
 */
static bool convert_nothing(struct builder *w, IRTemp t, IROp irop, const IRExpr *arg)
{
	bool temp = arg->tag == Iex_RdTmp;
	IRTemp x = temp ? arg->Iex.RdTmp.tmp : 0;
	uint16_t code;
	uint8_t size;

	if (!irop_find(irop, &code, &size))
		return false;
	switch (code) {
	case OP_TO8:
	case OP_TO16:
	case OP_TO32:
		if (!compile_operand(w, arg, &w->alias[t]))
			return false;
		if (w->alias[t] < MACH_STATE_SIZE)
			vec_push(&w->aliased, t);
		return true;
	case OP_TO1: /* back from the extension of a single bit */
		if (!temp || !w->bit[x].from)
			return false;
		w->alias[t] = w->bit[x].from;
		w->uses[x]--;
		return true;
	case OP_ZX8:
	case OP_ZX16:
	case OP_ZX32:
		if (!temp || w->alias[x] != NO_ALIAS)
			return false;
		w->alias[t] = temp_offset(w, x);
		return true;
	default:
		return false;
	}
}

static bool convert_unary(struct builder *w, IRTemp t, IROp irop, const IRExpr *arg)
{
	if (convert_nothing(w, t, irop, arg))
		return true;
	if (!convert_operator(w, irop, arg, NULL, temp_offset(w, t)))
		return false;
	if (w->ops.v[w->ops.n - 1].code == OP_BIT)
		w->bit[t] = (struct bit_copy){ w->ops.v[w->ops.n - 1].a, (uint32_t)w->ops.n - 1 };
	return true;
}

/* Extensions of single bits that nobody needs any more. */
static void drop_bits(struct builder *w, int ntemps)
{
	for (int t = 0; t < ntemps; t++) {
		const struct bit_copy *b = &w->bit[t];

		if (b->from && !w->uses[t] && b->op < w->ops.n && w->ops.v[b->op].code == OP_BIT &&
		    w->ops.v[b->op].d == temp_offset(w, (IRTemp)t))
			w->ops.v[b->op].code = OP_GONE;
	}
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
		if (!compile_operand(w, e, &a))
			return false;
		/* A forwarded register of less than 8 bytes has neighbours behind it. */
		op = compile_emit(w, size == 16 ? OP_MOVE : by_size(OP_GET8, size));
		op->size = (uint8_t)size;
		op->a = a;
		op->d = d;
		return true;
	case Iex_Load:
		if (size > 8 || !compile_operand(w, e->Iex.Load.addr, &a))
			return false;
		op = compile_emit(w, by_size(OP_LOAD8, size));
		op->size = (uint8_t)size;
		op->a = a;
		op->d = d;
		return true;
	case Iex_Unop:
		return convert_unary(w, t, e->Iex.Unop.op, e->Iex.Unop.arg);
	case Iex_Binop:
		return convert_operator(w, e->Iex.Binop.op, e->Iex.Binop.arg1,
					e->Iex.Binop.arg2, d);
	case Iex_ITE:
		if (!compile_operand(w, e->Iex.ITE.cond, &c) || !compile_operand(w, e->Iex.ITE.iftrue, &a) ||
		    !compile_operand(w, e->Iex.ITE.iffalse, &b) || size > 8)
			return false;
		op = compile_emit(w, OP_ITE);
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
	if (!compile_operand(w, data, &a))
		return false;
	op = compile_emit(w, by_size(OP_PUT8, size));
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
	if (!cas->size || cas->size > 8 || !compile_operand(w, c->addr, &cas->address) ||
	    !compile_operand(w, c->expdLo, &cas->expected[0]) || !compile_operand(w, c->dataLo, &cas->data[0]))
		return false;
	cas->old[0] = temp_offset(w, c->oldLo);
	if (cas->two) {
		if (!compile_operand(w, c->expdHi, &cas->expected[1]) ||
		    !compile_operand(w, c->dataHi, &cas->data[1]))
			return false;
		cas->old[1] = temp_offset(w, c->oldHi);
	}
	op = compile_emit(w, OP_CAS);
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
		if (!size || size > 8 || !compile_operand(w, s->Ist.Store.addr, &a) ||
		    !compile_operand(w, s->Ist.Store.data, &b))
			return false;
		op = compile_emit(w, by_size(OP_STORE8, size));
		op->size = (uint8_t)size;
		op->a = a;
		op->b = b;
		return true;
	case Ist_CAS:
		return convert_cas(w, s->Ist.CAS.details);
	case Ist_Exit:
		if (!compile_operand(w, s->Ist.Exit.guard, &a) || s->Ist.Exit.dst->tag != Ico_U64)
			return false;
		op = compile_emit(w, OP_EXIT);
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
	if (!e || e->tag != Iex_RdTmp)
		return;
	w->last_use[e->Iex.RdTmp.tmp] = w->stmt;
	w->uses[e->Iex.RdTmp.tmp]++;
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
	memset(w->uses, 0, (size_t)sb->tyenv->types_used * sizeof w->uses[0]);
	memset(w->bit, 0, (size_t)sb->tyenv->types_used * sizeof w->bit[0]);
	for (w->stmt = 0; w->stmt < (uint32_t)sb->stmts_used; w->stmt++)
		uses_of_stmt(w, sb->stmts[w->stmt]);
	w->stmt = (uint32_t)sb->stmts_used;
	use(w, sb->next);
	w->stmt = 0;
}

/* ---- runs ---- */

/* Two decoders must agree on where instructions are. */
static bool is_same(const struct insn *in, const IRStmt *mark)
{
	return in->pc == mark->Ist.IMark.addr && in->i.length == mark->Ist.IMark.len;
}

unsigned compile_run(struct builder *w, const struct lifted *l)
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
			if (!is_same(w->canonical ? w->canonical : &w->insns[w->insn], sb->stmts[i]))
				return done;
			continue;
		}
		if (!convert_stmt(w, sb->stmts[i])) {
			w->ops.n = mark;
			w->insn = first + done;
			drop_bits(w, sb->tyenv->types_used);
			return done;
		}
	}
	w->stmt = (uint32_t)sb->stmts_used;
	drop_bits(w, sb->tyenv->types_used);
	if (!started || !l->undecoded)
		return done + started;
	/* The last one is one that libVEX does not know: a jump to itself is all it made of it. */
	w->ops.n = mark;
	w->insn = first + done;
	return done;
}
