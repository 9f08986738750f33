/*
 * Memory of the machine: 48-bit addresses, pages of 4 KiB, copy on write.
 *
 * A state of memory is a tree of reference-counted nodes over reference-
 * counted pages, and a list of mappings. Saving it takes a reference to the
 * root: constant time; afterwards the first write to a page copies that page
 * and the nodes above it. Only pages that were touched exist.
 *
 * Loads and stores go through two small translation buffers (one for reading,
 * one for writing); mem_load8() .. in memory_inline.h are the fast paths. What
 * is not there takes the slow path, which checks mappings and protection,
 * fetches file contents and notices writes to translated code. An access that
 * is not allowed returns false: the machine turns that into a fault.
 */
#ifndef CSCHED_MACHINE_MEMORY_H
#define CSCHED_MACHINE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEM_PAGE 4096u
#define MEM_TOP (1ull << 47) /* user space ends here */
#define MEM_TLB 512u

enum mem_prot { MEM_R = 1, MEM_W = 2, MEM_X = 4 }; /* as PROT_* */

/* An empty entry's tag is a page that belongs into another entry: no address,
 * canonical or not, can match it. */
struct mem_tlb {
	uint64_t tag; /* page address */
	uint8_t *host;
};

struct mem_map {
	uint64_t start, end; /* page-aligned, not empty */
	uint8_t prot;
	bool file; /* untouched pages come from fill(), not zero */
	uint64_t alias; /* where the pages are kept, beyond MEM_TOP: those of other mappings of the same memory, too. 0: here */
};

/* Addresses [lo, hi) that somebody wants to know of. */
struct mem_watch {
	uint64_t lo, hi;
	bool reads, writes;
};

struct mem_node;
struct mem_page;

struct mem_maps {
	uint32_t refs;
	size_t n, cap;
	struct mem_map *v; /* sorted, disjoint */
};

/* A saved state; release with mem_image_free(). */
struct mem_image {
	struct mem_node *root;
	struct mem_maps *maps;
	uint64_t code_epoch;
};

/*
 * Bytes that all pages and their tree may take, copies in checkpoints included: what the machine gives
 * a program, whatever addresses its trace says it wrote to. Less where that is more than half of the
 * computer's memory, or of the address space we may have (ulimit -v).
 */
#define MEM_MOST (8ull << 30)

struct mem {
	struct mem_tlb read[MEM_TLB];
	struct mem_tlb write[MEM_TLB];
	struct mem_node *root;
	struct mem_maps *maps;
	/* Contents of an untouched page of a file mapping; false: not to be had,
	 * the access is refused. */
	bool (*fill)(void *arg, uint64_t page, uint8_t *bytes);
	void *fill_arg;
	/* Called before bytes that may be translated code change. */
	void (*code_changed)(void *arg, uint64_t lo, uint64_t hi);
	void *code_arg;
	uint64_t code_epoch;  /* which code it is: a new number after each such change ... */
	uint64_t code_epochs; /* ... the last that was given */
	uint64_t *code_pages; /* open hash of pages with translated code */
	size_t ncode, code_cap;
	uint64_t fault;       /* address of the last refused access */
	uint64_t refused;     /* see mem_refuse(); MEM_NOTHING: none */
	const struct mem_watch *watched; /* the caller's: see mem_watch() */
	size_t nwatched;
	struct mem_tlb watched_read, watched_write; /* the page with something watched that was accessed last; host NULL: none */
	bool touched;         /* one of them was, since this was last made false */
	uint64_t most;        /* MEM_MOST, or less */
	bool exhausted;       /* an access was refused because of that */
};

/* To be told when m->exhausted. */
void mem_say_exhausted(const struct mem *m, char *buf, size_t n);

struct mem *mem_new(void);
void mem_free(struct mem *m);

void mem_save(struct mem *m, struct mem_image *out);
void mem_restore(struct mem *m, const struct mem_image *image);
void mem_image_free(struct mem_image *image);

/*
 * Accesses to these are noticed in m->touched, at no cost for those to other pages: the pages they lie in
 * are kept out of the translation buffers that generated code looks into. n 0: none are watched any more.
 */
void mem_watch(struct mem *m, const struct mem_watch *v, size_t n);

/* Addresses are rounded outwards to pages; ranges beyond MEM_TOP are refused. */
bool mem_map(struct mem *m, uint64_t start, uint64_t end, unsigned prot, bool file);
/*
 * A mapping of memory that may be mapped elsewhere, too: each such memory has MEM_OBJECT bytes of addresses from
 * MEM_TOP on, of which `at` is one. What is there stays there when the mapping goes away.
 */
#define MEM_OBJECT (1ull << 36)
#define MEM_OBJECTS (MEM_TOP / MEM_OBJECT)
bool mem_map_shared(struct mem *m, uint64_t start, uint64_t end, unsigned prot, uint64_t at);
void mem_unmap(struct mem *m, uint64_t start, uint64_t end);
/* Accesses to this page are refused, whatever its mapping allows, until the next call; MEM_NOTHING: none are. */
#define MEM_NOTHING UINT64_MAX
void mem_refuse(struct mem *m, uint64_t address);
void mem_protect(struct mem *m, uint64_t start, uint64_t end, unsigned prot);
/* Contents become zero (or the file's) again: MADV_DONTNEED. */
void mem_discard(struct mem *m, uint64_t start, uint64_t end);
bool mem_move(struct mem *m, uint64_t from, uint64_t from_size, uint64_t to, uint64_t to_size);
bool mem_overlaps(const struct mem *m, uint64_t lo, uint64_t hi); /* anything mapped there? */
const struct mem_map *mem_find(const struct mem *m, uint64_t address);

/* With protection; all or nothing. On refusal m->fault is the address. */
bool mem_load(struct mem *m, uint64_t address, void *buf, size_t n);
bool mem_store(struct mem *m, uint64_t address, const void *buf, size_t n);
/* Would a store there be allowed? */
bool mem_writable(struct mem *m, uint64_t address, size_t n);
/* Without protection: the kernel's and the reader's view. */
bool mem_peek(struct mem *m, uint64_t address, void *buf, size_t n);
bool mem_poke(struct mem *m, uint64_t address, const void *buf, size_t n);

/* Up to n executable bytes; returns how many. Marks their pages as code. */
size_t mem_fetch(struct mem *m, uint64_t address, void *buf, size_t n);
/* Nothing could be fetched here, and code was made accordingly: what is mapped here changes it. */
void mem_code_ends(struct mem *m, uint64_t address);
/* The host address of a page for reading; NULL: not mapped. */
const uint8_t *mem_page_for_read(struct mem *m, uint64_t address);

#endif
