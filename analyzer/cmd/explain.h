/* The report of an explanation, for the commands that write one. */
#ifndef CSCHED_CMD_EXPLAIN_H
#define CSCHED_CMD_EXPLAIN_H

#include "analyzer/explain/explain.h"

struct explain_report {
	struct report report;
	VEC(const char *) assumptions;
	char *signal, *misuse, *start;
	char when[64];
};

/* path: where the trace is, for the report; may be NULL. e must outlive it. */
void explain_report_init(struct explain_report *r, const char *path, struct explanation *e);
void explain_report_free(struct explain_report *r);

/* csched explain TRACE, with its advice tried on the program it is about; the exit status. */
struct fix_request;
int explain_and_try(const char *trace, struct fix_request *fix);

#endif
