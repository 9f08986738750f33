/* See shadow.h: the store of expressions, and how values become concrete. */
#include "analyzer/engine/shadow_ops.h"

#include <string.h>
#include <sys/mman.h>

#define SLOT_BYTES ((size_t)MACH_FRAME_SIZE / 8 * sizeof(uint32_t))
#define STATE_SLOTS (MACH_REGS_SIZE / 8)

/*
 * Deeper expressions are made concrete. A loop that mixes a value with itself
 * builds one as deep as it is long, which no solver would get through anyway.
 */
#define MAX_DEPTH 256
/*
 * A computation that goes on and on from the same symbols: after so many parts
 * of it became too deep, whatever it touches is made concrete.
 */
#define MOST_DEEP 64

/* ---- memory words: an open hash, keyed by address / 8 + 1 ---- */

struct word {
	uint64_t key;
	expr_id e;
};

struct mem_words {
	struct word *v;
	size_t n, cap; /* n counts keys, also those whose expression is gone */
};

static struct word *word_find(struct mem_words *w, uint64_t key)
{
	size_t i = (size_t)(key * 0x9e3779b97f4a7c15ull >> 24) & (w->cap - 1);

	while (w->v[i].key && w->v[i].key != key)
		i = (i + 1) & (w->cap - 1);
	return &w->v[i];
}

static expr_id word_get(struct mem_words *w, uint64_t address)
{
	return w->n ? word_find(w, address / 8 + 1)->e : EXPR_NONE;
}

static void word_set(struct mem_words *w, uint64_t address, expr_id e)
{
	struct word *slot;

	if (!e && !w->n)
		return;
	if ((w->n + 1) * 2 > w->cap) {
		struct mem_words old = *w;

		w->cap = old.cap ? old.cap * 2 : 256;
		w->v = xcalloc(w->cap, sizeof *w->v);
		w->n = 0;
		for (size_t i = 0; i < old.cap; i++)
			if (old.v[i].e) {
				*word_find(w, old.v[i].key) = old.v[i];
				w->n++;
			}
		free(old.v);
	}
	slot = word_find(w, address / 8 + 1);
	if (!slot->key) {
		if (!e)
			return;
		slot->key = address / 8 + 1;
		w->n++;
	}
	slot->e = e;
}

/* ---- life ---- */

