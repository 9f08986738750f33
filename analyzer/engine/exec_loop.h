/*
 * The interpreter's loop; exec.c includes it twice. WATCHED 0: nothing but the
 * guest. WATCHED 1: every access is reported, and operations with a symbolic
 * operand are shadowed.
 *
 * One label per operation, jumped to through a table: the compiler then keeps
 * the operation pointer and the frame in registers and predicts each dispatch
 * by itself.
 */
#define AT8(o) (*(uint8_t *)(f + (o)))
#define AT16(o) (*(uint16_t *)(f + (o)))
#define AT32(o) (*(uint32_t *)(f + (o)))
#define AT64(o) (*(uint64_t *)(f + (o)))
#define AT128(o) (*(unsigned __int128 *)(f + (o)))
#define NEXT goto *labels[(++op)->code]
#define STOP_AT(why)              \
	do {                      \
		stop = (why);     \
		goto stopped;     \
	} while (0)
#if WATCHED
#define PC (b->insn_pc[op->insn])
/* Whoever is told of it may ask for the registers (mach_sync_registers()): as they are here. */
#define HERE (m->now_op = op)
#define SHADOW(call)            \
	do {                    \
		if (m->slots) { \
			HERE;   \
			call;   \
		}               \
	} while (0)
#else
#define SHADOW(call)
#define HERE
#endif

#define DIVISION_FAULT                                                \
	do {                                                          \
		SHADOW(shadow_bad_division(m, op, PC));               \
		STOP_AT(division_fault(m, b->insn_pc[op->insn]));     \
	} while (0)

#define BODY_BIN(name, ab, bb, rb, value)                                              \
	op_##name : {                                                                  \
		const uint##ab##_t A = AT##ab(op->a);                                  \
		const uint##bb##_t B = AT##bb(op->b);                                  \
		const int##ab##_t SA = (int##ab##_t)A;                                 \
		const int##bb##_t SB = (int##bb##_t)B;                                 \
		(void)SA;                                                              \
		(void)SB;                                                              \
		SHADOW(shadow_binary(m, op));                                          \
		AT64(op->d) = (uint##rb##_t)(value);                                   \
	}                                                                              \
	NEXT;
#define BODY_UN(name, ab, bb, rb, value)                                               \
	op_##name : {                                                                  \
		const uint##ab##_t A = AT##ab(op->a);                                  \
		const int##ab##_t SA = (int##ab##_t)A;                                 \
		(void)SA;                                                              \
		SHADOW(shadow_unary(m, op));                                           \
		AT64(op->d) = (uint##rb##_t)(value);                                   \
	}                                                                              \
	NEXT;
#define BODY_CTL(name, ab, bb, rb, value)

