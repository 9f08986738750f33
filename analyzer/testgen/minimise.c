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

/* Calls of the prefix are known to all parts by their numbers. False: one takes what this call makes. */
static bool renumber(struct seq *s, unsigned call)
{
	for (unsigned i = 0; i < s->n; i++)
		for (unsigned k = 0; k < s->calls[i].nargs; k++) {
			struct seq_value *v = &s->calls[i].args[k];

			if (v->kind == SEQ_PREFIX && v->number == call)
				return false;
			v->number -= v->kind == SEQ_PREFIX && v->number > call;
		}
	return true;
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
	struct trace traces[JOB_THREADS] = { 0 };
	const struct trace *of[JOB_THREADS];
	struct violation smaller;
	bool good = true;
	err_t e = NULL;

	/* Each side is traced from the state that the prefix leaves. */
	alone.post.n = 0; /* they are not traced */
	*found = false;
	for (unsigned i = 0; i < JOB_THREADS; i++)
		of[i] = &traces[i];
	for (unsigned i = 0; i < test_threads(t) && !e && good; i++) {
		e = lab_trace(lab, &alone, JOB_A + i, &traces[i]);
		good = traces[i].end == JOB_DONE;
	}
	if (!e && good)
		e = lab_explore(lab, t, of, is_same, m, found, &smaller);
	for (unsigned i = 0; i < JOB_THREADS; i++)
		trace_free(&traces[i]);
	if (e || !*found)
		return e;
	smaller.seconds = v->seconds;
	smaller.number = v->number;
	violation_free(v);
	*v = smaller;
	return NULL;
}

/* Those that are left stand in a row. */
static void close_ranks(struct test *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < JOB_THREADS; i++)
		if (t->part[i].n)
			t->part[n++] = t->part[i];
	while (n < JOB_THREADS)
		t->part[n++].n = 0;
}

static bool renumber_all(struct test *t, unsigned call)
{
	for (unsigned p = JOB_PREFIX; p < JOB_PARTS; p++)
		if (!renumber(test_part(t, p), call))
			return false;
	return true;
}

/* A thread without calls is none, and two are needed; what makes and ends the object stays. */
static bool is_needed(const struct lab *lab, const struct test *t, const struct seq *s, enum job_part part, unsigned i)
{
	if (part == JOB_PREFIX)
		return i == t->object_call;
	if (part == JOB_POST)
		return lab->api->functions.v[s->calls[i].function].role != API_METHOD;
	return s->n == 1 && test_threads(t) == 2;
}

/* From the last call to the first: what only a dropped call needed can be dropped, too. */
static err_t shorten(struct lab *lab, struct minimising *m, enum job_part part, struct violation *v)
{
	/* The calls that set the library up are asked for. */
	unsigned least = part == JOB_PREFIX ? lab->asked : 0;

	for (unsigned i = test_part(&v->test, part)->n; i-- > least && !lab_expired(lab);) {
		struct test t = v->test;
		struct seq *s = test_part(&t, part);
		bool found;

		/* A thread that went away left its number to another one. */
		if (i >= s->n || is_needed(lab, &t, s, part, i))
			continue;
		if (!drop(s, i) || (part == JOB_PREFIX && !renumber_all(&t, i)))
			continue;
		close_ranks(&t);
		if (part == JOB_PREFIX && t.object_call != TEST_NO_OBJECT && i < t.object_call)
			t.object_call--;
		TRY(try_test(lab, &t, m, &found, v));
	}
	return NULL;
}

err_t lab_minimise(struct lab *lab, lab_wanted *wanted, void *arg, struct violation *v)
{
	struct minimising m = { failure_print(&v->failure), wanted, arg };
	struct seq looks = lab->looks;
	bool guard = lab->server.guard;
	err_t e = NULL;
	unsigned before;

	/* Those that it needs are in the test by now. */
	lab->looks.n = 0;
	lab->server.guard = v->guarded;
	do {
		before = test_calls(&v->test);
		e = shorten(lab, &m, JOB_POST, v);
		for (unsigned part = JOB_PREFIX; part < JOB_POST && !e; part++)
			e = shorten(lab, &m, (enum job_part)part, v);
	} while (!e && test_calls(&v->test) < before);
	lab->looks = looks;
	lab->server.guard = guard;
	return e;
}
