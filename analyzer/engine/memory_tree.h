/* Inside of memory: the tree of pages. For memory.c and memory_tree.c only. */
#ifndef CSCHED_MACHINE_MEMORY_TREE_H
#define CSCHED_MACHINE_MEMORY_TREE_H

#include "analyzer/engine/memory.h"

struct mem_page {
	uint32_t refs;
	uint32_t pad[3];
	uint8_t data[MEM_PAGE];
};

#define MEM_FANOUT 64
#define MEM_LEVELS 6 /* 6 * 6 bits + 12 bits: 48-bit addresses */

/* Slots of the lowest level hold a page and its protection in the low bits
 * (pages are 16-byte aligned); of the others, a node. */
struct mem_node {
	uint32_t refs;
	uint32_t pad;
	uintptr_t slot[MEM_FANOUT];
};

#define MEM_SLOT_PROT 7u
#define MEM_SLOT_SHARED 8u /* the page of an object: several mappings may show it, each with a protection of its own */
static inline struct mem_page *mem_slot_page(uintptr_t slot)
{
	return (struct mem_page *)(slot & ~(uintptr_t)15);
}

/* Bytes in pages and nodes, of all states there are. */
uint64_t mem_held(void);
struct mem_node *mem_node_new(void);
void mem_node_unref(struct mem_node *n, int level);
struct mem_page *mem_page_new(void);
void mem_page_unref(struct mem_page *p);

/* The slot of a page, or NULL when no node reaches down to it. */
uintptr_t *mem_slot_find(struct mem_node *root, uint64_t address);
/* The same, making the nodes on the way exist and belong to this tree alone. */
uintptr_t *mem_slot_make(struct mem_node **root, uint64_t address);
/* Calls cb for each page present in [lo, hi); nodes become this tree's own. */
void mem_slots_in(struct mem_node **root, uint64_t lo, uint64_t hi,
		  void (*cb)(void *arg, uint64_t address, uintptr_t *slot), void *arg);

#endif
