/* The blocks that were compiled: their memory, their constants, and the table that finds them. */
#include "analyzer/machine/compile.h"

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

struct mach_block *mach_block_get(struct mach *m, uint64_t pc, enum block_variant variant)
{
	struct mach_block *b;
	size_t s;

	if (m->nblocks >= m->blocks_cap)
		grow(m);
	for (b = m->blocks[block_slot(m, pc)]; b; b = b->next)
		if (b->pc == pc && b->variant == variant)
			return b;
	b = compile_block(m, pc, variant);
	s = block_slot(m, pc);
	b->next = m->blocks[s];
	m->blocks[s] = b;
	m->nblocks++;
	return b;
}
