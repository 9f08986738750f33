/*
 * Types. Nothing here trusts the file: chains of references may be circular,
 * so every walk is bounded (libdw's own dwarf_peel_type and
 * dwarf_aggregate_size are not, which is why they are not used).
 */
#include "analyzer/image/internal.h"

#include <string.h>

/* The public type comes first: the one is cast to the other. */
struct type {
	struct img_type pub;
	struct img_module *m;
	Dwarf_Die die; /* without typedefs and qualifiers */
};

enum { MAX_CHAIN = 32 };

static bool is_transparent(int tag)
{
	return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
	       tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type ||
	       tag == DW_TAG_immutable_type || tag == DW_TAG_packed_type;
}

/* -fdebug-types-section leaves a declaration that refers to the type's own unit. */
static bool signature(Dwarf_Die *die, Dwarf_Die *next)
{
	Dwarf_Attribute attr;

	return dwarf_attr(die, DW_AT_signature, &attr) && dwarf_formref_die(&attr, next);
}

/* One step towards the bare type; false when die is bare, or void behind. */
static bool peel(Dwarf_Die *die)
{
	Dwarf_Die next;

	if (is_transparent(dwarf_tag(die)) ? !img_die_type(die, &next) : !signature(die, &next))
		return false;
	*die = next;
	return true;
}

bool img_type_strip(Dwarf_Die *type, Dwarf_Die *out)
{
	*out = *type;
	for (int i = 0; i < MAX_CHAIN; i++)
		if (!peel(out))
			return !is_transparent(dwarf_tag(out));
	return false;
}

bool img_type_pointee(Dwarf_Die *type, Dwarf_Die *out, bool *reference)
{
	int tag = dwarf_tag(type);

	*reference = tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
	return (*reference || tag == DW_TAG_pointer_type) && img_die_type(type, out);
}

/* ---- size -------------------------------------------------------------- */

static bool number(Dwarf_Die *die, unsigned at, uint64_t *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	if (!dwarf_attr_integrate(die, at, &attr) || dwarf_formudata(&attr, &v))
		return false;
	*out = v;
	return true;
}

size_t img_array_dimensions(Dwarf_Die *array, uint64_t *count, size_t max)
{
	Dwarf_Die die;
	size_t n = 0;
	uint64_t v;

	if (dwarf_child(array, &die))
		return 0;
	do {
		if (dwarf_tag(&die) != DW_TAG_subrange_type || n == max)
			continue;
		if (number(&die, DW_AT_count, &v))
			count[n++] = v;
		else if (number(&die, DW_AT_upper_bound, &v) && v < UINT32_MAX)
			count[n++] = v + 1;
		else
			count[n++] = 0; /* open: flexible member, or variable length */
	} while (dwarf_siblingof(&die, &die) == 0);
	return n;
}

static bool size_of(Dwarf_Die *type, uint64_t *size, int depth)
{
	Dwarf_Die die, element;
	uint64_t count[8];
	size_t n;

	if (depth > MAX_CHAIN || !img_type_strip(type, &die))
		return false;
	if (number(&die, DW_AT_byte_size, size))
		return true;
	switch (dwarf_tag(&die)) {
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_ptr_to_member_type:
		*size = 8;
		return true;
	case DW_TAG_enumeration_type:
		return img_die_type(&die, &element) && size_of(&element, size, depth + 1);
	case DW_TAG_array_type:
		if (!img_die_type(&die, &element) || !size_of(&element, size, depth + 1))
			return false;
		n = img_array_dimensions(&die, count, 8);
		for (size_t i = 0; i < n; i++)
			if (__builtin_mul_overflow(*size, count[i], size))
				return false;
		return n > 0;
	default:
		return false;
	}
}

bool img_type_size(Dwarf_Die *type, uint64_t *size)
{
	return size_of(type, size, 0);
}

/* ---- name -------------------------------------------------------------- */

static bool is_c(Dwarf_Die *die)
{
	Dwarf_Die cu;

	if (!dwarf_diecu(die, &cu, NULL, NULL))
		return true;
	switch (dwarf_srclang(&cu)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
		return true;
	default:
		return false;
	}
}

static void write_tagged(struct strbuf *b, Dwarf_Die *die, const char *keyword)
{
	const char *name = img_die_name(die);

	if (!name || is_c(die))
		strbuf_str(b, keyword);
	if (name && is_c(die))
		strbuf_char(b, ' ');
	if (name)
		strbuf_str(b, name);
}

static void write_type(struct strbuf *b, Dwarf_Die *die, int depth);

static void write_target(struct strbuf *b, Dwarf_Die *die, int depth)
{
	Dwarf_Die target;

	if (img_die_type(die, &target))
		write_type(b, &target, depth + 1);
	else
		strbuf_str(b, "void");
}

static void write_pointer(struct strbuf *b, Dwarf_Die *die, const char *mark, int depth)
{
	Dwarf_Die target, bare;

	if (img_die_type(die, &target) && img_type_strip(&target, &bare) &&
	    dwarf_tag(&bare) == DW_TAG_subroutine_type && dwarf_tag(&target) != DW_TAG_typedef) {
		write_target(b, &bare, depth);
		strbuf_fmt(b, " (%s)()", mark);
		return;
	}
	write_target(b, die, depth);
	if (b->n && b->s[b->n - 1] != '*')
		strbuf_char(b, ' ');
	strbuf_str(b, mark);
}