struct shadow *shadow_new(struct mach *m, struct expr_pool *pool,
			  const struct shadow_hooks *hooks)
{
	struct shadow *s = xcalloc(1, sizeof *s);

	s->m = m;
	s->pool = pool;
	s->hooks = *hooks;
	s->words = xcalloc(1, sizeof *s->words);
	if (pool) {
		s->slots = mmap(NULL, SLOT_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (s->slots == MAP_FAILED)
			s->slots = NULL;
	}
	m->shadow = s;
	m->slots = s->slots;
	return s;
}

void shadow_sleep(struct shadow *s)
{
	s->m->slots = NULL;
}

void shadow_wake(struct shadow *s)
{
	s->m->slots = s->slots;
}

void shadow_free(struct shadow *s)
{
	if (!s)
		return;
	s->m->shadow = NULL;
	s->m->slots = NULL;
	if (s->slots)
		munmap(s->slots, SLOT_BYTES);
	free(s->words->v);
	free(s->words);
	vec_free(&s->depth);
	free(s);
}

struct shadow_cpu {
	uint32_t slots[STATE_SLOTS];
};

struct shadow_cpu *shadow_cpu_new(void)
{
	return xcalloc(1, sizeof(struct shadow_cpu));
}

void shadow_cpu_free(struct shadow_cpu *c)
{
	free(c);
}

void shadow_cpu_store(struct shadow *s, struct shadow_cpu *c)
{
	if (s->slots)
		memcpy(c->slots, s->slots, sizeof c->slots);
}

void shadow_cpu_load(struct shadow *s, const struct shadow_cpu *c)
{
	if (s->slots)
		memcpy(s->slots, c->slots, sizeof c->slots);
}

/* ---- values ---- */

static uint64_t concrete_at(struct mach *m, uint32_t offset, unsigned bits)
{
	uint64_t v;

	memcpy(&v, mach_at(m, offset), 8);
	return bits >= 64 ? v : v & ((1ull << (bits ? bits : 1)) - 1);
}

static expr_id as_bits(struct shadow *s, expr_id e, unsigned bits)
{
	unsigned width = expr_get(s->pool, e)->width;

	if (width == EXPR_BOOL)
		return expr_ite(s->pool, e, expr_const(s->pool, bits, 1),
				expr_const(s->pool, bits, 0));
	if (width > bits)
		return expr_extract(s->pool, e, 0, bits);
	return width < bits ? expr_extend(s->pool, false, e, bits) : e;
}

expr_id shadow_as_bool(struct mach *m, expr_id e)
{
	struct expr_pool *p = m->shadow->pool;

	if (!e || expr_get(p, e)->width == EXPR_BOOL)
		return e;
	return expr_binary(p, EX_EQ, expr_extract(p, e, 0, 1), expr_const(p, 1, 1));
}

/* What a level adds: solvers take multiplications and divisions of unknowns badly. */
static unsigned cost_of(struct shadow *s, const struct expr *x)
{
	switch (x->op) {
	case EX_MUL:
		return expr_get(s->pool, x->a)->concrete || expr_get(s->pool, x->b)->concrete ? 4 : 32;
	case EX_UDIV:
	case EX_UREM:
	case EX_SDIV:
	case EX_SREM:
		return 32;
	default:
		return 1;
	}
}

static unsigned depth_of(struct shadow *s, expr_id e)
{
	const struct expr *x;
	unsigned d = 0, below[3];

	if (!e)
		return 0;
	while (s->depth.n <= e)
		vec_push(&s->depth, 0);
	if (s->depth.v[e])
		return s->depth.v[e];
	x = expr_get(s->pool, e);
	below[0] = x->op == EX_CONST || x->op == EX_SYMBOL ? 0 : depth_of(s, x->a);
	below[1] = depth_of(s, x->b);
	below[2] = depth_of(s, x->c);
	for (int i = 0; i < 3; i++)
		d = below[i] > d ? below[i] : d;
	d += cost_of(s, x);
	return s->depth.v[e] = (uint16_t)(d < UINT16_MAX ? d : UINT16_MAX);
}

/* Makes a slot concrete whose expression has become too deep. */
static bool too_deep(struct mach *m, uint32_t offset, expr_id e)
{
	unsigned width;

	if (depth_of(m->shadow, e) <= MAX_DEPTH && m->shadow->deep < MOST_DEEP)
		return false;
	m->shadow->deep++;
	width = expr_get(m->shadow->pool, e)->width;
	shadow_concretize(m, m->now ? m->now->pc : 0, e,
			  concrete_at(m, offset - offset % 8, width ? width : 1), "a long computation");
	m->slots[offset / 8] = EXPR_NONE;
	return true;
}

void shadow_fresh(struct mach *m)
{
	m->shadow->deep = 0;
}

expr_id shadow_expr(struct mach *m, uint32_t offset, unsigned bits)
{
	struct shadow *s = m->shadow;
	expr_id e = m->slots[offset / 8];

	if (!e || too_deep(m, offset, e))
		return EXPR_NONE;
	if (offset < MACH_REGS_SIZE && offset % 8)
		e = expr_extract(s->pool, e, offset % 8 * 8, 64 - offset % 8 * 8);
	return bits == 1 ? shadow_as_bool(m, e) : as_bits(s, e, bits);
}

expr_id shadow_expr_or_const(struct mach *m, uint32_t offset, unsigned bits)
{
	expr_id e = shadow_expr(m, offset, bits);

	if (e)
		return e;
	if (bits == 1)
		return expr_bool(m->shadow->pool, concrete_at(m, offset, 1));
	return expr_const(m->shadow->pool, bits, concrete_at(m, offset, bits));
}

static expr_id symbolic_only(struct shadow *s, expr_id e)
{
	return e && !expr_get(s->pool, e)->concrete ? e : EXPR_NONE;
}

void shadow_set(struct mach *m, uint32_t offset, expr_id e)
{
	m->slots[offset / 8] = symbolic_only(m->shadow, e);
}

/* whole with bits [low, low + width) replaced */
static expr_id replace(struct shadow *s, expr_id whole, unsigned low, unsigned width, expr_id part)
{
	struct expr_pool *p = s->pool;

	if (low)
		part = expr_binary(p, EX_CONCAT, part, expr_extract(p, whole, 0, low));
	if (low + width < 64)
		part = expr_binary(p, EX_CONCAT,
				   expr_extract(p, whole, low + width, 64 - low - width), part);
	return part;
}

void shadow_set_register(struct mach *m, uint32_t offset, unsigned size, expr_id e,
			 uint64_t value)
{
	struct shadow *s = m->shadow;
	uint32_t slot = offset / 8, low = offset % 8 * 8;
	expr_id old = m->slots[slot];

	if (size == 8 && !low) {
		m->slots[slot] = symbolic_only(s, e);
		return;
	}
	if (!e && !old)
		return;
	if (!old)
		old = expr_const(s->pool, 64, concrete_at(m, slot * 8, 64));
	if (!e)
		e = expr_const(s->pool, 8 * size, value);
	m->slots[slot] = symbolic_only(s, replace(s, old, low, 8 * size, e));
}

void shadow_forget(struct mach *m, uint32_t offset, unsigned size)
{
	if (m->slots)
		memset(&m->slots[offset / 8], 0, (size + 7) / 8 * sizeof *m->slots);
}

void shadow_forget_vectors(struct mach *m)
{
	shadow_forget(m, MACH_OFF(YMM0), 16 * 32);
	shadow_forget(m, MACH_WIDE(upper), sizeof(struct mach_wide));
}

/* ---- memory ---- */

expr_id shadow_memory(struct mach *m, uint64_t address, unsigned size, uint64_t value)
{
	struct shadow *s = m->shadow;
	unsigned low = address % 8, in_first = 8 - low < size ? 8 - low : size;
	expr_id first, second, lo, hi;

	if (!s->pool || !s->words->n)
		return EXPR_NONE;
	first = word_get(s->words, address);
	second = in_first < size ? word_get(s->words, address + 8) : EXPR_NONE;
	if (!first && !second)
		return EXPR_NONE;
	lo = first ? expr_extract(s->pool, first, low * 8, in_first * 8) :
		     expr_const(s->pool, in_first * 8, value);
	if (in_first == size)
		return symbolic_only(s, lo);
	hi = second ? expr_extract(s->pool, second, 0, (size - in_first) * 8) :
		      expr_const(s->pool, (size - in_first) * 8, value >> in_first * 8);
	return symbolic_only(s, expr_binary(s->pool, EX_CONCAT, hi, lo));
}

/* value: what is stored, when memory does not hold it yet; NULL: it does. */
static void set_word_part(struct mach *m, uint64_t word, unsigned low, unsigned size, expr_id e,
			  const uint64_t *value)
{
	struct shadow *s = m->shadow;
	expr_id old = word_get(s->words, word);
	uint64_t bytes = 0;

	if (!e && !old)
		return;
	if (size == 8) {
		word_set(s->words, word, e);
		return;
	}
	mem_peek(m->mem, word, &bytes, 8);
	if (!old)
		old = expr_const(s->pool, 64, bytes);
	if (!e)
		e = expr_const(s->pool, 8 * size, value ? *value : bytes >> low * 8);
	word_set(s->words, word, symbolic_only(s, replace(s, old, low * 8, size * 8, e)));
}

void shadow_set_memory(struct mach *m, uint64_t address, unsigned size, expr_id e,
		       const uint64_t *value)
{
	struct shadow *s = m->shadow;
	unsigned low = address % 8, in_first = 8 - low < size ? 8 - low : size;
	uint64_t rest = value && in_first < 8 ? *value >> in_first * 8 : 0;

	if (!s->pool || (!e && !s->words->n))
		return;
	set_word_part(m, address - low, low, in_first,
		      e ? expr_extract(s->pool, e, 0, in_first * 8) : EXPR_NONE, value);
	if (in_first < size)
		set_word_part(m, address - low + 8, 0, size - in_first,
			      e ? expr_extract(s->pool, e, in_first * 8, (size - in_first) * 8) :
				  EXPR_NONE,
			      value ? &rest : NULL);
}

void shadow_forget_memory(struct mach *m, uint64_t address, uint64_t size)
{
	if (!m->shadow || !m->shadow->pool || !m->shadow->words->n)
		return;
	if (size / 8 > m->shadow->words->cap) { /* a whole mapping */
		struct mem_words *w = m->shadow->words;

		for (size_t i = 0; i < w->cap; i++)
			if (w->v[i].e && (w->v[i].key - 1) * 8 - address < size)
				w->v[i].e = EXPR_NONE;
		return;
	}
	while (size) {
		unsigned part = 8 - address % 8 < size ? 8 - address % 8 : (unsigned)size;

		shadow_set_memory(m, address, part, EXPR_NONE, NULL);
		address += part;
		size -= part;
	}
}

/* ---- making concrete ---- */

void shadow_concretize(struct mach *m, uint64_t pc, expr_id e, uint64_t value, const char *why)
{
	struct shadow *s = m->shadow;
	unsigned width;
	expr_id cond;

	if (!e || !s->hooks.concretized)
		return;
	width = expr_get(s->pool, e)->width;
	if (width == EXPR_BOOL)
		cond = value & 1 ? e : expr_unary(s->pool, EX_BNOT, e);
	else
		cond = expr_binary(s->pool, EX_EQ, e, expr_const(s->pool, width, value));
	s->hooks.concretized(s->hooks.arg, m, pc, cond, why);
}

void shadow_concretize_operand(struct mach *m, uint64_t pc, uint32_t offset, unsigned bits,
			       const char *why)
{
	expr_id e = shadow_expr(m, offset, bits);

	if (e)
		shadow_concretize(m, pc, e, concrete_at(m, offset, bits), why);
}

void shadow_address(struct mach *m, uint32_t offset, uint64_t pc)
{
	if (m->slots[offset / 8])
		shadow_concretize_operand(m, pc, offset, 64, "address");
}

void shadow_operand_address(struct mach *m, const struct operand_address *a, uint64_t pc)
{
	if (a->base)
		shadow_address(m, a->base, pc);
	if (a->index)
		shadow_address(m, a->index, pc);
}

/* ---- the stage ---- */

static unsigned piece_of(size_t n)
{
	return n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
}

void shadow_stage_load(struct mach *m, uint64_t pc, uint64_t address, const void *bytes, size_t n)
{
	struct shadow *s = m->shadow;
	const uint8_t *p = bytes;
	size_t at = 0, i = 0;

	s->staged = n;
	while (at < n) {
		unsigned piece = piece_of(n - at);
		uint64_t value = 0;
		expr_id e;

		memcpy(&value, p + at, piece);
		e = shadow_memory(m, address + at, piece, value);
		if (s->hooks.access) {
			expr_id fresh = s->hooks.access(
				s->hooks.arg, m, pc, address + at, piece,
				ACCESS_READ | (m->in_lock ? ACCESS_LOCKED : 0), value, e);

			e = fresh ? fresh : e;
		}
		if (i < SHADOW_STAGE) {
			s->stage_value[i] = value;
			s->stage[i++] = s->pool ? e : EXPR_NONE;
		}
		at += piece;
	}
}

void shadow_stage_store(struct mach *m, uint64_t pc, uint64_t address, const void *bytes, size_t n)
{
	struct shadow *s = m->shadow;
	const uint8_t *p = bytes;
	size_t at = 0, i = 0;
	bool use = s->staged == n;

	while (at < n) {
		unsigned piece = piece_of(n - at);
		expr_id e = use && i < SHADOW_STAGE ? s->stage[i] : EXPR_NONE;
		uint64_t value = 0;

		memcpy(&value, p + at, piece);
		i++;
		if (s->hooks.access)
			s->hooks.access(s->hooks.arg, m, pc, address + at, piece,
					ACCESS_WRITE | (m->in_lock ? ACCESS_LOCKED : 0), value, e);
		shadow_set_memory(m, address + at, piece, e, &value);
		at += piece;
	}
	s->staged = 0;
}

void shadow_stage_register(struct mach *m, uint32_t offset, unsigned size)
{
	struct shadow *s = m->shadow;

	if (!m->slots)
		return;
	s->stage[0] = shadow_expr(m, offset, 8 * size);
	s->stage_value[0] = concrete_at(m, offset, 8 * size);
	s->staged = size;
}

/* The stage as it was left by a load, or empty: n bytes that are about to be stored. */
void shadow_stage_begin(struct mach *m, size_t n)
{
	struct shadow *s = m->shadow;

	memset(s->stage, 0, sizeof s->stage);
	s->staged = n;
}

void shadow_stage_put(struct mach *m, size_t at, uint32_t offset)
{
	if (at / 8 < SHADOW_STAGE)
		m->shadow->stage[at / 8] = offset ? shadow_expr(m, offset, 64) : EXPR_NONE;
}

void shadow_stage_take(struct mach *m, size_t at, uint32_t offset, unsigned size)
{
	struct shadow *s = m->shadow;
	size_t i = at / 8;
	bool there = at < s->staged && i < SHADOW_STAGE;

	shadow_set_register(m, offset, size, there ? s->stage[i] : EXPR_NONE,
			    concrete_at(m, offset, 8 * size));
}

void shadow_stage_concretize_at(struct mach *m, uint64_t pc, size_t at, const char *why)
{
	struct shadow *s = m->shadow;

	if (at < s->staged && at / 8 < SHADOW_STAGE)
		shadow_concretize(m, pc, s->stage[at / 8], s->stage_value[at / 8], why);
}

void shadow_stage_concretize(struct mach *m, uint64_t pc, const char *why)
{
	struct shadow *s = m->shadow;

	for (size_t at = 0, i = 0; at < s->staged && i < SHADOW_STAGE; i++) {
		at += piece_of(s->staged - at);
		shadow_concretize(m, pc, s->stage[i], s->stage_value[i], why);
	}
	s->staged = 0;
}
