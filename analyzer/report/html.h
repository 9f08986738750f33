/* Inside the HTML writer: escaping, and the parts of the page. */
#ifndef CSCHED_REPORT_HTML_H
#define CSCHED_REPORT_HTML_H

#include "analyzer/report/internal.h"

/*
 * Hostile text as character data or a quoted attribute: markup characters as
 * entities, control characters and broken UTF-8 as U+FFFD.
 */
void html_text(FILE *f, const char *s);
/* A sentence of ours: `name' becomes <code>name</code>. */
void html_sentence(FILE *f, const char *s);

/* The page up to and including <body>, and from after its contents to the end. A foreign page gets
 * no buttons that copy commands: nobody here vouches for them. */
void html_begin(FILE *f, const char *program, const char *headline, bool foreign);
void html_end(FILE *f);

size_t html_lane_count(const struct report *r);
void html_schedule(FILE *f, const struct report *r, enum dsp_which w);
void html_full(FILE *f, const struct report *r);
void html_stack(FILE *f, const struct report *r, const struct sym_event *e);

#endif
