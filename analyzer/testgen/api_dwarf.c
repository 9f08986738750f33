/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the exported functions of a library and their types from ELF and DWARF. */
#include "analyzer/testgen/api.h"

#include "analyzer/testgen/api_internal.h"

#include <ctype.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TYPE_DEPTH 16 /* typedefs and qualifiers in a row: more is damaged */

/* ---- types ---- */

static bool type_of(Dwarf_Die *die, Dwarf_Die *out)
{
	Dwarf_Attribute at;

	return dwarf_attr_integrate(die, DW_AT_type, &at) && dwarf_formref_die(&at, out);
}

/* Through typedefs and qualifiers; *name: the last typedef's. */
static bool strip(Dwarf_Die *t, const char **name, bool *is_const)
{
	for (int i = 0; i < TYPE_DEPTH; i++) {
		int tag = dwarf_tag(t);
		Dwarf_Die next;

		if (tag == DW_TAG_typedef)
			*name = dwarf_diename(t);
		else if (tag == DW_TAG_const_type)
			*is_const = true;
		else if (tag != DW_TAG_volatile_type && tag != DW_TAG_restrict_type && tag != DW_TAG_atomic_type)
			return true;
		if (!type_of(t, &next))
			return false; /* void */
		*t = next;
	}
	return false;
}

