/*
 * Variables with a fixed place: globals, statics of files, functions and
 * classes, thread-locals. Read for a whole module when its data is first
 * asked about.
 */
#include "analyzer/image/internal.h"

#include <string.h>

enum place { PLACE_NONE, PLACE_FIXED, PLACE_TLS };

static bool constant(Dwarf_Attribute *attr, const Dwarf_Op *op, uint64_t *value)
{
	Dwarf_Attribute a;

	switch (op->atom) {
	case DW_OP_addr:
	case DW_OP_const1u:
	case DW_OP_const2u:
	case DW_OP_const4u:
	case DW_OP_const8u:
	case DW_OP_constu:
		*value = op->number;
		return true;
	case DW_OP_addrx:
	case DW_OP_constx:
	case DW_OP_GNU_addr_index:
	case DW_OP_GNU_const_index:
		return dwarf_getlocation_attr(attr, op, &a) == 0 &&
		       (dwarf_formaddr(&a, value) == 0 || dwarf_formudata(&a, value) == 0);
	default:
		return false;
	}
}

static enum place place_of(Dwarf_Die *die, uint64_t *at)
{
	Dwarf_Attribute attr;
	Dwarf_Op *op;
	size_t n;

	if (!dwarf_attr(die, DW_AT_location, &attr))
		return PLACE_NONE;
	unsigned form = dwarf_whatform(&attr);

	/* Lists of locations belong to variables that move: locals. */
	if (form == DW_FORM_sec_offset || form == DW_FORM_loclistx || form == DW_FORM_data4 ||
	    dwarf_getlocation(&attr, &op, &n) || !n || !constant(&attr, op, at))
		return PLACE_NONE;
	if (n == 1)
		return PLACE_FIXED;
	if (n == 2 && (op[1].atom == DW_OP_GNU_push_tls_address ||
		       op[1].atom == DW_OP_form_tls_address))
		return PLACE_TLS;
	/* clang merges small globals into one block. */
	if (n == 2 && op[1].atom == DW_OP_plus_uconst) {
		*at += op[1].number;
		return PLACE_FIXED;
	}
	return PLACE_NONE;
}

/* May following this variable lead somewhere? */
static bool holds_pointers(Dwarf_Die *type, uint64_t size)
{
	Dwarf_Die die, pointee;
	bool ref;

	if (!img_type_strip(type, &die) || size < 8)
		return false;
	switch (dwarf_tag(&die)) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_array_type:
		return true;
	default:
		return img_type_pointee(&die, &pointee, &ref);
	}
}

static void add_variable(struct img_module *m, Dwarf_Die *die, Dwarf_Die *function)
{
	struct img_variable v = { .die = *die };
	Dwarf_Die type;
	enum place where = place_of(die, &v.lo);

	if (where == PLACE_NONE || (where == PLACE_FIXED && !v.lo) || !img_die_name(die) ||
	    !img_die_type(die, &type))
		return;
	if (!img_type_size(&type, &v.size) || !v.size)
		v.size = 1;
	/* A size no module can have is a lie of the file. */
	if (v.size > 1ull << 40 || v.lo + v.size < v.lo)
		return;
	v.function = function ? img_function_name(m, function) : NULL;
	if (where == PLACE_TLS) {
		vec_push(&m->tls, v);
		return;
	}
	vec_push(&m->variables, v);
	if (holds_pointers(&type, v.size))
		vec_push(&m->holders, v);
}

static bool may_hold_variables(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_common_block:
		return true;
	default:
		return false;
	}
}

static void index_variables(struct img_module *m, Dwarf_Die *parent, Dwarf_Die *function,
			    int depth)
{
	Dwarf_Die die;

	if (depth > IMG_MAX_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);
		bool is_function = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;

		if (tag == DW_TAG_variable)
			add_variable(m, &die, function);
		else if (may_hold_variables(tag))
			index_variables(m, &die, is_function ? &die : function, depth + 1);
	} while (dwarf_siblingof(&die, &die) == 0);
}

static int by_lo(const void *a, const void *b)
{
	const struct img_variable *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

void img_variables_read(struct img_module *m)
{
	if (m->variables_read)
		return;
	m->variables_read = true;
	img_units_read(m);
	for (size_t i = 0; i < m->units.n; i++)
		index_variables(m, &m->units.v[i].die, NULL, 0);
	if (m->variables.n)
		qsort(m->variables.v, m->variables.n, sizeof *m->variables.v, by_lo);
	if (m->tls.n)
		qsort(m->tls.v, m->tls.n, sizeof *m->tls.v, by_lo);
}

const struct img_variable *img_variable_at(const struct img_variable *v, size_t n, uint64_t at)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (v[mid].lo <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* Among those at one address (a duplicate, an empty one) the first that holds it. */
	for (int steps = 0; lo-- > 0 && steps < 8; steps++)
		if (at - v[lo].lo < v[lo].size)
			return &v[lo];
	return NULL;
}
