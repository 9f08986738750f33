/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An allocator that shows each wrong access at once, as AddressSanitizer does, but without the compiler: a block ends where a
 * page ends that nobody may touch, and what is freed is never given out again and may not be touched.
 */
#include "analyzer/testgen/heap_guard.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE 4096ull
#define PAGES 65536u   /* of all blocks and what is behind them: 256 MB of addresses */
#define ALIGNMENT 16u  /* malloc()'s: so many bytes, at most, a block may be overrun unseen */
#define FRESH 0x5a     /* what M_PERTURB makes of fresh memory */

static unsigned char *arena;
static unsigned next;                   /* page */
static struct { uint32_t size, pages; bool used, freed; } blocks[PAGES]; /* by their first page */

bool heap_guard_begin(void)
{
	void *at = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	arena = at == MAP_FAILED ? NULL : at;
	return arena != NULL;
}

bool heap_guard_on(void)
{
	return arena != NULL;
}

void *heap_guard_alloc(size_t size)
{
	size_t n = (size ? size : 1) + ALIGNMENT - 1;
	unsigned page;

	n -= n % ALIGNMENT;
	if (n > PAGES * PAGE / 4)
		return NULL;
	unsigned pages = (unsigned)((n + PAGE - 1) / PAGE);
	page = __atomic_fetch_add(&next, pages + 1, __ATOMIC_RELAXED);
	if (page >= PAGES - pages - 1 || mprotect(arena + page * PAGE, pages * PAGE, PROT_READ | PROT_WRITE))
		return NULL;
	blocks[page].size = (uint32_t)size;
	blocks[page].pages = pages;
	blocks[page].used = true;
	unsigned char *p = arena + (page + pages) * PAGE - n;
	memset(p, FRESH, n);
	return p;
}

bool heap_guard_has(const void *p)
{
	return arena && (const unsigned char *)p >= arena && (const unsigned char *)p < arena + PAGES * PAGE;
}

static unsigned page_of(const void *p)
{
	return (unsigned)(((const unsigned char *)p - arena) / (long)PAGE);
}

static const unsigned char *start_of(unsigned page)
{
	size_t n = (blocks[page].size ? blocks[page].size : 1) + ALIGNMENT - 1;

	return arena + (page + blocks[page].pages) * PAGE - (n - n % ALIGNMENT);
}

size_t heap_guard_size(const void *p)
{
	unsigned page = heap_guard_has(p) ? page_of(p) : 0;

	return heap_guard_has(p) && blocks[page].used && !blocks[page].freed && start_of(page) == p ? blocks[page].size : 0;
}

bool heap_guard_free(void *p)
{
	unsigned page = page_of(p);

	if (!blocks[page].used || start_of(page) != p || __atomic_exchange_n(&blocks[page].freed, true, __ATOMIC_SEQ_CST))
		return false;
	mprotect(arena + page * PAGE, blocks[page].pages * PAGE, PROT_NONE);
	return true;
}

enum heap_misuse heap_guard_misuse(uint64_t address)
{
	if (!heap_guard_has((void *)address))
		return HEAP_FINE;
	unsigned page = page_of((void *)address);
	unsigned first = page;
	while (first && !blocks[first].used)
		first--;
	if (!blocks[first].used)
		return HEAP_FINE;
	return page < first + blocks[first].pages ? (blocks[first].freed ? HEAP_FREED : HEAP_FINE) : HEAP_OVERRUN;
}

const char heap_guard_as_text[] =
	"\n/*\n * Each block ends where a page ends that nobody may touch, and what is freed may not be touched again: a wrong access\n"
	" * shows where it is made.\n */\n"
	"#define PAGES 65536u\n"
	"static struct block { size_t size, pages; int freed; } blocks[PAGES]; /* by their first page */\n"
	"static unsigned char *arena;\nstatic unsigned next_page;\n\n"
	"static size_t rounded(size_t size)\n{\n\treturn ((size ? size : 1) + 15) / 16 * 16;\n}\n\n"
	"void *malloc(size_t size)\n{\n"
	"\tsize_t pages = (rounded(size) + 4095) / 4096;\n"
	"\tunsigned page = __atomic_fetch_add(&next_page, pages + 1, __ATOMIC_RELAXED);\n\n"
	"\tif (!arena)\n\t\tarena = mmap(NULL, PAGES * 4096ul, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);\n"
	"\tif (page + pages + 1 > PAGES || mprotect(arena + page * 4096ul, pages * 4096, PROT_READ | PROT_WRITE))\n\t\treturn NULL;\n"
	"\tblocks[page] = (struct block){ size, pages, 0 };\n"
	"\treturn memset(arena + (page + pages) * 4096ul - rounded(size), 0x5a, rounded(size));\n}\n\n"
	"static struct block *block_of(void *p)\n{\n"
	"\tstruct block *b = &blocks[((unsigned char *)p - arena) / 4096];\n\n"
	"\tif (b->freed || (unsigned char *)p != arena + (size_t)(b - blocks + (long)b->pages) * 4096 - rounded(b->size))\n"
	"\t\tabort(); /* freed twice, or no block */\n\treturn b;\n}\n\n"
	"void free(void *p)\n{\n"
	"\tif (!p || (size_t)((unsigned char *)p - arena) >= PAGES * 4096ul)\n\t\treturn; /* nothing, or the loader's */\n"
	"\tstruct block *b = block_of(p);\n\tb->freed = 1;\n"
	"\tmprotect(arena + (b - blocks) * 4096ul, b->pages * 4096, PROT_NONE);\n}\n\n"
	"void *calloc(size_t n, size_t size)\n{\n\tvoid *p = malloc(n * size);\n\n\treturn p ? memset(p, 0, n * size) : NULL;\n}\n\n"
	"void *realloc(void *p, size_t size)\n{\n"
	"\tvoid *to = size || !p ? malloc(size) : NULL;\n\tsize_t n = p ? block_of(p)->size : 0;\n\n"
	"\tif (to && p)\n\t\tmemcpy(to, p, n < size ? n : size);\n\tif (to || !size)\n\t\tfree(p);\n\treturn to;\n}\n\n"
	"int posix_memalign(void **to, size_t alignment, size_t size)\n{\n"
	"\tsize = (size + alignment - 1) / alignment * alignment;\n\t*to = malloc(size);\n\treturn 0;\n}\n\n"
	"void *aligned_alloc(size_t alignment, size_t size)\n{\n\tvoid *p;\n\n\tposix_memalign(&p, alignment, size);\n\treturn p;\n}\n";
