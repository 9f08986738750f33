/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checker's state, for check.c and check_sync.c only. */
#ifndef CSCHED_ORDER_CHECK_INTERNAL_H
#define CSCHED_ORDER_CHECK_INTERNAL_H

#include "analyzer/order/check.h"
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

struct order_check {
	const struct order_view *v;
	enum order_end end;
	uint64_t *mem;              /* by variable */
	struct order_check_object *object;
	uint64_t *broadcast;        /* by object: when last */
	uint32_t *waiting;          /* by object: threads between release and wake-up */
	uint32_t *next;             /* by chain: position of its next event */
	uint64_t *wait_since;       /* by thread */
	int64_t *round;             /* by thread: of its last barrier arrival */
	VEC(struct share) shares;
	VEC(struct token) tokens;
	VEC(struct cond_log) log;
	bool *logged;               /* by object; read-only after order_check_new() */
	uint64_t now;               /* events executed so far + 1 */
	uint64_t latest;            /* largest lower time bound so far */
	uint32_t went_on;
	uint32_t broken;
	uint32_t diverge;           /* see order_check_set_diverge(), or SYM_NONE */
	uint32_t relax;             /* see order_check_set_relax(), or SYM_NONE */
	bool owner_of_shared;       /* false for a saved state */
	uint64_t *values;           /* by symbol; shared with saved states */
	struct expr_memo *memo;     /* likewise */
};

/* Synchronisation (check_sync.c): let the event happen; false, and nothing changed, if not now. */
bool order_sync_step(struct order_check *c, uint32_t event);
/* Would it let it happen now? Changes nothing. */
bool order_sync_ready(struct order_check *c, uint32_t event);
void order_release_all(struct order_check *c, uint32_t thread);

#endif
