/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of an object: a hash of the words reachable from it. A word that points into the heap is
 * followed and stands for the order in which its block was met, so that the same structure at other
 * addresses has the same hash. Blocks are known by the allocator's size words; what is no block is data.
 */
#include "analyzer/testgen/heap_guard.h"
#include "analyzer/testgen/server.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_BLOCKS 512    /* followed; more are data: states of large structures may look alike */
#define PIECE 4096        /* bytes read at a time */
#define MAX_BLOCK 65536   /* bytes of one block that are read */

#define MAX_OBJECT (1u << 20) /* bytes of a library's own variables */

struct walk {
	uint64_t heap_start, heap_end, text_start, text_end, bias;
	uint64_t blocks[MAX_BLOCKS], sizes[MAX_BLOCKS];
	unsigned n;
	uint64_t hash;
};

static void mix(struct walk *w, uint64_t v)
{
	w->hash = (w->hash ^ v) * 1099511628211ull;
	w->hash ^= w->hash >> 29;
}

static uint64_t heap_start;

void state_prepare(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned long start, end;

	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "[heap]") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			heap_start = start;
	if (f)
		fclose(f);
}

bool state_readable(uint64_t address, void *to, size_t n)
{
	struct iovec here = { to, n }, there = { (void *)address, n };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)n;
}

/* The size of the block that begins here; 0: none does. */
static uint64_t block_size(const struct walk *w, uint64_t p)
{
	uint64_t header;

	if (heap_guard_has((void *)p))
		return heap_guard_size((void *)p) / 8 * 8 + 8;
	if (p & 15 || p < w->heap_start + 16 || p >= w->heap_end || !state_readable(p - 8, &header, 8))
		return 0;
	uint64_t size = header & ~7ull;
	/* 0x1: the block before is in use; mmapped and arena blocks lie elsewhere. */
	return size >= 32 && size <= w->heap_end - p + 16 && !(header & 6) ? size - 8 : 0;
}

/* Number of the block, from 1; 0: it is none, or there are too many. */
static unsigned block_number(struct walk *w, uint64_t p)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->blocks[i] == p)
			return i + 1;
	uint64_t size = block_size(w, p);
	if (!size || w->n == MAX_BLOCKS)
		return 0;
	w->sizes[w->n] = size > MAX_BLOCK ? MAX_BLOCK : size;
	w->blocks[w->n++] = p;
	return w->n;
}

static void add_words(struct walk *w, uint64_t at, uint64_t size)
{
	uint64_t words[PIECE / 8];

	for (uint64_t i = 0; i + 8 <= size; i += 8) {
		uint64_t left = (size - i) & ~7ull;

		if (i % PIECE == 0 && !state_readable(at + i, words, left < PIECE ? left : PIECE))
			return;
		uint64_t v = words[i % PIECE / 8];
		unsigned block = block_number(w, v);
		if (block)
			mix(w, 0xb10c000000000000ull | block);
		else if ((v >= w->heap_start && v < w->heap_end) || heap_guard_has((void *)v))
			mix(w, 0x1ea9);
		else
			mix(w, v);
	}
}

uint64_t state_hash(const struct job *j, uint64_t object, uint64_t size)
{
	static struct walk w;

	w = (struct walk){ .hash = 14695981039346656037ull, .bias = j->bias, .heap_start = heap_start,
			   .heap_end = heap_start ? (uint64_t)sbrk(0) : 0 };
	unsigned first = block_number(&w, object);
	if (!first)
		add_words(&w, object, !size ? 64 : size < MAX_OBJECT ? size : MAX_OBJECT);
	for (unsigned i = 0; i < w.n; i++)
		/* Whose the last word of a block is nobody knows, but for the object's; fresh memory holds a pattern. */
		add_words(&w, w.blocks[i], !i && first && size == w.sizes[i] ? size : w.sizes[i] - 8);
	return w.hash;
}
