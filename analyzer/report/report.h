/*
 * Reports: one model, many writers.
 *
 * `struct report` gathers what is known about a failure: the symbolic trace,
 * the answer of the schedule side, the projection, what was executed to prove
 * it, the cost, and what had to be assumed. The writers only read it. It
 * borrows everything (it owns nothing): keep the parts alive until the last
 * writer returned.
 *
 * Strings in a trace come from the traced program and are hostile: each
 * writer escapes for its own format, and none trusts a byte.
 */
#ifndef CSCHED_REPORT_H
#define CSCHED_REPORT_H

#include "analyzer/dsp/dsp.h"

#include <stdio.h>

#define REPORT_SCHEMA 2 /* of the JSON; csched-report(5) */

/*
 * One way a schedule was executed: by the checker on the symbolic trace, by
 * the machine on the recorded instructions, or on the real program. `agreed`
 * of `runs` did what was promised (failed as recorded; or, for an alternate,
 * passed the failure point). runs 0: not attempted, and `why` says why.
 */
struct report_proof {
	unsigned runs;
	unsigned agreed;
	const char *why; /* or NULL */
	bool fails_later; /* agreed, but another failure followed: why says it */
	bool met;         /* agreed, and execution came to what decided the failure: its condition holds there */
	bool left;        /* not agreed, because it could not be executed to its end: nothing is known */
};

/* How sure the answer is; at the top of every format. */
enum report_confidence {
	REPORT_NO_ANSWER,   /* no failing order, or no cause */
	REPORT_UNCONFIRMED, /* a cause, and no executed order that passes without it */
	REPORT_ALWAYS,      /* it fails in every order: proved, or in all that were tried */
	REPORT_CONFIRMED,   /* both orders executed */
	REPORT_PROVED,      /* and the cause is a minimal core */
};

enum report_executor { REPORT_CHECKER, REPORT_MACHINE, REPORT_NATIVE, REPORT_EXECUTORS };

struct report_validation {
	struct report_proof by[REPORT_EXECUTORS];
};

/* The strongest executor that was tried (native aside: it needs luck with
 * what a schedule does not fix) agreed in every run. */
bool report_validated(const struct report_validation *v);
/* The recorder's words about a failure of this kind without the addresses in them. malloc'd. */
char *report_hidden_text(enum sym_failure_kind kind, const char *text);

/* What happened, as the recorder saw it. report_init() fills it from the trace. */
struct report_failure {
	const char *text;     /* "Assertion `n == 2' failed"; NULL: from the kind */
	const char *signal;   /* "SIGSEGV"; NULL: none, or the first word of a signal's text */
	bool has_address;     /* the faulting address is known */
	uint64_t address;
	const char *rule;     /* "use-after-free" or the like, for code hosts; NULL: the kind of failure */
	const char *misuse;   /* "Use after free: ..." or the like that came before it, or NULL */
	const char *when;     /* local time of the recording, or NULL */
	const char *command;  /* command line, or NULL: trace->program */
	const char *start;    /* what starts the run again, when that is another one (a script); or NULL */
};

struct report_phase {
	const char *name; /* "machine", "failing schedule", ... */
	double seconds;
};

/* A phase that has no answer: which, and why. */
struct report_gap {
	const char *phase;
	const char *why;
};

/* One attempt at an answer, in the order they were made (--why). */
struct report_attempt {
	const char *scope;   /* what was looked at */
	const char *method;  /* core, difference or the name of a rule */
	double effort;       /* spent on it; a unit is about a second of a 3 GHz core */
	const char *outcome; /* what came of it ... */
	const char *grade;   /* ... and how good that is */
	bool chosen;         /* the answer that is shown is this one's */
};

struct report {
	const struct sym_trace *trace;
	const struct sched_answer *answer;
	const struct dsp *dsp;
	struct report_failure failure;
	struct report_validation failing_proof, alternate_proof;
	enum report_confidence confidence;
	const char *confidence_text; /* why it is that, a sentence without its full stop; NULL: nothing to say */

	const struct report_phase *phases; /* more than the answer's own times */
	size_t nphases;
	uint64_t peak_bytes; /* memory; 0 unknown */
	/* Instructions of the recorded run, and executed to explain it; 0: nothing was executed. */
	uint64_t run_insns, executed_insns;
	const struct report_gap *gaps;
	size_t ngaps;
	const struct report_attempt *attempts;
	size_t nattempts;
	bool show_attempts; /* in the text, too */
	const char *const *assumptions; /* besides the trace's own */
	size_t nassumptions;
	const char *trace_path; /* for "replay it with"; NULL: left out */
	bool redact;            /* leave out values and memory contents */

	/* Text of a source line, without its newline; NULL when not to be had.
	 * The string must live until the next call. */
	const char *(*source_line)(void *arg, const char *file, unsigned line);
	void *source_arg;
	/* How many instructions the thread had executed when it came to the event; false: not known. */
	bool (*position)(void *arg, uint32_t thread, uint32_t index, uint64_t *insns);
	void *position_arg;
	/* A value for people; false: use the default (decimal when small, hex else). */
	bool (*format_value)(void *arg, const struct sym_var *var, uint64_t value,
			     char *buf, size_t size);
	void *format_arg;
};

/* Fills everything that follows from the three parts. answer and dsp must
 * have been made from this trace. The checker has executed whatever the
 * answer holds, so the checker's proof is filled in; the others say "not
 * attempted" until the caller knows better. */
void report_init(struct report *r, const struct sym_trace *t, const struct sched_answer *a,
		 const struct dsp *d);

/* A source_line callback that reads files from disk: arg is from
 * report_source_new(). common/door.h says which files may be read. */
struct report_source *report_source_new(void);
const char *report_source_line(void *source, const char *file, unsigned line);
void report_source_free(struct report_source *s);

struct report_term {
	unsigned width; /* columns; at least 60 */
	bool color;
	bool unicode;   /* arrows and lines; ASCII otherwise */
};

void report_terminal(FILE *f, const struct report *r, const struct report_term *term);
void report_html(FILE *f, const struct report *r);
void report_json(FILE *f, const struct report *r);
void report_dot(FILE *f, const struct report *r);
void report_markdown(FILE *f, const struct report *r);
/* Finds out what its URIs are relative to, while the process may still look. */
void report_sarif_prepare(void);
void report_sarif(FILE *f, const struct report *r);

/* An event as the reports show it, in a line: "crasher.c:45  T0.5 writes config = NULL"; malloc'd, safe for a terminal. */
char *report_event_line(const struct report *r, enum dsp_which w, const struct dsp_event *e);

/* Of several numbers, for whoever writes JSON: what trying a hint showed. */
struct json;
void report_trial_json(struct json *j, const char *key, const struct dsp_trial *t);

#endif
