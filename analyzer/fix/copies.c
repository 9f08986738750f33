/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All copies of a source line that the compiler made: inlined functions, templates. */
#include "analyzer/fix/fix.h"

#include "analyzer/hunt/place.h"

static void add(struct img_set *images, const char *file, unsigned line, uint64_t pc, struct fix_copies *c)
{
	uint64_t first, last;

	if (c->n == FIX_MAX_COPIES || !place_statement(images, &pc, file, line, &first, &last))
		return;
	for (size_t k = 0; k < c->n; k++)
		if (c->first[k] == first)
			return;
	c->first[c->n] = first;
	c->at[c->n] = pc;
	c->last[c->n++] = last;
}

void fix_copies(struct img_set *images, const char *file, unsigned line, uint64_t pc, struct fix_copies *c)
{
	uint64_t pcs[FIX_MAX_COPIES];
	size_t n = img_addresses_of_line(images, file, line, pcs, FIX_MAX_COPIES);

	c->n = 0;
	if (pc)
		add(images, file, line, pc, c);
	for (size_t i = 0; i < n && i < FIX_MAX_COPIES; i++)
		add(images, file, line, pcs[i], c);
}
