/*
 * Structures that one file declares and another defines: an accessor compiled
 * with "struct queue;" knows the name only. The definition is looked for by
 * name among all files of the module, as debuggers do.
 */
#include "analyzer/image/internal.h"

#include <string.h>

static uint64_t hash(int tag, const char *s)
{
	/* struct and class may be mixed up between files; unions may not. */
	uint64_t h = tag == DW_TAG_union_type ? 14695981039346656037ull : 1099511628211ull;

	while (*s)
		h = (h ^ (uint8_t)*s++) * 1099511628211ull;
	return h;
}

static bool is_record(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
	       tag == DW_TAG_union_type;
}

static void read_definitions(struct img_module *m, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;

	if (depth > IMG_MAX_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);
		const char *name = is_record(tag) ? img_die_name(&die) : NULL;

		if (tag == DW_TAG_namespace)
			read_definitions(m, &die, depth + 1);
		if (!name || dwarf_hasattr(&die, DW_AT_declaration))
			continue;
		if (!img_table_find(&m->definitions, hash(tag, name))) {
			img_table_put(&m->definitions, hash(tag, name), m->definition.n);
			vec_push(&m->definition, die);
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

void img_type_complete(struct img_module *m, Dwarf_Die *type)
{
	Dwarf_Die bare;
	const char *name;

	if (!img_type_strip(type, &bare) || !is_record(dwarf_tag(&bare)) ||
	    !dwarf_hasattr(&bare, DW_AT_declaration) || !(name = img_die_name(&bare)))
		return;
	if (!m->definitions_read) {
		m->definitions_read = true;
		img_units_read(m);
		for (size_t i = 0; i < m->units.n; i++)
			read_definitions(m, &m->units.v[i].die, 0);
	}
	uint64_t *at = img_table_find(&m->definitions, hash(dwarf_tag(&bare), name));

	if (at && !strcmp(img_die_name(&m->definition.v[*at]), name))
		*type = m->definition.v[*at];
}
