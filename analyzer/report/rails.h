/*
 * Text for terminals, and the picture of a projected schedule: one rail per
 * thread, time running down, a dot per event on the rail of its thread, and
 * dataflows as lines that leave below a write and arrive with an arrow at the
 * read that sees it.
 */
#ifndef CSCHED_REPORT_RAILS_H
#define CSCHED_REPORT_RAILS_H

#include "analyzer/report/internal.h"
#include "analyzer/term.h"

/*
 * Appends hostile text, at most `max` columns of it, cut with an ellipsis.
 * Control characters and broken UTF-8 become \xNN. Returns the columns used.
 */
size_t text_add(struct strbuf *b, const char *s, size_t max, bool unicode);
size_t text_columns(const char *s, bool unicode);
/* A paragraph: first line behind `lead`, the others indented alike. */
void text_wrap(FILE *f, const char *lead, const char *s, unsigned width, bool unicode);
/* The escape sequence of a style, or "". */
const char *text_style(const struct report_term *term, enum term_style style);

struct rail_line {
	char *text; /* with colour */
	size_t columns;
};

struct rail_picture {
	VEC(struct rail_line) lines;
	bool initial;  /* a value from before the first write is shown, */
	bool flows;    /* a dataflow, */
	bool waits;    /* the holder of what another waits for */
	size_t wanted; /* columns that would show everything but source lines whole */
};

/* width: columns to keep within. */
void rails_draw(const struct report *r, enum dsp_which w, const struct report_term *term,
		unsigned width, struct rail_picture *out);
void rails_free(struct rail_picture *p);

#endif