static char *identifier(const char *s)
{
	char *id = xstrdup(s);

	for (char *p = id; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	return id;
}

int api_object_named(struct api *a, const char *name, bool cxx, bool typedef_only)
{
	for (size_t i = 0; i < a->objects.n; i++)
		if (!strcmp(a->objects.v[i].name, name))
			return (int)i;
	struct api_object o = { .name = xstrdup(name), .c_name = identifier(name), .cxx = cxx,
				.typedef_only = typedef_only };
	vec_push(&a->objects, o);
	return (int)a->objects.n - 1;
}

static bool is_aggregate(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* "outer::inner": namespaces and classes around a DIE, found on the way down. */
static char *scoped_name(Dwarf_Die *die, const char *name)
{
	Dwarf_Die *scopes = NULL;
	int n = dwarf_getscopes_die(die, &scopes);
	char *full = xstrdup(name);

	for (int i = 1; i < n; i++) {
		const char *outer = dwarf_diename(&scopes[i]);
		int tag = dwarf_tag(&scopes[i]);

		if (!outer || (tag != DW_TAG_namespace && !is_aggregate(tag)))
			continue;
		char *longer = xasprintf("%s::%s", outer, full);
		free(full);
		full = longer;
	}
	free(scopes);
	return full;
}

static bool die_is_cxx(Dwarf_Die *die)
{
	Dwarf_Die cu;
	int lang = dwarf_diecu(die, &cu, NULL, NULL) ? dwarf_srclang(&cu) : -1;

	return lang == DW_LANG_C_plus_plus || lang == DW_LANG_C_plus_plus_11 ||
	       lang == DW_LANG_C_plus_plus_14 || lang == DW_LANG_C_plus_plus_03;
}

static bool is_std_string(const char *name)
{
	return name && !strncmp(name, "basic_string<char, ", 19);
}

static int object_of(struct api *a, Dwarf_Die *t, const char *typedef_name)
{
	const char *tag_name = dwarf_diename(t), *name = tag_name ? tag_name : typedef_name;
	Dwarf_Word size = 0;
	Dwarf_Attribute at;

	if (!name)
		return API_NONE;
	char *full = scoped_name(t, name);
	int object = api_object_named(a, full, die_is_cxx(t), !tag_name);
	free(full);
	if (dwarf_attr_integrate(t, DW_AT_byte_size, &at) && !dwarf_formudata(&at, &size) && size < 1u << 24)
		a->objects.v[object].size = size;
	return object;
}

static void trouble(struct api_type *out, const char *what)
{
	out->kind = API_OTHER;
	free(out->trouble);
	out->trouble = xstrdup(what);
}

static void read_enumeration(Dwarf_Die *t, struct api_type *out)
{
	Dwarf_Die child;

	out->is_enum = true;
	if (dwarf_child(t, &child))
		return;
	do {
		Dwarf_Attribute at;
		Dwarf_Sword v;

		if (dwarf_tag(&child) == DW_TAG_enumerator && dwarf_attr(&child, DW_AT_const_value, &at) &&
		    !dwarf_formsdata(&at, &v) && out->values.n < 64)
			vec_push(&out->values, v);
	} while (!dwarf_siblingof(&child, &child));
}

static void read_base(Dwarf_Die *t, struct api_type *out)
{
	Dwarf_Attribute at;
	Dwarf_Word encoding = 0;
	int size = dwarf_bytesize(t);
	const char *name = dwarf_diename(t);

	if (dwarf_attr(t, DW_AT_encoding, &at))
		dwarf_formudata(&at, &encoding);
	out->size = size > 0 && size <= 16 ? (uint8_t)size : 0;
	out->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	if (encoding == DW_ATE_float && (size == 4 || size == 8)) {
		out->kind = API_FLOAT;
		out->spelling = xstrdup(size == 4 ? "float" : "double");
	} else if (encoding == DW_ATE_float || size > 8 || size < 1) {
		trouble(out, name ? name : "a number of unusual size");
	} else {
		static const char *const s[] = { "signed char", "short", "int", "long" };
		static const char *const u[] = { "unsigned char", "unsigned short", "unsigned int",
						 "unsigned long" };
		int i = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;

		out->kind = API_INT;
		out->spelling = xstrdup(encoding == DW_ATE_boolean ? "_Bool" : out->is_signed ? s[i] : u[i]);
	}
}

static void object_type(struct api *a, Dwarf_Die *t, const char *name, bool is_const, enum api_kind kind,
			struct api_type *out)
{
	int object = object_of(a, t, name);

	if (object == API_NONE) {
		trouble(out, "a pointer to a type without a name");
		return;
	}
	out->kind = kind;
	out->object = object;
	out->spelling = xasprintf("%sstruct %s *%s", is_const ? "const " : "", a->objects.v[object].c_name,
				  kind == API_OUT ? "*" : "");
}

static void read_pointer(struct api *a, Dwarf_Die *t, bool reference, struct api_type *out)
{
	Dwarf_Die to, second;
	const char *name = NULL, *inner = NULL;
	bool is_const = false, ignored = false;

	if (!type_of(t, &to) || !strip(&to, &name, &is_const)) {
		out->kind = API_BYTES;
		out->is_const = is_const;
		out->spelling = xstrdup(is_const ? "const void *" : "void *");
		return;
	}
	int tag = dwarf_tag(&to);
	out->is_const = is_const;
	if (is_aggregate(tag) && is_std_string(dwarf_diename(&to))) {
		out->kind = API_STRING;
		out->spelling = xstrdup(is_const ? "const void *" : "void *");
	} else if (is_aggregate(tag)) {
		object_type(a, &to, name, is_const, API_OBJECT, out);
	} else if (tag == DW_TAG_base_type || tag == DW_TAG_enumeration_type) {
		struct api_type base = { 0 };

		read_base(&to, &base);
		out->kind = base.size == 1 && !reference ? (base.is_signed ? API_TEXT : API_BYTES) : API_SCALAR;
		out->spelling = out->kind == API_TEXT ? xstrdup(is_const ? "const char *" : "char *") :
				xstrdup(is_const ? "const void *" : "void *");
		out->size = base.size;
		free(base.spelling);
		free(base.trouble);
	} else if (tag == DW_TAG_subroutine_type) {
		out->kind = API_FUNCTION;
		out->spelling = xstrdup("void *");
	} else if (tag == DW_TAG_pointer_type && type_of(&to, &second) && strip(&second, &inner, &ignored) &&
		   is_aggregate(dwarf_tag(&second))) {
		object_type(a, &second, inner, false, API_OUT, out);
	} else if (tag == DW_TAG_pointer_type) {
		out->kind = API_SCALAR; /* of size 0: what it holds is an address */
		out->spelling = xstrdup("void *");
	} else {
		trouble(out, "a pointer to something this program cannot make");
	}
}

void api_read_type(struct api *a, Dwarf_Die *type, struct api_type *out)
{
	Dwarf_Die t = *type;
	const char *name = NULL;

	*out = (struct api_type){ .object = API_NONE };
	if (!strip(&t, &name, &out->is_const)) {
		out->spelling = xstrdup("void");
		return;
	}
	int tag = dwarf_tag(&t);
	if (tag == DW_TAG_base_type) {
		read_base(&t, out);
	} else if (tag == DW_TAG_enumeration_type) {
		out->kind = API_INT;
		out->size = 4;
		out->is_signed = true;
		out->spelling = xstrdup("int");
		read_enumeration(&t, out);
	} else if (tag == DW_TAG_pointer_type) {
		read_pointer(a, &t, false, out);
	} else if (tag == DW_TAG_reference_type) {
		read_pointer(a, &t, true, out);
	} else if (is_aggregate(tag) && is_std_string(dwarf_diename(&t))) {
		out->kind = API_STRING;
		out->size = 32; /* by value: it is returned in memory of the caller's */
		out->spelling = xstrdup("void *");
	} else {
		trouble(out, is_aggregate(tag) ? "a structure by value" : "a type this program does not know");
	}
}

/* ---- functions ---- */

static void read_result(struct api *a, Dwarf_Die *die, struct api_type *out)
{
	Dwarf_Die t;

	if (type_of(die, &t)) {
		api_read_type(a, &t, out);
		return;
	}
	*out = (struct api_type){ .object = API_NONE };
	out->spelling = xstrdup("void");
}

void api_read_signature(struct api *a, Dwarf_Die *die, struct api_function *f)
{
	Dwarf_Die child;

	read_result(a, die, &f->result);
	if (dwarf_child(die, &child))
		return;
	do {
		int tag = dwarf_tag(&child);
		Dwarf_Die t;

		f->variadic |= tag == DW_TAG_unspecified_parameters;
		if (tag != DW_TAG_formal_parameter)
			continue;
		if (f->nparams == API_PARAMS) {
			api_leave_out(f, "it has too many parameters");
			return;
		}
		if (type_of(&child, &t))
			api_read_type(a, &t, &f->params[f->nparams++]);
	} while (!dwarf_siblingof(&child, &child));
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute at;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &at) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &at))
		return dwarf_formstring(&at);
	return dwarf_diename(die);
}

