/*
 * The index of a module's DWARF: address -> unit -> function -> scopes.
 *
 * Unit ranges come from the unit DIEs, not from .debug_aranges: clang does not
 * write the latter, and reading one DIE per unit costs microseconds. The DIEs
 * below a unit are read when somebody asks about an address inside it.
 */
#include "analyzer/image/internal.h"

#include <string.h>

const char *img_die_name(Dwarf_Die *die)
{
	return dwarf_diename(die);
}

bool img_die_type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, type);
}

const char *img_linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		return dwarf_formstring(&attr);
	return NULL;
}

/* g++ gives file-local functions and lambdas no linkage name; the symbol has it. */
static const char *linkage_by_symbol(struct img_module *m, Dwarf_Die *die)
{
	const struct img_symbol *s;
	Dwarf_Addr entry;

	if (dwarf_tag(die) != DW_TAG_subprogram || dwarf_entrypc(die, &entry))
		return NULL;
	s = img_symbol_at(m, entry);
	return s && s->vaddr == entry && !strncmp(s->name, "_Z", 2) ? s->name : NULL;
}

/* Behind pointers, references and qualifiers. */
static bool pointed_class(Dwarf_Die *die, Dwarf_Die *class)
{
	if (!img_die_type(die, class))
		return false;
	for (unsigned depth = 0; depth < 6; depth++) {
		switch (dwarf_tag(class)) {
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
			return true;
		case DW_TAG_pointer_type:
		case DW_TAG_reference_type:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
			if (!img_die_type(class, class))
				return false;
			break;
		default:
			return false;
		}
	}
	return false;
}

/* A lambda is the operator() of a class without a name (gcc: "<lambda()>"), whose declaration is where somebody wrote it. */
static bool lambda_class(Dwarf_Die *function, Dwarf_Die *class)
{
	const char *plain = img_die_name(function), *name;
	Dwarf_Die origin, child;
	Dwarf_Attribute attr;

	if (!plain || strcmp(plain, "operator()") != 0)
		return false;
	origin = *function;
	while (dwarf_attr(&origin, DW_AT_abstract_origin, &attr) && dwarf_formref_die(&attr, &origin))
		;
	if (dwarf_child(&origin, &child) != 0)
		return false;
	do {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter) {
			if (!pointed_class(&child, class))
				return false;
			name = img_die_name(class);
			return !name || !strncmp(name, "<lambda", 7);
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

static const char *lambda_name(struct img_module *m, Dwarf_Die *function)
{
	uint64_t *known = img_table_find(&m->set->brief, (uintptr_t)function->addr);
	Dwarf_Die class;
	int line;

	if (known)
		return (const char *)(uintptr_t)*known;
	if (!lambda_class(function, &class) || dwarf_decl_line(&class, &line))
		return NULL;
	const char *file = img_declared_in(&class), *slash = file ? strrchr(file, '/') : NULL;
	const char *text = img_keep(m->set, xasprintf("lambda at %s:%d", file ? slash ? slash + 1 : file : "?", line));

	img_table_put(&m->set->brief, (uintptr_t)function->addr, (uintptr_t)text);
	return text;
}

/* A closure has no name of its own: its line tells it from the others of its function. */
static const char *with_line(struct img_module *m, Dwarf_Die *die, const char *name)
{
	uint64_t *known = img_table_find(&m->set->brief, (uintptr_t)die->addr);
	int line;

	if (strncmp(name, "closure in ", 11) != 0)
		return name;
	if (known)
		return (const char *)(uintptr_t)*known;
	if (dwarf_decl_line(die, &line))
		return name;
	const char *text = img_keep(m->set, xasprintf("%s:%d", name, line));

	img_table_put(&m->set->brief, (uintptr_t)die->addr, (uintptr_t)text);
	return text;
}

const char *img_function_name(struct img_module *m, Dwarf_Die *die)
{
	const char *lambda = lambda_name(m, die);

	if (lambda)
		return lambda;
	const char *linkage = img_linkage_name(die);
	const char *plain = img_die_name(die), *text;

	if (!linkage)
		linkage = linkage_by_symbol(m, die);
	text = linkage ? img_demangle(m->set, linkage) : NULL;
	if (!text || (text == linkage && plain))
		text = plain;
	return text ? with_line(m, die, img_brief(m->set, text)) : NULL;
}

/* ---- units ------------------------------------------------------------- */

static int by_unit_lo(const void *a, const void *b)
{
	const struct img_unit_range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void add_unit(struct img_module *m, Dwarf_Die *die, Dwarf_Die *split)
{
	struct img_unit u = { .die = split->addr ? *split : *die, .skeleton = *die };
	Dwarf_Addr base, lo, hi;
	ptrdiff_t off = 0;

	vec_push(&m->units, u);
	while ((off = dwarf_ranges(die, off, &base, &lo, &hi)) > 0)
		if (lo && lo < hi)
			vec_push(&m->ranges, (struct img_unit_range){ lo, hi, m->units.n - 1 });
}

void img_units_read(struct img_module *m)
{
	Dwarf *dwarf = img_module_dwarf(m);
	Dwarf_CU *cu = NULL;
	Dwarf_Die die, split;
	uint8_t type;
	size_t missing = 0;

	if (m->units_read || !dwarf)
		return;
	m->units_read = true;
	memset(&split, 0, sizeof split);
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, &split) == 0) {
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			add_unit(m, &die, &split);
		missing += type == DW_UT_skeleton && !split.addr;
	}
	if (missing)
		img_note(m->set, "%s: %zu .dwo files were not found; their functions have lines "
			 "but no variables", m->name, missing);
	if (m->ranges.n)
		qsort(m->ranges.v, m->ranges.n, sizeof *m->ranges.v, by_unit_lo);
}

struct img_unit *img_unit_at(struct img_module *m, uint64_t vaddr)
{
	img_units_read(m);
	size_t lo = 0, hi = m->ranges.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->ranges.v[mid].lo <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || vaddr >= m->ranges.v[lo - 1].hi)
		return NULL;
	return &m->units.v[m->ranges.v[lo - 1].unit];
}

