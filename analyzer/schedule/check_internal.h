/* The checker's state, for check.c and check_sync.c only. */
#ifndef CSCHED_SCHEDULE_CHECK_INTERNAL_H
#define CSCHED_SCHEDULE_CHECK_INTERNAL_H

#include "analyzer/schedule/check.h"
#include "common/vec.h"

/* A shared acquisition not yet released. */
struct share {
	uint32_t object, thread, count;
};

/* A signal nobody has taken, sent while someone waited. */
struct token {
	uint32_t cond;
	uint64_t when;
};

/*
 * For condition variables somebody waits on to the end: which signals went
 * out and who else could have taken them decides whether he is stuck.
 */
struct cond_log {
	uint32_t cond;
	uint64_t begin; /* signal: when; wait: when it began */
	uint64_t end;   /* signal: 0; wait: when it woke up, UINT64_MAX while it waits */
	uint32_t thread;
};

struct check {
	const struct sched_view *v;
	enum check_end end;
	uint64_t *mem;              /* by variable */
	struct check_object *object;
	uint64_t *broadcast;        /* by object: when last */
	uint32_t *waiting;          /* by object: threads between release and wake-up */
	uint32_t *next;             /* by chain: position of its next event */
	uint64_t *wait_since;       /* by thread */
	int64_t *round;             /* by thread: of its last barrier arrival */
	VEC(struct share) shares;
	VEC(struct token) tokens;
	VEC(struct cond_log) log;
	bool *logged;               /* by object; read-only after check_new() */
	uint64_t now;               /* events executed so far + 1 */
	uint64_t latest;            /* largest lower time bound so far */
	uint32_t went_on;
	uint32_t broken;
	uint32_t diverge;           /* see check_set_diverge(), or VIEW_NONE */
	uint32_t relax;             /* see check_set_relax(), or VIEW_NONE */
	bool owner_of_shared;       /* false for a saved state */
	uint64_t *values;           /* by symbol; shared with saved states */
	struct expr_memo *memo;     /* likewise */
};

/* Synchronisation (check_sync.c): let the event happen; false, and nothing changed, if not now. */
bool check_sync_step(struct check *c, uint32_t event);
/* Would it let it happen now? Changes nothing. */
bool check_sync_ready(struct check *c, uint32_t event);
void check_release_all(struct check *c, uint32_t thread);

#endif
