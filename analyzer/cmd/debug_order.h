/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Another order of a recorded run for csched debug: the failing one of the report, or the passing one. */
#ifndef CSCHED_CMD_DEBUG_ORDER_H
#define CSCHED_CMD_DEBUG_ORDER_H

#include "analyzer/debug/target.h"
#include "analyzer/explain/explain.h"

/*
 * Explains the trace and makes its run the order asked for. *stand: where one wants to be first: where the failure is decided, or
 * the end. *e owns what *d refers to. x has to outlive it.
 */
err_t debug_order_open(const char *path, bool failing, struct explain_options *x, struct explanation **e, struct dbg *d,
		       uint64_t *stand);

#endif
