/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Orders solved for from two hand-made traces: the turns that make a pointer null, a block freed, a value another one. */
#include "analyzer/testgen/solve.h"
#include "tests/lib/check.h"

#include <string.h>

#define POINTER 0x1000u
#define FLAG 0x1008u
#define BLOCK 0x5000u
#define LOCK 0x2000u

/* Steps are ten apart, so that it shows where a turn ends. */
static struct job_event at(uint32_t step, enum job_event_kind kind, uint64_t address, uint64_t value)
{
	return (struct job_event){ .address = address, .size = 8, .step = step, .pc = step, .kind = (uint8_t)kind, .known = true,
				   .value = value };
}

static struct trace trace(struct job_event *e, uint32_t n)
{
	return (struct trace){ .events = e, .nevents = n, .nsteps = e[n - 1].step + 10, .end = JOB_DONE };
}

static bool at_step_40(void *arg, uint64_t place)
{
	(void)arg;
	return place == 40;
}

static candidate_list_t solve(struct trace a, struct trace b, bool pointer, uint64_t *asked)
{
	struct solve_failure f = { at_step_40, at_step_40, NULL, pointer };
	candidate_list_t list = { 0 };

	*asked = 0;
	solve_orders(&a, &b, &f, 4, &list, asked);
	return list;
}

/* A checks a pointer at step 10, reads it again at 30 and uses it at 40; B sets it to null at 20. */
static void null_pointer(void)
{
	struct job_event a[] = { at(10, JOB_READ, POINTER, BLOCK), at(30, JOB_READ, POINTER, BLOCK), at(40, JOB_READ, BLOCK, 7) };
	struct job_event b[] = { at(20, JOB_WRITE, POINTER, 0), at(50, JOB_WRITE, FLAG, 1) };
	uint64_t asked;
	candidate_list_t l = solve(trace(a, 3), trace(b, 2), true, &asked);
	const struct job_segment *s = l.n ? l.v[0].segments : NULL;

	CHECK(l.n >= 1 && asked >= 1, "an order is found");
	CHECK(s && s[0].thread == 0 && s[0].until > 10 && s[0].until <= 30, "A stops behind the check, before it reads again");
	CHECK(s && s[1].thread == 1 && s[1].until > 20 && s[1].until <= 50, "B sets the pointer to null, and stops");
	CHECK(s && s[2].thread == 0 && s[2].until == JOB_NEVER, "A goes on");
	vec_free(&l);
}

/* The same, and both hold a lock around it: there is no such order. */
static void locked(void)
{
	struct job_event a[] = { at(5, JOB_LOCK, LOCK, 0), at(10, JOB_READ, POINTER, BLOCK), at(30, JOB_READ, POINTER, BLOCK),
				 at(40, JOB_READ, BLOCK, 7), at(45, JOB_UNLOCK, LOCK, 0) };
	struct job_event b[] = { at(5, JOB_LOCK, LOCK, 0), at(20, JOB_WRITE, POINTER, 0), at(25, JOB_UNLOCK, LOCK, 0),
				 at(26, JOB_RETURNED, 0, 0) };
	uint64_t asked;
	candidate_list_t l = solve(trace(a, 5), trace(b, 4), true, &asked);

	CHECK(asked >= 1 && !l.n, "a lock that both hold leaves no order");
	vec_free(&l);
	/* A lets go between the check and the use. */
	struct job_event c[] = { at(5, JOB_LOCK, LOCK, 0), at(10, JOB_READ, POINTER, BLOCK), at(15, JOB_UNLOCK, LOCK, 0),
				 at(25, JOB_LOCK, LOCK, 0), at(30, JOB_READ, POINTER, BLOCK), at(40, JOB_READ, BLOCK, 7) };
	l = solve(trace(c, 6), trace(b, 4), true, &asked);
	const struct job_segment *s = l.n ? l.v[0].segments : NULL;
	CHECK(s && s[0].until > 15 && s[0].until <= 25, "one that is released in between does: A stops outside of it");
	CHECK(s && s[1].thread == 1 && s[1].until > 20, "and B goes on until it has released it");
	vec_free(&l);
}

/* A has the pointer in a register; B frees what it points to. */
static void freed(void)
{
	struct job_event a[] = { at(10, JOB_READ, POINTER, BLOCK), at(20, JOB_READ, BLOCK, 1), at(40, JOB_READ, BLOCK + 8, 2) };
	struct job_event b[] = { at(20, JOB_FREE, BLOCK, 0), at(30, JOB_RETURNED, 0, 0) };
	uint64_t asked;

	b[0].size = 32;
	candidate_list_t l = solve(trace(a, 3), trace(b, 2), true, &asked);
	const struct job_segment *s = l.n ? l.v[0].segments : NULL;
	CHECK(s && s[0].thread == 0 && s[0].until > 20 && s[0].until <= 40, "A stops between its two uses of the block");
	CHECK(s && s[1].thread == 1 && s[1].until > 20, "B frees it");
	vec_free(&l);
}

/* An abort depends on a value; what B writes is not seen by a read elsewhere. */
static void value(void)
{
	struct job_event a[] = { at(10, JOB_READ, FLAG, 5), at(40, JOB_READ, FLAG, 5) };
	struct job_event b[] = { at(20, JOB_WRITE, FLAG, 6), at(30, JOB_WRITE, FLAG, 5) };
	struct job_event elsewhere[] = { at(20, JOB_WRITE, POINTER, 6) };
	uint64_t asked;
	candidate_list_t l = solve(trace(a, 2), trace(b, 2), false, &asked);
	const struct job_segment *s = l.n ? l.v[0].segments : NULL;

	CHECK(s && s[0].thread == 0 && s[0].until > 10 && s[0].until <= 40, "A stops between its two reads");
	CHECK(s && s[1].thread == 1 && s[1].until > 20 && s[1].until <= 30, "B stops before it writes the old value again");
	vec_free(&l);
	l = solve(trace(a, 2), trace(elsewhere, 1), false, &asked);
	CHECK(!l.n && !asked, "where nothing of it is written there is no question");
	vec_free(&l);
}

int main(void)
{
	null_pointer();
	locked();
	freed();
	value();
	CHECK_END();
}
