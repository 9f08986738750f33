/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A violation with fewer calls: each is dropped in turn, and stays away when the same failure is found without it. */
#include "analyzer/testgen/lab.h"

#include <string.h>

struct minimising {
	uint64_t print; /* of the failure */
	lab_wanted *wanted;
	void *arg;
};

static bool is_same(void *arg, const struct failure *f)
{
	const struct minimising *m = arg;

	return failure_print(f) == m->print && (!m->wanted || m->wanted(m->arg, f));
}

/* False: a later call takes what this one makes. */
static bool drop(struct seq *s, unsigned call)
{
	for (unsigned i = call + 1; i < s->n; i++)
		for (unsigned k = 0; k < s->calls[i].nargs; k++) {
			struct seq_value *v = &s->calls[i].args[k];

			if (v->kind != SEQ_LOCAL || v->number < call)
				continue;
			if (v->number == call)
				return false;
			v->number--;
		}
	s->n--;
	memmove(&s->calls[call], &s->calls[call + 1], (s->n - call) * sizeof *s->calls);
	return true;
}

/* Explores t as the search would; *found: it still fails so, and takes v's place. */
static err_t try_test(struct lab *lab, const struct test *t, struct minimising *m, bool *found, struct violation *v)
{
	struct test alone = *t;
	struct trace a, b = { 0 };
	struct violation smaller;

	/* Each side is traced from the state that the prefix leaves. */
	alone.post.n = 0;
	TRY(lab_trace(lab, &alone, JOB_A, &a));
	err_t e = lab_trace(lab, &alone, JOB_B, &b);
	*found = false;
	if (!e && a.end == JOB_DONE && b.end == JOB_DONE)
		e = lab_explore(lab, t, &a, &b, is_same, m, found, &smaller);
	trace_free(&a);
	trace_free(&b);
	if (e || !*found)
		return e;
	smaller.seconds = v->seconds;
	smaller.number = v->number;
	violation_free(v);
	*v = smaller;
	return NULL;
}

/* From the last call to the first: what only a dropped call needed can be dropped, too. */
static err_t shorten(struct lab *lab, struct minimising *m, enum job_part part, struct violation *v)
{
	/* A thread without calls is none; the calls that set the library up are asked for. */
	unsigned least = part == JOB_PREFIX ? lab->setup.n : 0;
	const struct seq *now = part == JOB_PREFIX ? &v->test.prefix : part == JOB_A ? &v->test.a : &v->test.b;

	for (unsigned i = now->n; i-- > least && !lab_expired(lab);) {
		struct test t = v->test;
		struct seq *s = part == JOB_PREFIX ? &t.prefix : part == JOB_A ? &t.a : &t.b;
		bool found;

		if (part == JOB_PREFIX ? i == t.object_call : s->n == 1)
			continue;
		if (!drop(s, i))
			continue;
		if (part == JOB_PREFIX && i < t.object_call)
			t.object_call--;
		TRY(try_test(lab, &t, m, &found, v));
	}
	return NULL;
}

err_t lab_minimise(struct lab *lab, lab_wanted *wanted, void *arg, struct violation *v)
{
	struct minimising m = { failure_print(&v->failure), wanted, arg };
	unsigned before;

	do {
		before = test_calls(&v->test);
		TRY(shorten(lab, &m, JOB_PREFIX, v));
		TRY(shorten(lab, &m, JOB_A, v));
		TRY(shorten(lab, &m, JOB_B, v));
	} while (test_calls(&v->test) < before);
	return NULL;
}