static void write_array(struct strbuf *b, Dwarf_Die *die, int depth)
{
	uint64_t count[8];
	size_t n = img_array_dimensions(die, count, 8);

	write_target(b, die, depth);
	for (size_t i = 0; i < n; i++) {
		if (count[i])
			strbuf_fmt(b, "[%llu]", (unsigned long long)count[i]);
		else
			strbuf_str(b, "[]");
	}
}

static const struct {
	int tag;
	enum { QUALIFIER, POINTER, RECORD } form;
	const char *text;
} spelling[] = {
	{ DW_TAG_const_type, QUALIFIER, "const " },
	{ DW_TAG_volatile_type, QUALIFIER, "volatile " },
	{ DW_TAG_atomic_type, QUALIFIER, "_Atomic " },
	{ DW_TAG_restrict_type, QUALIFIER, "" },
	{ DW_TAG_pointer_type, POINTER, "*" },
	{ DW_TAG_ptr_to_member_type, POINTER, "*" },
	{ DW_TAG_reference_type, POINTER, "&" },
	{ DW_TAG_rvalue_reference_type, POINTER, "&&" },
	{ DW_TAG_structure_type, RECORD, "struct" },
	{ DW_TAG_class_type, RECORD, "class" },
	{ DW_TAG_union_type, RECORD, "union" },
	{ DW_TAG_enumeration_type, RECORD, "enum" },
};

static void write_spelled(struct strbuf *b, Dwarf_Die *die, size_t i, int depth)
{
	switch (spelling[i].form) {
	case QUALIFIER:
		strbuf_str(b, spelling[i].text);
		write_target(b, die, depth);
		return;
	case POINTER:
		write_pointer(b, die, spelling[i].text, depth);
		return;
	case RECORD:
		write_tagged(b, die, spelling[i].text);
	}
}

static void write_type(struct strbuf *b, Dwarf_Die *die, int depth)
{
	int tag = dwarf_tag(die);
	const char *name = img_die_name(die);
	Dwarf_Die own_unit;

	if (depth > 8) {
		strbuf_str(b, "...");
		return;
	}
	if (!name && signature(die, &own_unit)) {
		write_type(b, &own_unit, depth + 1);
		return;
	}
	for (size_t i = 0; i < sizeof spelling / sizeof *spelling; i++) {
		if (spelling[i].tag == tag) {
			write_spelled(b, die, i, depth);
			return;
		}
	}
	/* The library's own names for other types: std::atomic<int> keeps an __int_type. */
	if (tag == DW_TAG_typedef && name && !strncmp(name, "__", 2)) {
		write_target(b, die, depth);
		return;
	}
	if (tag == DW_TAG_array_type) {
		write_array(b, die, depth);
	} else if (tag == DW_TAG_subroutine_type) {
		write_target(b, die, depth);
		strbuf_str(b, " ()");
	} else {
		strbuf_str(b, name ? name : "?");
	}
}

/* ---- interning --------------------------------------------------------- */

static enum img_kind kind_of_base(Dwarf_Die *die)
{
	uint64_t encoding = 0;

	number(die, DW_AT_encoding, &encoding);
	switch (encoding) {
	case DW_ATE_boolean:
		return IMG_BOOL;
	case DW_ATE_signed_char:
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF:
		return IMG_CHAR;
	case DW_ATE_signed:
		return IMG_SIGNED;
	case DW_ATE_unsigned:
		return IMG_UNSIGNED;
	case DW_ATE_float:
		return IMG_FLOAT;
	case DW_ATE_address:
		return IMG_POINTER;
	default:
		return IMG_OPAQUE;
	}
}

static enum img_kind kind_of(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
		return kind_of_base(die);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return IMG_POINTER;
	case DW_TAG_enumeration_type:
		return IMG_ENUM;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return IMG_STRUCT;
	case DW_TAG_array_type:
		return IMG_ARRAY;
	default:
		return IMG_OPAQUE;
	}
}

/* Bit-fields share their DIE with the plain type; addresses leave the top bits free. */
const struct img_type *img_type_of_bits(struct img_module *m, Dwarf_Die *die, unsigned bit_offset,
					unsigned bit_size)
{
	uint64_t key = (uintptr_t)die->addr ^ (uint64_t)bit_offset << 48 ^ (uint64_t)bit_size << 56;
	uint64_t *known = img_table_find(&m->types, key);
	struct strbuf name = { 0 };
	struct type *t;

	if (known)
		return (const struct img_type *)(uintptr_t)*known;
	t = img_keep_block(m->set, sizeof *t);
	t->m = m;
	if (img_type_strip(die, &t->die))
		t->pub.kind = kind_of(&t->die);
	if (!img_type_size(die, &t->pub.size))
		t->pub.size = 0;
	if (bit_size) {
		t->pub.bit_offset = (uint8_t)bit_offset;
		t->pub.bit_size = (uint8_t)bit_size;
		t->pub.size = (bit_offset + bit_size + 7) / 8;
	}
	write_type(&name, die, 0);
	t->pub.name = img_keep(m->set, strbuf_take(&name));
	img_table_put(&m->types, key, (uintptr_t)t);
	return &t->pub;
}

const struct img_type *img_type_of(struct img_module *m, Dwarf_Die *die)
{
	return img_type_of_bits(m, die, 0, 0);
}

Dwarf_Die *img_type_die(const struct img_type *t)
{
	return &((struct type *)t)->die;
}

struct img_module *img_type_module(const struct img_type *t)
{
	return ((struct type *)t)->m;
}
