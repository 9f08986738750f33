/* Symbolic traces written down in a test, and what is known of their answers. */
#ifndef TESTS_LIB_KNOWN_H
#define TESTS_LIB_KNOWN_H

#include "analyzer/schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline struct sym_trace *parse(const char *text)
{
	FILE *f = fmemopen((char *)text, strlen(text), "r");
	struct sym_trace *t;
	err_t e = sym_read(f, "known.sym", &t);

	fclose(f);
	if (e) {
		printf("not ok %s\n", e->msg);
		exit(1);
	}
	return t;
}

static inline struct sched_answer *solve(const struct sym_trace *t, enum sched_model model)
{
	struct sched_options o;
	struct sched_answer *a;
	err_t e;

	sched_options_init(&o);
	o.model = model;
	o.alternates = 4;
	e = sched_solve(t, &o, &a);
	if (e) {
		printf("not ok %s\n", e->msg);
		exit(1);
	}
	return a;
}

static inline bool has_edge(const struct sched_answer *a, uint32_t t1, uint32_t i1, uint32_t t2,
		     uint32_t i2)
{
	for (size_t k = 0; k < a->ncause; k++)
		if (a->cause[k].before.thread == t1 && a->cause[k].before.index == i1 &&
		    a->cause[k].after.thread == t2 && a->cause[k].after.index == i2)
			return true;
	return false;
}

#endif
