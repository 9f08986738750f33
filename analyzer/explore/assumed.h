/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an exploration takes as it was recorded, and what might be otherwise in another order: an end that
 * says "nothing left" is true under these assumptions, and names them.
 */
#ifndef CSCHED_EXPLORE_ASSUMED_H
#define CSCHED_EXPLORE_ASSUMED_H

#include "common/trace_read.h"

typedef VEC(char *) xpl_assumed;

/* Sentences, malloc'd; from the records of the run alone. */
void xpl_assumed_find(const struct trc *t, xpl_assumed *out);
/* Waits that end by themselves: of an operation; what is assumed of them, where only another order than the recorded has one. */
bool xpl_assumed_timed(unsigned op);
void xpl_assumed_add_timed(xpl_assumed *out);
bool xpl_assumed_has_timed(const xpl_assumed *v);
void xpl_assumed_free(xpl_assumed *v);

#endif
