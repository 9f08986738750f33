/*
 * Where the shared events of a run lie: the first two executions of the extraction, kept
 * by the caller so that a further window costs neither of them again. The second is only
 * done when something is shared.
 *
 * Of a long run only a stretch before its end is surveyed, the longer the larger the window.
 * Before the stretch the order is committed: what
 * threads shared only there is no matter of order any more. Locations that were
 * touched by a second thread only there are not shared, positions have no occurrence
 * (struct sym_event), and heap blocks allocated there no place of allocation.
 */
#ifndef CSCHED_SYMTRACE_EXTRACT_SURVEY_H
#define CSCHED_SYMTRACE_EXTRACT_SURVEY_H

#include "analyzer/symtrace/extract_share.h"
#include "analyzer/symtrace/extract_spin.h"
#include "common/vec.h"

/* More events than the schedule side can show anyone; a bound on memory. */
#define EXT_MAX_EVENTS 200000

/* What an event accesses, and when. */
struct ext_touch {
	uint64_t time, address;
	uint32_t thread;
	uint8_t size;
	bool only_writes; /* see ext_locations_add() */
};

struct ext_survey {
	bool done;
	bool onward;        /* it went on behind the record */
	uint64_t base;      /* the stretch begins here; 0: the whole run */
	struct share *share;
	struct spins *spins; /* NULL: nothing is shared */
	bool focused;        /* events are only of: */
	VEC(uint64_t) words; /* addresses / 8, sorted */
	struct ext_touch *events; /* ring of the last EXT_MAX_EVENTS */
	uint64_t n;         /* events of the stretch */
	VEC(struct ext_touch) computed; /* events behind the record */
	/* Reads of the failing thread inside the library call it died in. They are events when the
	 * call acts for the program, but not counted: where it began is known at the end only. */
	VEC(struct ext_touch) last_call;
	uint64_t failing;   /* events up to the failing thread's last */
	uint64_t accesses;
	uint64_t until;     /* events behind the record are kept until then; 0: all */
	uint64_t failing_since; /* see struct ext */
};

/* Is what lies there looked at? */
bool ext_in_focus(const struct ext_survey *s, uint64_t address);

struct ext;
/* Makes the survey of x->o->survey fit x->o: may execute the run, in part or whole. */
err_t ext_survey(struct ext *x);
/* The window's first moment and its last, by x->o. */
void ext_survey_window(struct ext *x);
/* The locations that the window's events access. */
void ext_survey_locations(struct ext *x);

#endif
