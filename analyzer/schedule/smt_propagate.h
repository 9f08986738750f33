/* The acyclicity propagator: the only file that knows Z3's callbacks. */
#ifndef CSCHED_SCHEDULE_SMT_PROPAGATE_H
#define CSCHED_SCHEDULE_SMT_PROPAGATE_H

#include "analyzer/schedule/smt.h"

struct smt_propagator *smt_propagator_new(struct smt *s);
void smt_propagator_free(struct smt_propagator *p);
/* Numbers of the atoms that were true in the last complete assignment. */
const uint32_t *smt_propagator_true(const struct smt_propagator *p, size_t *n);

#endif
