/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A window: the stretch of the trace whose order is free. Before it the order
 * is committed, and all that is left of it is a state to start from. Windows
 * are cut out of a total order, so per chain they are a run of events.
 */
#ifndef CSCHED_ORDER_WINDOW_H
#define CSCHED_ORDER_WINDOW_H

#include "analyzer/order/check.h"

struct order_window {
	const struct order_view *v;
	uint32_t *lo, *hi;  /* by chain: positions [lo, hi) */
	struct order_check *start; /* state before it; owned */
	bool free_init;     /* unknown initial values are for the solver to choose */
	bool to_end;        /* nothing comes after it */
	enum order_end end;
	uint32_t n;
	uint32_t *events;   /* chain by chain */
	uint32_t *local;    /* event -> its index in events[], or SYM_NONE */
	size_t *place;    /* by local index: where it stands in the order it was made of */
	uint32_t relax;     /* see order_check_set_relax(), or SYM_NONE */
	uint32_t diverge;   /* view.conds[] number whose negation is looked for, or SYM_NONE:
			     * its thread then ends where that branch is */
};


/*
 * The window of order[from..to); c, which the window takes over, has executed
 * order[0..from). Pending events belong to it when it reaches the end. trim: where a thread
 * diverges, only what the failing thread needs stays of what comes behind that.
 */
struct order_window *order_window_new(struct order_check *c, const uint32_t *order, size_t from, size_t to,
				      size_t n, enum order_end end, uint32_t diverge, bool trim);
void order_window_free(struct order_window *w);

/*
 * What order[0..n), which fails, still has to hold when the thread of this branch goes elsewhere
 * there; cut: by thread, the first event left out. False: it cannot be left out, or the branch
 * is the failing thread's own. (trim.c)
 */
bool order_trim(const struct order_view *v, const uint32_t *order, size_t n, uint32_t diverge,
		uint32_t *cut);

static inline bool order_window_has(const struct order_window *w, uint32_t event)
{
	return w->local[event] != SYM_NONE;
}

#endif