static void read_subprogram(struct api *a, Dwarf_Die *die)
{
	const char *symbol = linkage_name(die);
	Dwarf_Addr low = 0;
	Dwarf_Attribute at;
	int line = 0;
	bool placed = !dwarf_lowpc(die, &low);

	for (size_t i = 0; i < a->functions.n; i++) {
		struct api_function *f = &a->functions.v[i];

		/* Constructors of C++ have no linkage name of their own: their address says which they are. */
		if (f->result.spelling || !(placed ? f->offset == low : symbol && !strcmp(f->symbol, symbol)))
			continue;
		api_read_signature(a, die, f);
		f->cxx = die_is_cxx(die) && !strncmp(f->symbol, "_Z", 2);
		f->file = dwarf_decl_file(die) ? xstrdup(dwarf_decl_file(die)) : NULL;
		if (!dwarf_decl_line(die, &line))
			f->line = (unsigned)line;
		if (dwarf_attr_integrate(die, DW_AT_accessibility, &at)) {
			Dwarf_Word access = 0;

			if (!dwarf_formudata(&at, &access) && access != DW_ACCESS_public)
				api_leave_out(f, "it is not public");
		}
	}
}

/* Complete types have their size even where only pointers to them are passed. */
static void walk(struct api *a, Dwarf_Die *die, int depth)
{
	Dwarf_Die child;

	if (depth > 12 || dwarf_child(die, &child))
		return;
	do {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_subprogram)
			read_subprogram(a, &child);
		else if (is_aggregate(tag) && dwarf_diename(&child))
			object_of(a, &child, NULL);
		if (tag == DW_TAG_namespace || is_aggregate(tag))
			walk(a, &child, depth + 1);
	} while (!dwarf_siblingof(&child, &child));
}

static void read_units(struct api *a, Dwarf *dw)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;

	while (!dwarf_get_units(dw, cu, &cu, NULL, &type, &die, NULL)) {
		a->has_debug = true;
		if (type == DW_UT_compile || type == DW_UT_partial)
			walk(a, &die, 0);
	}
}

/* ---- the library ---- */

static void read_symbols(struct api *a, Elf *elf, Elf_Scn *scn, GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n = sh->sh_entsize ? sh->sh_size / sh->sh_entsize : 0;

	for (size_t i = 1; data && i < n; i++) {
		GElf_Sym s;
		const char *name;

		if (!gelf_getsym(data, (int)i, &s) || s.st_shndx == SHN_UNDEF || GELF_ST_TYPE(s.st_info) != STT_FUNC ||
		    GELF_ST_BIND(s.st_info) == STB_LOCAL || GELF_ST_VISIBILITY(s.st_other) == STV_HIDDEN ||
		    !(name = elf_strptr(elf, sh->sh_link, s.st_name)) || !*name)
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
static bool is_program(Elf *elf)
{
	size_t n = 0;
	bool interpreter = false, has_soname = false;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		Elf_Data *data;

		if (!gelf_getphdr(elf, (int)i, &ph))
			continue;
		interpreter |= ph.p_type == PT_INTERP;
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

static err_t read_elf(struct api *a, Elf *elf)
{
	GElf_Ehdr eh;
	Elf_Scn *scn = NULL;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh))
		return err_new(ERR_INPUT, "%s is not an ELF file; csched testgen takes a shared library", a->path);
	if (eh.e_machine == EM_X86_64 && eh.e_type == ET_EXEC)
		return err_new(ERR_NOANSWER, "%s is a program, no shared library: its functions can be called by no other program",
			       a->path);
	if (eh.e_machine != EM_X86_64 || eh.e_type != ET_DYN)
		return err_new(ERR_INPUT, "%s is not a shared library for x86-64", a->path);
	if (is_program(elf))
		return err_new(ERR_NOANSWER, "%s is a program: its functions can be called by no other program, so no test can "
			       "be made of them. Link the part in question as a shared library (-shared -fPIC -g)", a->path);
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_DYNSYM)
			read_symbols(a, elf, scn, &sh);
	}
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
		read_units(a, dw);
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
