/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The same run with fewer context switches, by what depends on what. */
#ifndef CSCHED_ORDER_REGROUP_H
#define CSCHED_ORDER_REGROUP_H

#include "analyzer/order/view.h"

/*
 * Another order of order[0..n), in out, in which every read, every object and
 * every thread sees what it sees in this one. backwards: decided from the end.
 * False: out is incomplete. To be executed before it is believed.
 */
bool order_regroup(const struct order_view *v, const uint32_t *order, size_t n, bool backwards,
		   uint32_t *out);

#endif
