/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files that run tests share. */
#ifndef CSCHED_TESTGEN_LAB_INTERNAL_H
#define CSCHED_TESTGEN_LAB_INTERNAL_H

#include "analyzer/testgen/lab.h"

/* Executes an interleaving; the answer is in lab->server.job. fast: what need not stop any more is not stepped through. */
err_t lab_run(struct lab *lab, const struct test *t, const struct candidate *c, bool fast);
/* The orderings that make v's segments happen, from a run that was not fast. */
void lab_make_edges(const struct job *j, struct violation *v);

#endif
