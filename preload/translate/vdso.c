/*
 * vdso functions read kernel data that changes by itself. Their entry points
 * are overwritten with real system calls, whose results are recorded.
 */
#include "preload/translate/translate.h"

#include <elf.h>
#include <sys/mman.h>

uint64_t tr_auxv(uint64_t type);

struct vdso {
	uint64_t base, load;
	const Elf64_Sym *symbols;
	const char *strings;
	uint32_t count;
};

static const struct {
	const char *name; /* with or without "__vdso_" */
	uint32_t nr;
} entries[] = {
	{ "clock_gettime", SYS_clock_gettime }, { "clock_getres", SYS_clock_getres },
	{ "gettimeofday", SYS_gettimeofday },   { "time", SYS_time },
	{ "getcpu", SYS_getcpu },		{ "getrandom", 0 /* "not there": callers fall back */ },
};

/* Symbols end where the string table begins, unless a hash table tells. */
static bool find_tables(struct vdso *v)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)v->base;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(v->base + eh->e_phoff);
	const Elf64_Dyn *dyn = NULL;

	for (int i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD)
			v->load = v->base + ph[i].p_offset - ph[i].p_vaddr;
		if (ph[i].p_type == PT_DYNAMIC)
			dyn = (const Elf64_Dyn *)(v->base + ph[i].p_offset);
	}
	for (; dyn && dyn->d_tag; dyn++) {
		uint64_t at = v->load + dyn->d_un.d_ptr;

		if (dyn->d_tag == DT_SYMTAB)
			v->symbols = (const Elf64_Sym *)at;
		else if (dyn->d_tag == DT_STRTAB)
			v->strings = (const char *)at;
		else if (dyn->d_tag == DT_HASH)
			v->count = ((const uint32_t *)at)[1];
	}
	if (!v->symbols || !v->strings)
		return false;
	if (!v->count)
		v->count = (uint32_t)(((uint64_t)v->strings - (uint64_t)v->symbols) /
				      sizeof(Elf64_Sym));
	return v->count < 1000;
}

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static void patch(uint64_t at, uint32_t nr)
{
	uint8_t code[8] = { 0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3 }; /* mov eax, nr; syscall; ret */

	static const uint8_t absent[8] = { 0x48, 0xc7, 0xc0, 0xda, 0xff, 0xff, 0xff, 0xc3 };

	memcpy(code + 1, &nr, 4);
	memcpy((void *)at, nr ? code : absent, sizeof code);
}

void tr_vdso_patch(void);
void tr_vdso_patch(void)
{
	static const char prefix[] = "__vdso_";
	struct vdso v = { .base = tr_auxv(AT_SYSINFO_EHDR) };

	if (!v.base || !find_tables(&v))
		return;
	if (raw_failed(raw(SYS_mprotect, v.base, 2 * RAW_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC)) &&
	    raw_failed(raw(SYS_mprotect, v.base, RAW_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))) {
		shim_note(false, "the vdso could not be patched: clock readings are not recorded");
		return;
	}
	for (uint32_t i = 0; i < v.count; i++) {
		const char *name = v.strings + v.symbols[i].st_name;

		if (!v.symbols[i].st_value)
			continue;
		if (!memcmp(name, prefix, sizeof prefix - 1))
			name += sizeof prefix - 1;
		for (unsigned e = 0; e < sizeof entries / sizeof entries[0]; e++)
			if (same(name, entries[e].name))
				patch(v.load + v.symbols[i].st_value, entries[e].nr);
	}
	raw(SYS_mprotect, v.base, 2 * RAW_PAGE, PROT_READ | PROT_EXEC);
}
