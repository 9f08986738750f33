/*
 * Where the shared events of a run lie: the first two executions of the extraction, kept
 * by the caller so that a further window costs neither of them again.
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

/* More events than the schedule side can show anyone; a bound on memory. */
#define EXT_MAX_EVENTS 200000

struct ext_survey {
	bool done;
	bool onward;        /* it went on behind the record */
	uint64_t base;      /* the stretch begins here; 0: the whole run */
	struct share *share;
	uint64_t *times;    /* ring of the last EXT_MAX_EVENTS events ... */
	uint32_t *threads;  /* ... whose they are ... */
	uint64_t *places;   /* ... and where: address << 4 | size */
	uint64_t n;         /* events of the stretch */
	uint64_t computed;  /* events behind the record */
	uint64_t failing;   /* events up to the failing thread's last */
	uint64_t accesses;
	uint64_t until;     /* events behind the record are kept until then; 0: all */
	uint64_t failing_since; /* see struct ext */
};

struct ext;
/* Makes the survey of x->o->survey fit x->o: may execute the run, in part or whole. */
err_t ext_survey(struct ext *x);
/* The window's first moment and its last, by x->o. */
void ext_survey_window(struct ext *x);
/* The accesses of the window's events that were recorded. */
void ext_survey_extents(struct ext *x, void (*add)(struct ext *, uint64_t address, unsigned size));

#endif
