/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each exit status is learned for itself: that a client sometimes ends with 124 does not hide that it sometimes ends with 1. */
#include "analyzer/hunt/statuses.h"

bool statuses_note(struct statuses *s, int status)
{
	uint32_t before = s->nodd;

	s->count[status & 0xff]++;
	for (int v = 1; s->count[0] && v < 256; v++)
		if (s->count[v] && !s->odd[v]) {
			s->odd[v] = true;
			s->nodd++;
		}
	return s->nodd > before;
}

void statuses_list(const struct statuses *s, struct strbuf *out)
{
	for (int v = 1; v < 256; v++)
		if (s->odd[v])
			strbuf_fmt(out, "%s%d", out->n ? "," : "", v);
}
