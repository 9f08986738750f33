/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the functions of a library, or of a program that is used like one, from ELF; their types come from DWARF. */
#include "analyzer/testgen/api_internal.h"

#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DF_1_PIE
#define DF_1_PIE 0x08000000
#endif

/* ---- functions ---- */

static void read_symbols(struct api *a, Elf *elf, Elf_Scn *scn, GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n = sh->sh_entsize ? sh->sh_size / sh->sh_entsize : 0;

	for (size_t i = 1; data && i < n; i++) {
		GElf_Sym s;
		const char *name;

		if (!gelf_getsym(data, (int)i, &s) || s.st_shndx == SHN_UNDEF || GELF_ST_TYPE(s.st_info) != STT_FUNC ||
		    !(name = elf_strptr(elf, sh->sh_link, s.st_name)) || !*name)
			continue;
		/* A test calls a program's functions by their addresses: also those it keeps to itself. */
		if (!a->program && (GELF_ST_BIND(s.st_info) == STB_LOCAL || GELF_ST_VISIBILITY(s.st_other) == STV_HIDDEN))
			continue;
		struct api_function f = { .symbol = xstrdup(name), .name = api_demangle(name),
					  .offset = s.st_value, .size = s.st_size, .object = API_NONE };
		vec_push(&a->functions, f);
	}
}

static int by_symbol(const void *x, const void *y)
{
	const struct api_function *f = x, *g = y;

	return strcmp(f->symbol, g->symbol);
}

/* Shared libraries name no interpreter; the few that do (libc.so) say that they are no program. */
static bool is_program(Elf *elf, bool *has_tls)
{
	size_t n = 0;
	bool interpreter = false, has_soname = false;

	*has_tls = false;
	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		Elf_Data *data;

		if (!gelf_getphdr(elf, (int)i, &ph))
			continue;
		interpreter |= ph.p_type == PT_INTERP;
		*has_tls |= ph.p_type == PT_TLS;
		if (ph.p_type != PT_DYNAMIC ||
		    !(data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_DYN)))
			continue;
		for (size_t k = 0; k < data->d_size / sizeof(Elf64_Dyn); k++) {
			GElf_Dyn dyn;

			if (gelf_getdyn(data, (int)k, &dyn))
				has_soname |= dyn.d_tag == DT_SONAME;
		}
	}
	return interpreter && !has_soname;
}

/* What keeps a program's functions from being called by another one. */
static err_t check_program(struct api *a, bool fixed, bool has_tls)
{
	const char *rest = "Link the part in question as a shared library (-shared -fPIC -g)";

	a->program = true;
	free(a->module);
	a->module = xasprintf("%s.so", a->soname);
	if (fixed)
		return err_new(ERR_NOANSWER, "%s is a program that is linked to fixed addresses, so no other program can call its "
			       "functions. Link it with -pie, or: %s", a->path, rest);
	if (has_tls)
		return err_new(ERR_NOANSWER, "%s is a program with thread-local variables, which are found in the program itself "
			       "only: no other program can call its functions. %s", a->path, rest);
	return NULL;
}

/* The tables of functions: what a library exports; of a program all that it has. */
static void read_tables(struct api *a, Elf *elf)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh) && sh.sh_type == (a->program ? SHT_SYMTAB : SHT_DYNSYM))
			read_symbols(a, elf, scn, &sh);
	}
}

static err_t read_elf(struct api *a, Elf *elf)
{
	GElf_Ehdr eh;
	bool has_tls;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh))
		return err_new(ERR_INPUT, "%s is not an ELF file; csched testgen takes a shared library", a->path);
	if (eh.e_machine != EM_X86_64 || (eh.e_type != ET_DYN && eh.e_type != ET_EXEC))
		return err_new(ERR_INPUT, "%s is not a shared library for x86-64", a->path);
	if (is_program(elf, &has_tls) || eh.e_type == ET_EXEC)
		TRY(check_program(a, eh.e_type == ET_EXEC, has_tls));
	read_tables(a, elf);
	if (!a->functions.n && a->program)
		return err_new(ERR_NOANSWER, "%s is a program without a table of its functions: it was stripped", a->path);
	if (!a->functions.n)
		return err_new(ERR_NOANSWER, "%s exports no function", a->path);
	qsort(a->functions.v, a->functions.n, sizeof *a->functions.v, by_symbol);
	return NULL;
}

static err_t read_file(struct api *a, int fd, const char *header)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	err_t e = elf ? read_elf(a, elf) : err_new(ERR_INPUT, "%s: %s", a->path, elf_errmsg(-1));

	if (e) {
		elf_end(elf);
		return e;
	}
	Dwarf *dw = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (dw)
		api_read_units(a, dw);
	api_read_constants(a, elf);
	dwarf_end(dw);
	elf_end(elf);
	return header ? api_read_header(a, header) : NULL;
}

err_t api_read(const char *library, const char *header, struct api **out)
{
	char full[PATH_MAX];

	if (!realpath(library, full))
		return err_errno("%s", library);
	int fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno("%s", full);
	struct api *a = xcalloc(1, sizeof *a);
	elf_version(EV_CURRENT);
	a->path = xstrdup(full);
	a->soname = xstrdup(strrchr(full, '/') + 1);
	a->module = xstrdup(a->soname);
	err_t e = read_file(a, fd, header);
	close(fd);
	if (!e && !a->has_debug && !header)
		e = err_new(ERR_NOANSWER, "%s has no debug information, so nothing is known about its functions' "
			    "parameters: build it with -g, or name its header with --header", a->path);
	if (e) {
		api_free(a);
		return e;
	}
	api_assign_roles(a);
	*out = a;
	return NULL;
}

/* ---- programs ---- */

/* Clears the mark by which the loader knows a program. */
static bool clear_mark(int fd)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	Elf64_Dyn dyn;

	if (pread(fd, &eh, sizeof eh, 0) != sizeof eh || eh.e_phentsize != sizeof ph)
		return false;
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		if (pread(fd, &ph, sizeof ph, (off_t)(eh.e_phoff + i * sizeof ph)) != sizeof ph)
			return false;
		for (uint64_t at = 0; ph.p_type == PT_DYNAMIC && at + sizeof dyn <= ph.p_filesz; at += sizeof dyn) {
			off_t where = (off_t)(ph.p_offset + at);

			if (pread(fd, &dyn, sizeof dyn, where) != sizeof dyn)
				return false;
			if (dyn.d_tag != DT_FLAGS_1)
				continue;
			dyn.d_un.d_val &= ~(uint64_t)DF_1_PIE;
			if (pwrite(fd, &dyn, sizeof dyn, where) != sizeof dyn)
				return false;
		}
	}
	return true;
}

err_t api_copy_program(const struct api *a, const char *dir, char **path)
{
	char part[65536];
	ssize_t n = 0;

	*path = xasprintf("%s/%s", dir, a->module);
	int from = open(a->path, O_RDONLY | O_CLOEXEC), to = open(*path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	bool good = from >= 0 && to >= 0;

	while (good && (n = read(from, part, sizeof part)) > 0)
		good = write(to, part, (size_t)n) == n;
	good = good && !n && clear_mark(to);
	err_t e = good ? NULL : err_errno("%s cannot be copied to %s", a->path, *path);
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return e;
}
