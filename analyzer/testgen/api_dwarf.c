/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the types of a library's functions from DWARF. */
#include "analyzer/testgen/api.h"

#include "analyzer/testgen/api_internal.h"

#include <ctype.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#define TYPE_DEPTH 16 /* typedefs and qualifiers in a row: more is damaged */

/* ---- types ---- */

bool api_type_of(Dwarf_Die *die, Dwarf_Die *out)
{
	Dwarf_Attribute at;

	return dwarf_attr_integrate(die, DW_AT_type, &at) && dwarf_formref_die(&at, out);
}

/* Through typedefs and qualifiers; *name: the last typedef's. */
bool api_strip(Dwarf_Die *t, const char **name, bool *is_const)
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
		if (!api_type_of(t, &next))
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
	char *id = identifier(name);
	struct api_object o = { .name = xstrdup(name), .cxx = cxx, .typedef_only = typedef_only };

	/* A test of the C library includes headers that declare its structures themselves. */
	o.c_name = strncmp(a->soname, "libc.so", 7) ? xstrdup(id) : xasprintf("its_%s", id);
	free(id);
	vec_push(&a->objects, o);
	return (int)a->objects.n - 1;
}

bool api_is_aggregate(int tag)
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

		if (!outer || (tag != DW_TAG_namespace && !api_is_aggregate(tag)))
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
	       lang == DW_LANG_C_plus_plus_14 || lang == DW_LANG_C_plus_plus_03 ||
	       lang == 0x2b || lang == 0x2c; /* C++17, C++20: not in every <dwarf.h> */
}

static bool is_std_string(const char *name)
{
	return name && !strncmp(name, "basic_string<char, ", 19);
}

/* Another name of the type. */
static void add_alias(struct api_object *o, const char *name)
{
	if (!name || !strcmp(o->name, name))
		return;
	for (size_t i = 0; i < o->aliases.n; i++)
		if (!strcmp(o->aliases.v[i], name))
			return;
	vec_push(&o->aliases, xstrdup(name));
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
	add_alias(&a->objects.v[object], typedef_name);
	if (dwarf_attr_integrate(t, DW_AT_byte_size, &at) && !dwarf_formudata(&at, &size) && size < 1u << 24) {
		a->objects.v[object].size = size;
		if (!a->objects.v[object].read)
			api_read_fields(t, &a->objects.v[object]);
	}
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

	if (!api_type_of(t, &to) || !api_strip(&to, &name, &is_const)) {
		out->kind = API_BYTES;
		out->is_const = is_const;
		out->spelling = xstrdup(is_const ? "const void *" : "void *");
		return;
	}
	int tag = dwarf_tag(&to);
	out->is_const = is_const;
	if (api_is_aggregate(tag) && is_std_string(dwarf_diename(&to))) {
		out->kind = API_STRING;
		out->spelling = xstrdup(is_const ? "const void *" : "void *");
	} else if (api_is_aggregate(tag)) {
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
	} else if (tag == DW_TAG_pointer_type && api_type_of(&to, &second) && api_strip(&second, &inner, &ignored) &&
		   api_is_aggregate(dwarf_tag(&second))) {
		object_type(a, &second, inner, false, API_OUT, out);
	} else if (tag == DW_TAG_pointer_type) {
		out->kind = API_SCALAR; /* of size 0: what it holds is an address */
		out->spelling = xstrdup("void *");
	} else {
		trouble(out, "a pointer to something this program cannot make");
	}
}