/* ---- functions --------------------------------------------------------- */

static void add_function(struct img_unit *u, Dwarf_Die *die)
{
	Dwarf_Addr base, lo, hi, entry = 0;
	ptrdiff_t off = 0;

	/* A function in pieces (hot, cold) has no low_pc: its first piece is its entry. */
	dwarf_entrypc(die, &entry);
	while ((off = dwarf_ranges(die, off, &base, &lo, &hi)) > 0) {
		if (!lo || lo >= hi)
			continue;
		if (!entry)
			entry = lo;
		vec_push(&u->functions, (struct img_function){ lo, hi, entry, *die });
	}
}

static bool may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return true;
	default:
		return false;
	}
}

static void index_functions(struct img_unit *u, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;

	if (depth > IMG_MAX_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			add_function(u, &die);
		if (may_hold_functions(tag))
			index_functions(u, &die, depth + 1);
	} while (dwarf_siblingof(&die, &die) == 0);
}

static int by_function_lo(const void *a, const void *b)
{
	const struct img_function *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

const struct img_function *img_function_at(struct img_module *m, uint64_t vaddr,
					   struct img_unit **unit)
{
	struct img_unit *u = img_unit_at(m, vaddr);
	size_t lo = 0, hi;

	if (unit)
		*unit = u;
	if (!u)
		return NULL;
	if (!u->indexed) {
		u->indexed = true;
		index_functions(u, &u->die, 0);
		if (u->functions.n)
			qsort(u->functions.v, u->functions.n, sizeof *u->functions.v,
			      by_function_lo);
	}
	for (hi = u->functions.n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (u->functions.v[mid].lo <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || vaddr >= u->functions.v[lo - 1].hi)
		return NULL;
	return &u->functions.v[lo - 1];
}

static bool is_scope(int tag)
{
	return tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine ||
	       tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

size_t img_scopes_at(const struct img_function *f, uint64_t vaddr, Dwarf_Die *out, size_t max)
{
	Dwarf_Die scope[IMG_MAX_DEPTH], die;
	size_t n = 0;
	bool deeper = true;

	for (scope[n++] = f->die; deeper && n < IMG_MAX_DEPTH;) {
		deeper = false;
		if (dwarf_child(&scope[n - 1], &die))
			break;
		do {
			if (is_scope(dwarf_tag(&die)) && dwarf_haspc(&die, vaddr) > 0) {
				scope[n++] = die;
				deeper = true;
				break;
			}
		} while (dwarf_siblingof(&die, &die) == 0);
	}
	/* With too little room the outermost stay: the function itself must be there. */
	size_t skip = n > max ? n - max : 0;

	for (size_t i = 0; i + skip < n; i++)
		out[i] = scope[n - skip - 1 - i];
	return n - skip;
}
