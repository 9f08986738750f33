/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Solving for the order in which a call fails at a given point. */
#ifndef CSCHED_TESTGEN_SOLVE_H
#define CSCHED_TESTGEN_SOLVE_H

#include "analyzer/testgen/lab.h"

/* Is this place of the library (an offset) at the point of failure? */
typedef bool solve_is_there(void *arg, uint64_t place);

struct solve_failure {
	solve_is_there *at_line, *in_function; /* the second one is asked where the first one is nowhere true */
	void *arg;
	bool bad_pointer; /* it fails because of an address; else because of any value */
};

/*
 * Orders in which thread 0 (trace a) comes to the point of failure by the path of its trace, and thread 1 (b) has made one
 * of the conditions true under which it fails there: a pointer that is used there is null, what it points to was freed, or
 * a value that is read there is another one. At most so many, as orders to be executed; *asked: questions to the solver.
 */
void solve_orders(const struct trace *a, const struct trace *b, const struct solve_failure *f, unsigned most,
		  candidate_list_t *out, uint64_t *asked);

#endif
