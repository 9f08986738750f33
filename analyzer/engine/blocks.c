/* The blocks that were compiled: their memory, their constants, and the table that finds them. */
#include "analyzer/engine/compile.h"
#include "analyzer/engine/straight.h"

#include <string.h>

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	max_align_t data[];
};

void *mach_arena(struct mach *m, size_t n)
{
	struct arena_chunk *c = m->arena;
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

void mach_blocks_flush(struct mach *m)
{
	struct arena_chunk *c = m->arena, *next;

	for (; c; c = next) {
		next = c->next;
		free(c);
	}
	m->arena = NULL;
	memset(m->blocks, 0, m->blocks_cap * sizeof *m->blocks);
	memset(m->jumps, 0, sizeof m->jumps);
	m->nblocks = 0;
	m->consts = MACH_CONSTS;
	m->flush_wanted = false;
	m->flushes++;
	native_flush(m);
	straight_flush(m);
}

/* ---- places to stop at ---- */

/* The first that is not below pc. */
static size_t pcs_from(const struct mach_pcs *p, uint64_t pc)
{
	size_t lo = 0, hi = p->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->v[mid] < pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool mach_pcs_have(const struct mach_pcs *p, uint64_t pc)
{
	size_t i = pcs_from(p, pc);

	return i < p->n && p->v[i] == pc;
}

void mach_set_items(struct mach *m, const uint64_t *pcs, size_t n)
{
	m->items = (struct mach_pcs){ pcs, n };
}

static unsigned variant_of(const struct mach_block *b)
{
	return b->variant == BLOCK_STALE ? b->was : b->variant;
}

/* Out of the table and of every link; its memory comes back with the next flush. */
static void drop(struct mach *m, struct mach_block **at)
{
	(*at)->variant = BLOCK_DEAD;
	*at = (*at)->next;
	m->nblocks--;
}

/* Would it be compiled in the same way with the breakpoints as they are now? */
static bool is_still_right(const struct mach *m, const struct mach_block *b)
{
	const struct mach_op *last = &b->ops[b->nops - 1];
	bool breaks = b->end == BLOCK_STOP && last->size == STOP_BREAK;
	size_t i = pcs_from(&m->breaks, b->pc);

	if (i < m->breaks.n && m->breaks.v[i] < b->end_pc)
		return false;
	/* Whatever else it stops for, a breakpoint comes first; but for the event. */
	if (b->end != BLOCK_STOP || last->size == STOP_EVENT)
		return true;
	return breaks == mach_pcs_have(&m->breaks, b->end_pc);
}

/*
 * Drops the blocks that other breakpoints would have made otherwise. An explanation executes dozens of orders whose breakpoints are few and
 * mostly the same: compiling everything anew took longer than executing them.
 */
void mach_set_breaks(struct mach *m, const uint64_t *pcs, size_t n)
{
	m->breaks = (struct mach_pcs){ pcs, n };
	for (size_t i = 0; i < m->blocks_cap; i++)
		for (struct mach_block **at = &m->blocks[i], *b; (b = *at);) {
			if (variant_of(b) == BLOCK_BREAK && !is_still_right(m, b)) {
				drop(m, at);
			} else {
				at = &b->next;
			}
		}
}

/* ---- code that changes ---- */

/*
 * An execution that is repeated maps its libraries again where they were, and a state that is
 * restored is mostly one with the same code: few blocks are really others then, and lifting takes
 * a thousand times as long as comparing.
 */
void mach_blocks_stale(struct mach *m, uint64_t lo, uint64_t hi)
{
	for (size_t i = 0; i < m->blocks_cap; i++)
		for (struct mach_block **at = &m->blocks[i], *b; (b = *at);) {
			/* What stops it may lie behind it. */
			bool stops = b->end == BLOCK_STOP;

			if (b->pc >= hi || b->end_pc + (stops ? MAX_INSN_BYTES : 0) <= lo) {
				at = &b->next;
			} else if (stops) {
				drop(m, at);
			} else {
				b->was = (uint8_t)variant_of(b);
				b->variant = BLOCK_STALE;
				at = &b->next;
			}
		}
}

/* Is it what memory holds? Then it is as good as new. */
static bool revive(struct mach *m, struct mach_block *b)
{
	uint8_t now[MACH_MAX_INSNS * MAX_INSN_BYTES];
	size_t n = b->end_pc - b->pc;

	if (mem_fetch(m->mem, b->pc, now, n) != n || memcmp(now, b->bytes, n))
		return false;
	b->variant = b->was;
	return true;
}

/* ---- constants ---- */

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

/* ---- the table ---- */

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

void mach_block_put(struct mach *m, struct mach_block *b)
{
	if (m->nblocks >= m->blocks_cap)
		grow(m);
	size_t s = block_slot(m, b->pc);

	b->next = m->blocks[s];
	m->blocks[s] = b;
	m->nblocks++;
}

struct mach_block *mach_block_get(struct mach *m, uint64_t pc, enum block_variant variant)
{
	struct mach_block **at = m->blocks ? &m->blocks[block_slot(m, pc)] : NULL, *b;

	for (; at && (b = *at); at = &b->next) {
		if (b->pc != pc || variant_of(b) != variant)
			continue;
		if (b->variant != BLOCK_STALE || revive(m, b))
			return b;
		drop(m, at);
		break;
	}
	b = compile_block(m, pc, variant);
	mach_block_put(m, b);
	return b;
}