#if WATCHED
/* o: the operation, its address in o.a */
#define DO_LOAD(bits, o)                                                               \
	do {                                                                           \
		uint64_t v, at = AT64((o).a);                                          \
		HERE;                                                                  \
		SHADOW(shadow_address(m, (o).a, PC));                                  \
		if (!mem_load##bits(m->mem, at, &v))                                   \
			STOP_AT(mach_access_fault(m, false));                          \
		if (m->access)                                                         \
			m->access(m->access_arg, m, PC, at, bits / 8,                  \
				  m->in_lock ? ACCESS_READ | ACCESS_LOCKED : ACCESS_READ, v); \
		AT64((o).d) = v;                                                       \
		if (m->shadow)                                                         \
			shadow_load(m, PC, &(o), at, v);                               \
		m->lock_loaded = m->in_lock;                                           \
	} while (0)
#define DO_STORE(bits, o)                                                              \
	do {                                                                           \
		uint64_t at = AT64((o).a);                                             \
		HERE;                                                                  \
		SHADOW(shadow_address(m, (o).a, PC));                                  \
		if (m->access)                                                         \
			m->access(m->access_arg, m, PC, at, bits / 8,                  \
				  m->in_lock ? ACCESS_WRITE | ACCESS_LOCKED : ACCESS_WRITE, \
				  AT##bits((o).b));                                    \
		/* Listeners are told before: they may ask what memory held. */        \
		if (m->shadow && (mem_hit(m->mem->write, at, bits / 8) ||            \
				  mem_writable(m->mem, at, bits / 8)))                 \
			shadow_store(m, PC, &(o), at);                                 \
		if (!mem_store##bits(m->mem, at, AT##bits((o).b)))                     \
			STOP_AT(mach_access_fault(m, true));                           \
	} while (0)
#define DO_PUT(to, from)                                                               \
	do {                                                                           \
		struct mach_op put_ = { .code = OP_PUT64, .size = 8, .d = (to), .a = (from) }; \
		SHADOW(shadow_put(m, &put_));                                          \
		AT64(to) = AT64(from);                                                 \
	} while (0)
#define DO_SUM(to)                                                                     \
	do {                                                                           \
		struct mach_op sum_ = { .code = OP_ADD64, .size = 8, .d = (to), .a = op->a, \
					.b = op->b };                                  \
		SHADOW(shadow_binary(m, &sum_));                                       \
		AT64(to) = AT64(op->a) + AT64(op->b);                                  \
	} while (0)
#else
#define DO_LOAD(bits, o)                                                               \
	do {                                                                           \
		if (__builtin_expect(!mem_load##bits(m->mem, AT64((o).a), &AT64((o).d)), 0)) \
			STOP_AT(mach_access_fault(m, false));                          \
	} while (0)
#define DO_STORE(bits, o)                                                              \
	do {                                                                           \
		if (__builtin_expect(!mem_store##bits(m->mem, AT64((o).a), AT##bits((o).b)), 0)) \
			STOP_AT(mach_access_fault(m, true));                           \
	} while (0)
#define DO_PUT(to, from) (AT64(to) = AT64(from))
#define DO_SUM(to) (AT64(to) = AT64(op->a) + AT64(op->b))
#endif
#define BODY_LOAD(bits)                                                                \
	op_LOAD##bits:                                                                 \
	DO_LOAD(bits, *op);                                                            \
	NEXT;
#define BODY_STORE(bits)                                                               \
	op_STORE##bits:                                                                \
	DO_STORE(bits, *op);                                                           \
	NEXT;
#define BODY_LOADAT(bits)                                                              \
	op_LOADAT##bits : {                                                            \
		const struct mach_op o = { .size = op->size, .d = op->d, .a = (uint32_t)op->imm }; \
		DO_SUM(o.a);                                                           \
		DO_LOAD(bits, o);                                                      \
	}                                                                              \
	NEXT;
#define BODY_STOREAT(bits)                                                             \
	op_STOREAT##bits : {                                                           \
		const struct mach_op o = { .size = op->size, .a = op->d, .b = (uint32_t)op->imm }; \
		DO_SUM(o.a);                                                           \
		DO_STORE(bits, o);                                                     \
	}                                                                              \
	NEXT;

static enum mach_stop LOOP_NAME(struct mach *m)
{
	static const void *const labels[] = {
#define MACH_OP(name, ...) &&op_##name,
#include "analyzer/engine/ops.def"
#undef MACH_OP
	};
	uint8_t *const f = m->f;
	struct mach_block *b = block_at(m, m->frame->g.guest_RIP, false);
	const struct mach_op *op;
	enum mach_stop stop;
	uint64_t next;
	unsigned link;
	const unsigned variant = m->breaking;

enter:
	if (__builtin_expect(m->insns + b->ninsns > m->insn_limit, 0)) {
		m->frame->g.guest_RIP = b->pc;
		if (m->insns >= m->insn_limit)
			return STOP_LIMIT;
		if (b->variant != BLOCK_STEP)
			b = block_at(m, b->pc, true);
	}
#if WATCHED
	m->now = b;
	if (m->slots)
		shadow_block(m);
#endif
	op = b->ops;
	goto *labels[op->code];

#define MACH_OP(name, kind, ab, bb, rb, value, expr) BODY_##kind(name, ab, bb, rb, value)
#include "analyzer/engine/ops.def"
#undef MACH_OP

op_MULLU64:
	SHADOW(shadow_wide(m, op, PC));
	AT128(op->d) = (unsigned __int128)AT64(op->a) * AT64(op->b);
	NEXT;
op_MULLS64:
	SHADOW(shadow_wide(m, op, PC));
	AT128(op->d) = (unsigned __int128)((__int128)(int64_t)AT64(op->a) * (int64_t)AT64(op->b));
	NEXT;
op_HL64: {
	uint64_t hi = AT64(op->a), lo = AT64(op->b);

	SHADOW(shadow_wide(m, op, PC));
	AT128(op->d) = (unsigned __int128)hi << 64 | lo;
}
	NEXT;
op_LOW128:
	SHADOW(shadow_wide(m, op, PC));
	AT64(op->d) = AT64(op->a);
	NEXT;
op_HIGH128:
	SHADOW(shadow_wide(m, op, PC));
	AT64(op->d) = AT64(op->a + 8);
	NEXT;
op_DIVU128: {
	unsigned __int128 n = AT128(op->a);
	uint64_t d = AT64(op->b);

	if (d == 0 || n / d > UINT64_MAX)
		DIVISION_FAULT;
	SHADOW(shadow_wide(m, op, PC));
	AT128(op->d) = (unsigned __int128)(uint64_t)(n % d) << 64 | (uint64_t)(n / d);
}
	NEXT;
op_DIVS128: {
	__int128 n = (__int128)AT128(op->a), q = 0;
	int64_t d = (int64_t)AT64(op->b);
	bool bad = d == 0 || (d == -1 && AT128(op->a) == (unsigned __int128)1 << 127);

	if (!bad)
		q = n / d;
	if (bad || q != (int64_t)q)
		DIVISION_FAULT;
	SHADOW(shadow_wide(m, op, PC));
	AT128(op->d) = (unsigned __int128)(uint64_t)(n % d) << 64 | (uint64_t)q;
}
	NEXT;
op_DIVU64: {
	uint64_t n = AT64(op->a);
	uint32_t d = AT32(op->b);

	if (d == 0)
		DIVISION_FAULT;
	/* Whether the quotient fits depends on the instruction's size: for 32
	 * bits it must fit 32, narrower ones are checked by their own result. */
	if (n / d > UINT32_MAX)
		DIVISION_FAULT;
	SHADOW(shadow_wide(m, op, PC));
	AT64(op->d) = (uint64_t)(uint32_t)(n % d) << 32 | (uint32_t)(n / d);
}
	NEXT;
op_DIVS64: {
	int64_t n = (int64_t)AT64(op->a), q = 0;
	int32_t d = (int32_t)AT32(op->b);
	bool bad = d == 0 || (d == -1 && n == INT64_MIN);

	if (!bad)
		q = n / d;
	if (bad || q != (int32_t)q)
		DIVISION_FAULT;
	SHADOW(shadow_wide(m, op, PC));
	AT64(op->d) = (uint64_t)(uint32_t)(n % d) << 32 | (uint32_t)q;
}
	NEXT;
op_MOVE:
	SHADOW(shadow_wide(m, op, PC));
	AT128(op->d) = AT128(op->a);
	NEXT;
op_GET8:
	SHADOW(shadow_move(m, op));
	AT64(op->d) = AT8(op->a);
	NEXT;
op_GET16:
	SHADOW(shadow_move(m, op));
	AT64(op->d) = AT16(op->a);
	NEXT;
op_GET32:
	SHADOW(shadow_move(m, op));
	AT64(op->d) = AT32(op->a);
	NEXT;
op_GET64:
	SHADOW(shadow_move(m, op));
	AT64(op->d) = AT64(op->a);
	NEXT;
op_PUT8:
	SHADOW(shadow_put(m, op));
	AT8(op->d) = AT8(op->a);
	NEXT;
op_PUT16:
	SHADOW(shadow_put(m, op));
	AT16(op->d) = AT16(op->a);
	NEXT;
op_PUT32:
	SHADOW(shadow_put(m, op));
	AT32(op->d) = AT32(op->a);
	NEXT;
op_PUT64:
	SHADOW(shadow_put(m, op));
	AT64(op->d) = AT64(op->a);
	NEXT;
	BODY_LOAD(8)
	BODY_LOAD(16)
	BODY_LOAD(32)
	BODY_LOAD(64)
	BODY_STORE(8)
	BODY_STORE(16)
	BODY_STORE(32)
	BODY_STORE(64)
	BODY_LOADAT(8)
	BODY_LOADAT(16)
	BODY_LOADAT(32)
	BODY_LOADAT(64)
	BODY_STOREAT(8)
	BODY_STOREAT(16)
	BODY_STOREAT(32)
	BODY_STOREAT(64)
op_PUTS2:
	DO_PUT(op->d, op->a);
	DO_PUT((uint32_t)op->imm, op->b);
	NEXT;
op_PUTS3:
	DO_PUT(op->d, op->a);
	DO_PUT(op->d + 8, op->b);
	DO_PUT(op->d + 16, (uint32_t)op->imm);
	NEXT;
op_PUTS4:
	DO_PUT(op->d, op->a);
	DO_PUT(op->d + 8, op->b);
	DO_PUT(op->d + 16, (uint32_t)op->imm);
	DO_PUT(op->d + 24, (uint32_t)(op->imm >> 32));
	NEXT;
op_ITE: {
	uint32_t from = AT8(op->a) & 1 ? op->b : (uint32_t)op->imm;

	SHADOW(shadow_ite(m, op));
	switch (op->size) {
	case 1:
		AT64(op->d) = AT8(from);
		break;
	case 2:
		AT64(op->d) = AT16(from);
		break;
	case 4:
		AT64(op->d) = AT32(from);
		break;
	default:
		AT64(op->d) = AT64(from);
	}
}
	NEXT;
op_CALL: {
	uint64_t v = do_call(m, (const struct mach_call *)op->imm);

	SHADOW(shadow_call(m, op, PC));
	AT64(op->d) = op->size == 8 ? v : v & ((1ull << 8 * op->size) - 1);
}
	NEXT;
op_CAS:
	HERE;
	stop = do_cas(m, (const struct mach_cas *)op->imm, b->insn_pc[op->insn]);
	if (__builtin_expect(stop != STOP_NONE, 0))
		goto stopped;
	NEXT;
op_NATIVE:
	HERE;
	stop = do_native(m, (const struct native_insn *)op->imm, b->insn_pc[op->insn]);
	if (__builtin_expect(stop != STOP_NONE, 0))
		goto stopped;
	NEXT;
op_SPECIAL: {
	const struct special_insn *s = (const struct special_insn *)op->imm;

	HERE;
	SHADOW(shadow_special(m, s));
	stop = s->fn(m, s);
	if (__builtin_expect(stop != STOP_NONE, 0))
		goto stopped;
}
	NEXT;
op_LOCK:
	m->in_lock = true;
	m->lock_loaded = false;
	NEXT;
op_UNLOCK:
	m->in_lock = false;
#if WATCHED
	HERE;
	if (m->locked_end)
		m->locked_end(m->access_arg, m, op->imm);
#endif
	NEXT;
op_FENCE:
#if WATCHED
	HERE;
	if (m->fence)
		m->fence(m->access_arg, m);
#endif
	NEXT;
op_STRAIGHT:
#if !WATCHED
{
	uint64_t at = ((straight_fn *)(uintptr_t)op->imm)(f, m->mem);

	op = b->ops + (at & ~(uint64_t)STRAIGHT_STOPPED);
	if (__builtin_expect(at & STRAIGHT_STOPPED, 0))
		STOP_AT(m->straight_stop);
	goto *labels[op->code];
}
#endif
op_NOTHING:
	NEXT;
op_EXIT:
	SHADOW(shadow_exit(m, op));
	if (!(AT8(op->a) & 1))
		NEXT;
	next = op->imm;
	m->insns += op->insn + 1u;
	link = 1;
	goto leave;
op_END:
	next = op->imm;
	m->insns += b->ninsns;
	link = 0;
	goto leave;
op_ENDI:
	SHADOW(shadow_target(m, op));
	next = AT64(op->a);
	m->insns += b->ninsns;
	link = 0;
	goto leave;
op_STOP:
	m->fault.signal = 0; /* to be described: see describe_stop() */
	m->why[0] = 0;
	STOP_AT((enum mach_stop)op->size);

leave:
	if (m->branch && (b->end == BLOCK_COND || b->end == BLOCK_INDIRECT)) {
		int taken = b->end == BLOCK_INDIRECT    ? 1 :
			    b->target == b->end_pc ? 2 :
						     next != b->end_pc;
		struct mach_expected *x = &m->expected;
#if WATCHED
		m->now_op = NULL;
#endif
		if (x->next != x->end && x->next->pc == b->last_pc && b->end == BLOCK_COND &&
		    (taken == (int)(x->taken & 1) || taken == 2)) {
			x->next++;
			x->taken >>= 1;
			x->insns = m->insns;
		} else if (!m->branch(m->branch_arg, m, b, taken, next)) {
			m->frame->g.guest_RIP = next;
			return STOP_BRANCH;
		}
	}
	if (__builtin_expect(m->stop_asked, 0)) {
		m->frame->g.guest_RIP = next;
		return STOP_HOOK;
	}
	if (__builtin_expect(m->flush_wanted, 0)) {
		b = block_at(m, next, false);
	} else {
		struct mach_block *to = b->link[link];

		if (__builtin_expect(!to || to->pc != next || to->variant != variant, 0)) {
			size_t flushes = m->flushes;
			struct mach_block **known = &m->jumps[(next ^ next >> 12) % MACH_JUMPS];

			to = *known;
			if (!to || to->pc != next || to->variant != variant)
				to = block_at(m, next, false);
			if (flushes == m->flushes)
				b->link[link] = *known = to;
		}
		b = to;
	}
	goto enter;

stopped:
	late_puts(m, b, op);
	m->insns += op->insn;
	m->frame->g.guest_RIP = b->insn_pc[op->insn];
	return stop;
}

#undef AT8
#undef AT16
#undef AT32
#undef AT64
#undef AT128
#undef NEXT
#undef STOP_AT
#undef PC
#undef SHADOW
#undef HERE
#undef BODY_BIN
#undef BODY_UN
#undef BODY_CTL
#undef BODY_LOAD
#undef BODY_STORE
#undef BODY_LOADAT
#undef BODY_STOREAT
#undef DO_LOAD
#undef DO_STORE
#undef DO_PUT
#undef DO_SUM
