/* The persistent tree under memory.h: nodes and pages with reference counts. */
#include "analyzer/engine/memory_tree.h"

#include "common/vec.h"

#include <string.h>

static unsigned slot_index(uint64_t address, int level)
{
	return (unsigned)(address >> (12 + 6 * level)) & (MEM_FANOUT - 1);
}

static uint64_t held;

uint64_t mem_held(void)
{
	return held;
}

struct mem_node *mem_node_new(void)
{
	held += sizeof(struct mem_node);
	struct mem_node *n = xcalloc(1, sizeof *n);

	n->refs = 1;
	return n;
}

struct mem_page *mem_page_new(void)
{
	struct mem_page *p = xmalloc(sizeof *p);

	held += sizeof *p;

	p->refs = 1;
	return p;
}

void mem_page_unref(struct mem_page *p)
{
	if (!p || --p->refs)
		return;
	held -= sizeof *p;
	free(p);
}

void mem_node_unref(struct mem_node *n, int level)
{
	if (!n || --n->refs)
		return;
	for (int i = 0; i < MEM_FANOUT; i++) {
		if (!n->slot[i])
			continue;
		if (level == 0)
			mem_page_unref(mem_slot_page(n->slot[i]));
		else
			mem_node_unref((struct mem_node *)n->slot[i], level - 1);
	}
	held -= sizeof *n;
	free(n);
}

uintptr_t *mem_slot_find(struct mem_node *n, uint64_t address)
{
	for (int level = MEM_LEVELS - 1; n && level > 0; level--)
		n = (struct mem_node *)n->slot[slot_index(address, level)];
	return n ? &n->slot[slot_index(address, 0)] : NULL;
}

/* *n becomes a node that only its holder refers to. */
static struct mem_node *node_own(struct mem_node **n, int level)
{
	struct mem_node *old = *n, *copy;

	if (!old)
		return *n = mem_node_new();
	if (old->refs == 1)
		return old;
	copy = xmalloc(sizeof *copy);
	held += sizeof *copy;
	*copy = *old;
	copy->refs = 1;
	for (int i = 0; i < MEM_FANOUT; i++) {
		if (!copy->slot[i])
			continue;
		if (level == 0)
			mem_slot_page(copy->slot[i])->refs++;
		else
			((struct mem_node *)copy->slot[i])->refs++;
	}
	old->refs--;
	return *n = copy;
}

uintptr_t *mem_slot_make(struct mem_node **root, uint64_t address)
{
	struct mem_node *n = node_own(root, MEM_LEVELS - 1);

	for (int level = MEM_LEVELS - 1; level > 0; level--)
		n = node_own((struct mem_node **)&n->slot[slot_index(address, level)],
			     level - 1);
	return &n->slot[slot_index(address, 0)];
}

static void walk(struct mem_node **np, int level, uint64_t base, uint64_t lo, uint64_t hi,
		 void (*cb)(void *arg, uint64_t address, uintptr_t *slot), void *arg)
{
	uint64_t span = 1ull << (12 + 6 * level);
	struct mem_node *n = node_own(np, level);

	for (int i = 0; i < MEM_FANOUT; i++) {
		uint64_t start = base + (uint64_t)i * span;

		if (!n->slot[i] || start >= hi || start + span <= lo)
			continue;
		if (level == 0)
			cb(arg, start, &n->slot[i]);
		else
			walk((struct mem_node **)&n->slot[i], level - 1, start, lo, hi, cb, arg);
	}
}

void mem_slots_in(struct mem_node **root, uint64_t lo, uint64_t hi,
		  void (*cb)(void *arg, uint64_t address, uintptr_t *slot), void *arg)
{
	if (lo < hi)
		walk(root, MEM_LEVELS - 1, 0, lo, hi, cb, arg);
}
