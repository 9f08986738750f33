/* The checks of csched doctor: each looks at one thing and says what it means. */
#ifndef CSCHED_ANALYZER_CMD_DOCTOR_H
#define CSCHED_ANALYZER_CMD_DOCTOR_H

#include "common/strbuf.h"

enum doctor_verdict {
	DOCTOR_OK,      /* works */
	DOCTOR_LIMITED, /* works with a limit the text names */
	DOCTOR_BAD,     /* does not work; the text says what to do */
};

struct doctor_check {
	const char *name;
	/* Appends what was found, and what follows from it. */
	enum doctor_verdict (*look)(struct strbuf *text);
};

extern const struct doctor_check doctor_checks[];
extern const unsigned doctor_ncheck;

/* doctor_try.c: records /bin/true for real and reads the trace back. */
enum doctor_verdict doctor_try_sync(struct strbuf *text);
enum doctor_verdict doctor_try_path(struct strbuf *text);

#endif
