/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A data race at two given places: one thread stops right before its access, the other one makes its own, and nothing that
 * either does keeps the two apart.
 */
#include "analyzer/testgen/lab_internal.h"

#include <string.h>

#define MOST_RUNS 24 /* pairs of accesses of one test */

static bool is_access(const struct job_event *e)
{
	return e->kind == JOB_READ || e->kind == JOB_WRITE || e->kind == JOB_FREE;
}

static bool changes(const struct job_event *e)
{
	return e->kind != JOB_READ;
}

static bool races(const struct job_event *x, const struct job_event *y)
{
	uint64_t n = x->size ? x->size : 1, m = y->size ? y->size : 1;

	return is_access(x) && is_access(y) && (changes(x) || changes(y)) && x->address < y->address + m &&
	       y->address < x->address + n;
}

/* The write of an instruction that is atomic by itself; two of those do not race. */
static bool is_atomic(const struct trace *t, uint32_t event)
{
	const struct job_event *e = &t->events[event];

	return event && e[-1].kind == JOB_ATOMIC && e[-1].step == e->step && e[-1].address == e->address;
}

/* The same access in the run: there, memory of their own lies elsewhere for each. */
static const struct job_event *in_run(const struct job_thread *t, const struct job_event *e)
{
	for (uint32_t i = 0; i < t->nevents; i++)
		if (t->events[i].step == e->step && t->events[i].pc == e->pc && t->events[i].kind == e->kind)
			return &t->events[i];
	return NULL;
}

/* A stops right before x, and B makes y; or B stops right before y, and A makes x: what either holds may keep out the other. */
static err_t try_accesses(struct lab *lab, const struct test *t, const struct job_event *x, const struct job_event *y,
			  bool *found, struct violation *out)
{
	const struct job *j = lab->server.job;

	for (uint8_t first = 0; first < 2 && !*found; first++) {
		uint8_t other = !first;
		struct candidate c = { .segments = { { first, first ? y->step : x->step },
						     { other, (first ? x->step : y->step) + 1 },
						     { first, JOB_NEVER }, { other, JOB_NEVER } },
				       .nsegments = 4 };

		TRY(lab_run(lab, t, &c, false));
		const struct job_event *a = in_run(&j->thread[0], x), *b = in_run(&j->thread[1], y);
		/* Who had to wait was kept away. */
		if (!a || !b || !races(a, b) || j->thread[0].blocked || j->thread[1].blocked)
			continue;
		*out = (struct violation){ .test = *t, .nsegments = c.nsegments, .race = true };
		memcpy(out->segments, c.segments, c.nsegments * sizeof *c.segments);
		out->failure = (struct failure){ .end = JOB_DONE, .nframes = 2, .frames = { x->pc, y->pc } };
		lab_make_edges(j, out);
		*found = true;
	}
	return NULL;
}

err_t lab_find_race(struct lab *lab, const struct test *t, const struct trace *a, const struct trace *b,
		    const struct lab_race *r, bool *found, struct violation *out)
{
	unsigned runs = 0;

	for (uint32_t i = 0; i < a->nevents && !*found; i++)
		for (uint32_t k = 0; k < b->nevents && !*found && runs < MOST_RUNS && !lab_expired(lab); k++) {
			if (!races(&a->events[i], &b->events[k]) || (is_atomic(a, i) && is_atomic(b, k)) || !r->first(r->arg, a->events[i].pc) ||
			    !r->second(r->arg, b->events[k].pc))
				continue;
			runs++;
			TRY(try_accesses(lab, t, &a->events[i], &b->events[k], found, out));
		}
	return NULL;
}
