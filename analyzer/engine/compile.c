/*
 * Guest code -> block: decode a straight run, hand the integer parts to libVEX,
 * turn its IR into operations (convert.c), and put the rest between them.
 */
#include "analyzer/engine/compile.h"
#include "analyzer/engine/straight.h"

#include <string.h>

static struct builder builder; /* one lifter, one compiler: see machine.h */

static void emit_end(struct builder *w, uint64_t pc)
{
	struct mach_op *op = compile_emit(w, OP_END);

	op->imm = pc;
}

static void emit_stop(struct builder *w, enum mach_stop why, uint64_t pc)
{
	struct mach_op *op = compile_emit(w, OP_STOP);

	op->size = (uint8_t)why;
	op->imm = pc;
	w->b->end = BLOCK_STOP;
}

/*
 * Programs made to work with valgrind too (GLib's do) hold rotations that together do nothing. libVEX takes
 * them, with what follows, for one request to valgrind; the processor executes them.
 */
static bool is_request(const uint8_t *bytes)
{
	static const uint8_t rotations[16] = {
		0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d,
		0x48, 0xc1, 0xc7, 0x3d, 0x48, 0xc1, 0xc7, 0x33,
	};

	return !memcmp(bytes, rotations, sizeof rotations);
}

static bool is_cmpxchg32(const struct insn *in)
{
	return in->i.mnemonic == ZYDIS_MNEMONIC_CMPXCHG && in->i.operand_width == 32;
}

/* Up to n instructions; what libVEX has wrong is lifted without what follows it. */
static bool lift_some(const uint8_t *bytes, const struct insn *insns, unsigned n, struct lifted *l)
{
	uint8_t alone[MAX_INSN_BYTES + 64] = { 0 };
	unsigned k = 1;

	if (is_request(bytes)) {
		memcpy(alone, bytes, insns[0].i.length);
		return lift(alone, insns[0].pc, 1, l);
	}
	if (is_cmpxchg32(&insns[0]))
		return lift_cmpxchg32(bytes, insns[0].pc, l);
	while (k < n && !is_request(bytes + (insns[k].pc - insns[0].pc)) && !is_cmpxchg32(&insns[k]))
		k++;
	return lift(bytes, insns[0].pc, k, l);
}

/* libVEX refuses instructions for prefixes that mean nothing: that one without them. */
static unsigned convert_canonical(struct builder *w, const struct insn *in, struct lifted *l)
{
	uint8_t bytes[MAX_INSN_BYTES + 64] = { 0 };
	struct insn canonical;
	unsigned got = 0;

	if ((in->class != INSN_PLAIN && in->class != INSN_LOCKED) ||
	    !native_canonical(in, bytes, &canonical))
		return 0;
	w->canonical = &canonical;
	if (lift_some(bytes, &canonical, 1, l))
		got = compile_run(w, l);
	w->canonical = NULL;
	return got < 1 ? got : 1;
}

/* Up to n instructions, from libVEX; returns how many it were. */
static unsigned convert_some(struct builder *w, const uint8_t *bytes, const struct insn *insns,
			     unsigned n, struct lifted *l)
{
	unsigned first = w->insn, got = 0;

	if (lift_some(bytes, insns, n, l))
		got = compile_run(w, l);
	if (!got) {
		w->insn = first;
		got = convert_canonical(w, insns, l);
	}
	return got < n ? got : n;
}

/* Adds instructions [first, first + n) of the same class, from libVEX. */
static bool add_plain(struct builder *w, const uint8_t *bytes, const struct insn *insns,
		      unsigned first, unsigned n)
{
	unsigned done = 0;

	while (done < n) {
		const struct insn *in = &insns[first + done];
		struct lifted l;
		unsigned got;

		w->insn = first + done;
		got = convert_some(w, bytes + (in->pc - insns[0].pc), in, n - done, &l);
		if (got) {
			bool last = first + done + got == w->b->ninsns && done + got == n;

			if (last && l.sb->next->tag == Iex_RdTmp) {
				uint32_t a;
				struct mach_op *op;

				if (compile_operand(w, l.sb->next, &a)) {
					op = compile_emit(w, OP_ENDI);
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
		compile_emit(w, OP_NATIVE)->imm = (uint64_t)native;
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
		if (in->i.mnemonic == ZYDIS_MNEMONIC_MFENCE)
			compile_emit(w, OP_FENCE);
		return true;
	case INSN_NATIVE:
		what = native_make(w->m, in);
		if (!what)
			return false;
		compile_emit(w, OP_NATIVE)->imm = (uint64_t)what;
		return true;
	case INSN_SPECIAL:
		what = special_make(w->m, in);
		if (!what)
			return false;
		compile_emit(w, OP_SPECIAL)->imm = (uint64_t)what;
		return true;
	case INSN_LOCKED:
		compile_emit(w, OP_LOCK)->imm = in->pc;
		w->b->ninsns++; /* so that this one does not look like the last */
		if (!add_plain(w, bytes, insns, k, 1)) {
			w->b->ninsns--;
			return false;
		}
		w->b->ninsns--;
		w->insn = k;
		compile_emit(w, OP_UNLOCK)->imm = in->pc;
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

static bool is_break(const struct mach *m, enum block_variant variant, uint64_t pc)
{
	return (variant == BLOCK_BREAK && mach_pcs_have(&m->breaks, pc)) ||
	       (variant == BLOCK_ITEM && mach_pcs_have(&m->items, pc));
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
		if (is_break(m, variant, pc + at)) {
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

static void finish(struct builder *w, const uint8_t *bytes, const struct insn *insns, unsigned n,
		   enum mach_stop stop)
{
	struct mach_block *b = w->b;
	const struct insn *last = n ? &insns[n - 1] : NULL;

	b->ninsns = (uint8_t)n;
	b->end_pc = last ? last->pc + last->i.length : b->pc;
	b->last_pc = last ? last->pc : b->pc;
	for (unsigned i = 0; i < n; i++)
		b->insn_pc[i] = insns[i].pc;
	b->insn_pc[n] = b->end_pc;
	b->bytes = memcpy(mach_arena(w->m, b->end_pc - b->pc), bytes, b->end_pc - b->pc);
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

struct mach_block *compile_block(struct mach *m, uint64_t pc, enum block_variant variant)
{
	static struct insn insns[MACH_MAX_INSNS + 1];
	uint8_t bytes[MACH_MAX_INSNS * MAX_INSN_BYTES + 64];
	struct builder *w = &builder;
	enum mach_stop stop;
	size_t have = mem_fetch(m->mem, pc, bytes, sizeof bytes - 64);
	unsigned n, done;

	memset(bytes + have, 0, sizeof bytes - have);
	n = scan(m, pc, bytes, have, insns, variant, &stop);
	if (stop == STOP_FAULT && have < sizeof bytes - 64)
		mem_code_ends(m->mem, pc + have);
	w->m = m;
	w->insns = insns;
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
	finish(w, bytes, insns, n, stop);
	w->b->temps = (w->temp_base - MACH_TEMPS) / MACH_TEMP_SIZE;
	compile_late_puts(w);
	compile_fuse(w);
	size_t nops = w->ops.n;

	w->b->ops = straight_add(m, w->b, w->ops.v, &nops);
	w->b->nops = (uint32_t)nops;
	m->lifted += n;
	return w->b;
}
