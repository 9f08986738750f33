/* Words and looks that the writers share; nobody outside the room includes this. */
#ifndef CSCHED_REPORT_INTERNAL_H
#define CSCHED_REPORT_INTERNAL_H

#include "analyzer/report/report.h"
#include "common/strbuf.h"
#include "common/vec.h"

/* report_proof.why until the caller knows better; said in JSON, not to people. */
#define REP_NOT_ATTEMPTED "not attempted"

/*
 * One harmless character of hostile text: its bytes, and its code point in *c.
 * 0: the byte is a control, part of broken UTF-8, or would reverse the text.
 */
size_t rep_utf8(const char *text, uint32_t *c);

/* What an event looks like to a person, in one of the schedules. */
struct rep_view {
	const struct sym_event *e;
	const struct sym_frame *place; /* or NULL */
	const char *thread;            /* "T0.1" */
	const char *verb;              /* "reads" */
	const char *subject;           /* "total"; "" if none */
	char *via;                     /* the library function that did it for the program; or NULL */
	char *where;                   /* "bank.c:31" */
	char *value;                   /* NULL: none, unknown or redacted */
	char *source;                  /* text of the line, trimmed; or NULL */
};

void rep_view(const struct report *r, const struct sched_order *o, struct sched_ref ref,
	      struct rep_view *v);
/* The same for a projected event: with its value where the schedule gives it one. */
void rep_view_shown(const struct report *r, enum dsp_which w, const struct dsp_event *e,
		    struct rep_view *v);
void rep_view_free(struct rep_view *v);
/* Two events of one thread on one source line. */
bool rep_same_line(const struct report *r, struct sched_ref a, struct sched_ref b);
const struct sched_order *rep_order(const struct report *r, enum dsp_which w);

/* "reads total = 100", "assertion fails"; fits where the subject's thread is known. */
void rep_action(struct strbuf *b, const struct report *r, const struct dsp_event *e,
		const struct rep_view *v, enum dsp_which w);

/* The default unless the report has its own. Always sets buf. */
void rep_value(const struct report *r, const struct sym_var *var, uint64_t value, char *buf,
	       size_t size);

/* The same for what event e read or wrote. */
void rep_event_value(const struct report *r, const struct sym_event *e, uint64_t value, char *buf,
		     size_t size);

/* "deposit < worker < start", without the run-time's own frames; at most `max`. */
/* Code of a library, or of which nothing is known but its library. */
bool rep_frame_is_library(const struct sym_frame *f);
/* What it is called in a report: "library code" for a library's own functions. */
const char *rep_frame_name(const struct sym_frame *f);
/* Its source file; NULL also where a run-time library has one, for it is the library's name that says something there. */
const char *rep_frame_file(const struct sym_frame *f);
void rep_stack(struct strbuf *b, const struct report *r, const struct sym_event *e, size_t max);
/* What a thread is: its name, or the function it runs; "" when unknown. */
const char *rep_thread_label(const struct report *r, uint32_t thread);
/* Has it an event in either order of the report? */
bool rep_thread_shown(const struct report *r, uint32_t thread);
char *rep_uninvolved(const struct report *r); /* "21 more threads: not involved", or NULL. To be freed */
bool rep_frame_matters(const struct sym_frame *f);

/* Sentences without the final stop. Lists of them: free each and the array. */
void rep_cause(struct strbuf *b, const struct report *r, struct sched_ref before,
	       struct sched_ref after);
/* The whole root cause, threads that did the same put together. */
size_t rep_causes(const struct report *r, char ***out);
/* What the program said, without addresses when they are to be left out; NULL: nothing. */
char *rep_failure_text(const struct report *r);
/* "Confidence: proved. ...", malloc'd; NULL: nothing is claimed. */
char *rep_confidence(const struct report *r);
const char *rep_confidence_name(enum report_confidence c); /* "proved", ... */
/* "It fails because", or what may be said at most. */
const char *rep_because(const struct report *r);
char *rep_headline(const struct report *r); /* "assertion ... failed in T0 at bank.c:61 (audit)" */
/* What executed a schedule and confirmed the claim: "verified by replay, ..." */
char *rep_verdict(const struct report *r, enum dsp_which w);
/* The heading of a schedule: says no more than was seen. */
const char *rep_title(const struct report *r, enum dsp_which w);
/* "Suggested fix", unless it was tried and did not help. */
const char *rep_advice_heading(const struct dsp *d);
const char *rep_second_advice(const struct dsp_hint *h); /* what leads to it */
/* What could not be answered. */
/* "T0.5:283", as csched debug takes it; malloc'd, NULL: not known. */
char *rep_position(const struct report *r, struct sched_ref ref);
size_t rep_missing(const struct report *r, char ***out);
/* Every assumption, the trace's first; idx beyond the last gives NULL. */
const char *rep_assumption(const struct report *r, size_t idx);

/* The command that enforces the failing order, for a shell; NULL: there is none. */
char *rep_replay(const struct report *r);
/* The command that puts gdb at the failure; NULL: there is none. */
char *rep_debug(const struct report *r);
char *rep_program(const struct report *r); /* without directories; malloc'd */
const char *rep_failure_kind(const struct report *r);
/* "SIGSEGV" into buf and returned; NULL when no signal is known. */
const char *rep_signal(const struct report *r, char buf[16]);
/* The failing event (SYM_FAIL, or the first blocked acquisition); false: none. */
bool rep_failure_ref(const struct report *r, struct sched_ref *ref);
const char *rep_executor(enum report_executor x); /* "checker", "machine", "native" */

/* Dataflows that the projection speaks of: those that differ, or, alone, all. */
size_t rep_shown_flows(const struct report *r);
/* Percentage saved, for the numbers of the paper's Table II. */
unsigned rep_percent_less(size_t all, size_t part);

struct rep_phase_list {
	struct report_phase v[16];
	size_t n;
};
void rep_phases(const struct report *r, struct rep_phase_list *out);

#endif
