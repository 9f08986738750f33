/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The allocator's caches leave freed memory as it was, so that what uses it goes on by luck. Here freed memory holds a
 * pattern, but for its first words, by which the allocator knows what was freed twice; and what is resized moves.
 */
#include "analyzer/testgen/heap.h"
#include "analyzer/testgen/heap_guard.h"

#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATTERN 0xa5
#define ITS_OWN 16  /* bytes that the allocator writes itself */
#define MOST (1u << 28)
#define PAGE 4096ull

const char heap_as_text[] =
	"\n/* Freed memory holds a pattern, and what is resized moves: its use shows each time. */\n"
	"void __libc_free(void *p);\n\n"
	"void free(void *p)\n{\n"
	"\tif (p && malloc_usable_size(p) > 16)\n"
	"\t\tmemset((char *)p + 16, 0xa5, malloc_usable_size(p) - 16);\n"
	"\t__libc_free(p);\n}\n\n"
	"void *realloc(void *p, size_t size)\n{\n"
	"\tvoid *to = size || !p ? malloc(size) : NULL;\n"
	"\tsize_t n = p ? malloc_usable_size(p) : 0;\n\n"
	"\tif (to && p)\n\t\tmemcpy(to, p, n < size ? n : size);\n"
	"\tif (to || !size)\n\t\tfree(p);\n\treturn to;\n}\n";

/* Only these two tell their blocks by where they lie. */
size_t heap_size(const void *p)
{
	return heap_guard_has(p) ? heap_guard_size(p) : p && !((uintptr_t)p & 15) ? malloc_usable_size((void *)p) : 0;
}

void *heap_malloc(size_t size)
{
	void *p = heap_guard_on() ? heap_guard_alloc(size) : NULL;

	return p ? p : malloc(size);
}

void *heap_calloc(size_t n, size_t size)
{
	void *p = heap_guard_on() && (!size || n < MOST / size) ? heap_guard_alloc(n * size) : NULL;

	return p ? memset(p, 0, n * size) : calloc(n, size);
}

char *heap_strndup(const char *s, size_t most)
{
	size_t n = strnlen(s, most);
	char *p = heap_malloc(n + 1);

	if (p) {
		memcpy(p, s, n);
		p[n] = 0;
	}
	return p;
}

char *heap_strdup(const char *s)
{
	return heap_strndup(s, strlen(s));
}

static void free_guarded(void *p)
{
	static const char said[] = "free(): double free, or no block\n";

	if (heap_guard_free(p))
		return;
	if (write(2, said, sizeof said - 1) < 0)
		abort();
	abort();
}

void heap_free(void *p)
{
	if (heap_guard_has(p)) {
		free_guarded(p);
		return;
	}
	size_t n = p && !((uintptr_t)p & 15) ? malloc_usable_size(p) : 0;

	if (n > ITS_OWN && n < MOST)
		memset((char *)p + ITS_OWN, PATTERN, n - ITS_OWN);
	/* The compiler knows that nobody reads it. */
	__asm__ volatile("" : : "r"(p) : "memory");
	free(p);
}

void *heap_realloc(void *p, size_t size)
{
	void *to = size || !p ? heap_malloc(size) : NULL;
	size_t n = p ? heap_size(p) : 0;

	if (to && p)
		memcpy(to, p, n < size ? n : size);
	if (to || !size)
		heap_free(p);
	return to;
}

uint64_t heap_ours(const char *name)
{
	static const struct { const char *name; void *by; } ours[] = {
		{ "free", (void *)heap_free }, { "realloc", (void *)heap_realloc }, { "malloc", (void *)heap_malloc },
		{ "calloc", (void *)heap_calloc }, { "strdup", (void *)heap_strdup }, { "strndup", (void *)heap_strndup },
	};

	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (!strcmp(name, ours[i].name))
			return (uint64_t)ours[i].by;
	return 0;
}

struct tables {
	const Elf64_Sym *symbols;
	const char *names;
	const Elf64_Rela *relocations[2];
	uint64_t sizes[2];
};

/* The loader has made the addresses in there absolute. */
static struct tables read_tables(const Elf64_Dyn *d)
{
	struct tables t = { 0 };

	for (; d->d_tag != DT_NULL; d++)
		switch (d->d_tag) {
		case DT_SYMTAB: t.symbols = (const Elf64_Sym *)d->d_un.d_ptr; break;
		case DT_STRTAB: t.names = (const char *)d->d_un.d_ptr; break;
		case DT_JMPREL: t.relocations[0] = (const Elf64_Rela *)d->d_un.d_ptr; break;
		case DT_PLTRELSZ: t.sizes[0] = d->d_un.d_val; break;
		case DT_RELA: t.relocations[1] = (const Elf64_Rela *)d->d_un.d_ptr; break;
		case DT_RELASZ: t.sizes[1] = d->d_un.d_val; break;
		default: break;
		}
	return t;
}

static void replace(uint64_t slot, uint64_t by)
{
	/* The slots are read-only by now. */
	if (!mprotect((void *)(slot & ~(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE))
		*(uint64_t *)slot = by;
}

static void install_in(const struct link_map *m)
{
	struct tables t = read_tables(m->l_ld);

	for (unsigned k = 0; k < 2 && t.symbols && t.names; k++)
		for (uint64_t i = 0; t.relocations[k] && i < t.sizes[k] / sizeof(Elf64_Rela); i++) {
			const Elf64_Rela *r = &t.relocations[k][i];
			uint64_t type = ELF64_R_TYPE(r->r_info);
			const char *name = t.names + t.symbols[ELF64_R_SYM(r->r_info)].st_name;

			if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
				continue;
			if (heap_ours(name))
				replace(m->l_addr + r->r_offset, heap_ours(name));
		}
}

void heap_install(void)
{
	for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next) {
		const char *slash = strrchr(m->l_name, '/'), *name = slash ? slash + 1 : m->l_name;

		/* The program itself has no name; the loader's and the C library's own blocks are theirs. */
		if (*name && strncmp(name, "ld-linux", 8) && strncmp(name, "libc.so", 7) && strncmp(name, "linux-vdso", 10))
			install_in(m);
	}
}
