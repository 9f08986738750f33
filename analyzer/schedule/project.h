/*
 * Looking ahead, one variable at a time.
 *
 * Leave out everything but the accesses to one variable: if even that cannot
 * be brought to an end from here (a ring buffer's index that no remaining
 * thread will find where its path needs it), no order of the whole can. Such
 * dead ends show up long after the decision that caused them, and a search
 * that only steps back one decision at a time drowns in them.
 *
 * What other variables decide is taken to be all right, so "no" is a proof and
 * "yes" is not.
 */
#ifndef CSCHED_SCHEDULE_PROJECT_H
#define CSCHED_SCHEDULE_PROJECT_H

#include "analyzer/order/check.h"

struct projections;

/*
 * For the variables that have few enough states, and sequential consistency.
 * failing: only orders that fail count as an end.
 */
struct projections *project_new(const struct order_view *v, const bool *var_matters, bool failing);
void project_free(struct projections *p);
/* False: from the state of c no complete order exists. */
bool project_hopeful(struct projections *p, const struct order_check *c);

#endif
