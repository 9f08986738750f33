/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The members of a structure, those of inner ones among them: what a test can fill in and a C program can write down. */
#include "analyzer/testgen/api_internal.h"

#include <dwarf.h>
#include <string.h>

#define MOST_FIELDS 48
#define MOST_BYTES 255    /* of a structure whose members are known */
#define MOST_ELEMENTS 16  /* of an array inside it */
#define DEPTH 4

static bool add_type(Dwarf_Die *type, uint64_t at, const char *name, int depth, struct api_object *o);

static bool constant(Dwarf_Die *die, unsigned which, uint64_t *out)
{
	Dwarf_Attribute at;
	Dwarf_Word v;

	if (!dwarf_attr(die, which, &at) || dwarf_formudata(&at, &v))
		return false;
	*out = v;
	return true;
}

static bool add_members(Dwarf_Die *t, uint64_t base, const char *outer, int depth, struct api_object *o)
{
	Dwarf_Die child, type;

	if (dwarf_child(t, &child))
		return true;
	do {
		uint64_t at = 0;
		const char *name = dwarf_diename(&child);

		switch (dwarf_tag(&child)) {
		case DW_TAG_member: break;
		/* Whether it can be copied byte by byte is not known of a class. */
		case DW_TAG_subprogram:
		case DW_TAG_inheritance: return false;
		default: continue;
		}
		if (dwarf_hasattr(&child, DW_AT_bit_size) || dwarf_hasattr(&child, DW_AT_data_bit_offset) || !name ||
		    !api_type_of(&child, &type) ||
		    (dwarf_hasattr(&child, DW_AT_data_member_location) &&
		     !constant(&child, DW_AT_data_member_location, &at)))
			return false;
		char *full = *outer ? xasprintf("%s_%s", outer, name) : xstrdup(name);
		bool good = add_type(&type, base + at, full, depth, o);
		free(full);
		if (!good)
			return false;
	} while (!dwarf_siblingof(&child, &child));
	return true;
}

static bool add_elements(Dwarf_Die *array, uint64_t at, const char *name, int depth, struct api_object *o)
{
	Dwarf_Die range, element;
	uint64_t n = 0;

	if (dwarf_child(array, &range) || !api_type_of(array, &element) || dwarf_tag(&range) != DW_TAG_subrange_type)
		return false;
	if (constant(&range, DW_AT_upper_bound, &n))
		n++;
	else if (!constant(&range, DW_AT_count, &n))
		return true; /* without a length: it is behind the structure */
	int size = dwarf_bytesize(&element);
	Dwarf_Die second;
	if (size <= 0 || n > MOST_ELEMENTS || !dwarf_siblingof(&range, &second))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		char *full = xasprintf("%s_%u", name, (unsigned)i);
		bool good = add_type(&element, at + i * (uint64_t)size, full, depth, o);

		free(full);
		if (!good)
			return false;
	}
	return true;
}

static bool add_pointer(Dwarf_Die *t, struct api_field *f)
{
	Dwarf_Die to;
	const char *name = NULL;
	bool is_const = false;
	bool known = api_type_of(t, &to) && api_strip(&to, &name, &is_const);

	f->size = 8;
	f->kind = known && dwarf_tag(&to) == DW_TAG_subroutine_type ? API_FUNCTION :
		  known && is_const && dwarf_tag(&to) == DW_TAG_base_type && dwarf_bytesize(&to) == 1 ? API_TEXT : API_BYTES;
	return true;
}

static bool add_number(Dwarf_Die *t, struct api_field *f)
{
	uint64_t encoding = 0;
	int size = dwarf_bytesize(t);
	Dwarf_Die child;

	constant(t, DW_AT_encoding, &encoding);
	f->kind = encoding == DW_ATE_float ? API_FLOAT : API_INT;
	f->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	f->size = (uint8_t)size;
	if (dwarf_tag(t) == DW_TAG_enumeration_type) {
		Dwarf_Attribute at;
		Dwarf_Sword v;

		f->is_enum = true;
		if (!dwarf_child(t, &child) && dwarf_attr(&child, DW_AT_const_value, &at) && !dwarf_formsdata(&at, &v))
			f->first = v;
	}
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static bool add_type(Dwarf_Die *type, uint64_t at, const char *name, int depth, struct api_object *o)
{
	struct api_field f = { .offset = (uint32_t)at };
	Dwarf_Die t = *type;
	const char *typedef_name = NULL;
	bool ignored, good;

	if (depth > DEPTH || o->fields.n == MOST_FIELDS || at > MOST_BYTES || !api_strip(&t, &typedef_name, &ignored))
		return false;
	switch (dwarf_tag(&t)) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type: return add_members(&t, at, name, depth + 1, o);
	case DW_TAG_array_type: return add_elements(&t, at, name, depth + 1, o);
	case DW_TAG_pointer_type: good = add_pointer(&t, &f); break;
	case DW_TAG_base_type:
	case DW_TAG_enumeration_type: good = add_number(&t, &f); break;
	default: return false;
	}
	/* Packed structures and the like have other layouts than the members as they stand. */
	if (!good || at % f.size)
		return false;
	f.name = xstrdup(name);
	vec_push(&o->fields, f);
	return true;
}

void api_read_fields(Dwarf_Die *t, struct api_object *o)
{
	o->read = true;
	o->flat = dwarf_tag(t) != DW_TAG_union_type && o->size && o->size <= MOST_BYTES && add_members(t, 0, "", 0, o) &&
		  o->fields.n;
	for (size_t i = 0; i < o->fields.n && !o->flat; i++)
		free(o->fields.v[i].name);
	if (!o->flat)
		vec_free(&o->fields);
}

/* Small numbers and functions that do nothing; larger numbers; nothing at all. */
int64_t api_field_value(const struct api_field *f, unsigned variant)
{
	static const int64_t numbers[API_VARIANTS] = { 1, 8, 0 };

	if (f->is_enum)
		return f->first;
	if (f->kind == API_BYTES)
		return 0;
	return numbers[variant % API_VARIANTS];
}