/* What a smart pointer holds: its first template argument. */
static bool smart_target(Dwarf_Die *t, Dwarf_Die *to)
{
	const char *name = dwarf_diename(t);
	Dwarf_Die child;

	if (!name || (strncmp(name, "unique_ptr<", 11) && strncmp(name, "shared_ptr<", 11)) || dwarf_child(t, &child))
		return false;
	do {
		if (dwarf_tag(&child) == DW_TAG_template_type_parameter)
			return api_type_of(&child, to);
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

static void read_aggregate(struct api *a, Dwarf_Die *t, const char *name, struct api_type *out)
{
	Dwarf_Die to;
	const char *inner = NULL;
	bool is_const = false;

	if (smart_target(t, &to) && api_strip(&to, &inner, &is_const) && api_is_aggregate(dwarf_tag(&to))) {
		object_type(a, &to, inner, is_const, API_OBJECT, out);
		out->is_smart = true;
		return;
	}
	int object = object_of(a, t, name);

	if (object == API_NONE || !a->objects.v[object].flat) {
		trouble(out, "a structure by value with members this program cannot make");
		return;
	}
	out->kind = API_STRUCT;
	out->object = object;
	out->size = (uint8_t)a->objects.v[object].size;
	out->spelling = xasprintf("struct %s", a->objects.v[object].c_name);
}

void api_read_type(struct api *a, Dwarf_Die *type, struct api_type *out)
{
	Dwarf_Die t = *type;
	const char *name = NULL;

	*out = (struct api_type){ .object = API_NONE };
	if (!api_strip(&t, &name, &out->is_const)) {
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
		if (out->kind == API_OBJECT)
			add_alias(&a->objects.v[out->object], name);
	} else if (tag == DW_TAG_reference_type) {
		read_pointer(a, &t, true, out);
	} else if (api_is_aggregate(tag) && is_std_string(dwarf_diename(&t))) {
		out->kind = API_STRING;
		out->size = 32; /* by value: it is returned in memory of the caller's */
		out->spelling = xstrdup("void *");
	} else if (api_is_aggregate(tag)) {
		read_aggregate(a, &t, name, out);
	} else {
		trouble(out, "a type this program does not know");
	}
}

/* ---- functions ---- */

static void read_result(struct api *a, Dwarf_Die *die, struct api_type *out)
{
	Dwarf_Die t;

	if (api_type_of(die, &t)) {
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
		if (api_type_of(&child, &t)) {
			struct api_type *p = &f->params[f->nparams++];

			api_read_type(a, &t, p);
			p->name = dwarf_diename(&child) ? xstrdup(dwarf_diename(&child)) : NULL;
			if (p->is_smart)
				trouble(p, "a smart pointer");
		}
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

/* What says nothing is private in a class and public elsewhere. */
static bool is_public(Dwarf_Die *die)
{
	Dwarf_Die declaration = *die, *scopes = NULL;
	Dwarf_Attribute at;
	Dwarf_Word access = 0;

	if (dwarf_attr_integrate(die, DW_AT_accessibility, &at))
		return dwarf_formudata(&at, &access) || access == DW_ACCESS_public;
	if (dwarf_attr_integrate(die, DW_AT_specification, &at) && !dwarf_formref_die(&at, &declaration))
		return true;
	int n = dwarf_getscopes_die(&declaration, &scopes);
	bool in_class = n > 1 && dwarf_tag(&scopes[1]) == DW_TAG_class_type;
	free(scopes);
	return !in_class;
}

static void read_place(Dwarf_Die *die, struct api_function *f)
{
	int line = 0;

	free(f->file);
	f->file = dwarf_decl_file(die) ? xstrdup(dwarf_decl_file(die)) : NULL;
	if (!dwarf_decl_line(die, &line))
		f->line = (unsigned)line;
}

static void read_subprogram(struct api *a, Dwarf_Die *die)
{
	const char *symbol = linkage_name(die);
	Dwarf_Addr low = 0;
	bool placed = !dwarf_lowpc(die, &low);

	for (size_t i = 0; i < a->functions.n; i++) {
		struct api_function *f = &a->functions.v[i];

		/* Constructors of C++ have no linkage name of their own: their address says which they are. */
		if (!(placed ? f->offset == low : symbol && !strcmp(f->symbol, symbol)))
			continue;
		/* Where it is defined counts, not where a class declares it. */
		if (placed || !f->result.spelling)
			read_place(die, f);
		if (f->result.spelling)
			continue;
		api_read_signature(a, die, f);
		f->cxx = die_is_cxx(die) && !strncmp(f->symbol, "_Z", 2);
		if (!is_public(die))
			api_leave_out(f, "it is not public");
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
		else if (api_is_aggregate(tag) && dwarf_diename(&child))
			object_of(a, &child, NULL);
		if (tag == DW_TAG_namespace || api_is_aggregate(tag))
			walk(a, &child, depth + 1);
	} while (!dwarf_siblingof(&child, &child));
}

void api_read_units(struct api *a, Dwarf *dw)
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
