/* Programs whose answer is known by heart. */
#include "analyzer/schedule/schedule.h"
#include "common/vec.h"
#include "tests/lib/check.h"
#include "tests/lib/known.h"

#include <stdlib.h>
#include <string.h>

static bool has_delay(const struct sched_answer *a, uint32_t thread, uint32_t store, uint32_t load)
{
	for (size_t k = 0; k < a->ndelays; k++)
		if (a->delays[k].store.thread == thread && a->delays[k].load.thread == thread &&
		    a->delays[k].store.index == store && a->delays[k].load.index == load)
			return true;
	return false;
}

static const char store_buffering[] =
	"csched-sym 1\nvar x 32 init 0\nvar y 32 init 0\n"
	"thread T0\n write x 1\n%s read y a\n"
	"thread T0.1\n write y 1\n%s read x b\n exit\n"
	"thread T0.2\n join T0.1\n fail\n"
	"failure assert thread T0.2 if (band (eq a 0) (eq b 0))\n";

static void litmus(void)
{
	char text[1000];
	struct sym_trace *t;
	struct sched_answer *a;

	snprintf(text, sizeof text, store_buffering, "", "");
	t = parse(text);
	a = solve(t, SCHED_SC);
	CHECK(!a->found && !a->timed_out && a->why, "store buffering cannot fail under SC: %s", a->why);
	sched_answer_free(a);
	a = solve(t, SCHED_TSO);
	CHECK(a->found && a->nalternates && a->cause_minimal && a->ncause == 2,
	      "store buffering fails under TSO, by two orderings");
	CHECK(a->ndelays == 2 && has_delay(a, 0, 0, 1) && has_delay(a, 1, 0, 1),
	      "store buffering: both loads overtook their store");
	sched_answer_free(a);
	sym_trace_free(t);
	snprintf(text, sizeof text, store_buffering, " fence\n", " fence\n");
	t = parse(text);
	a = solve(t, SCHED_TSO);
	CHECK(!a->found, "fences on both sides forbid it");
	sched_answer_free(a);
	sym_trace_free(t);
	snprintf(text, sizeof text, store_buffering, " fence\n", "");
	t = parse(text);
	a = solve(t, SCHED_TSO);
	CHECK(a->found && a->ndelays == 1 && has_delay(a, 1, 0, 1),
	      "one fence is not enough: the other one is missing");
	sched_answer_free(a);
	sym_trace_free(t);
}

/* Flags raised, the other's found down, both inside. */
static const char dekker[] =
	"csched-sym 1\nvar mine 32 init 0\nvar yours 32 init 0\nvar owner 32 init 7\n"
	"thread T0\n write mine 1\n read yours a\n cond (eq a 0)\n write owner 0\n"
	" read owner o\n fail\n"
	"thread T0.1\n write yours 1\n read mine b\n cond (eq b 0)\n write owner 1\n"
	"failure assert thread T0 text \"owner == me\" if (bnot (eq o 0))\n";

/* Both politely give way and look; the update in between is lost. */
static const char peterson[] =
	"csched-sym 1\nvar mine 8 init 0\nvar yours 8 init 0\nvar turn 8 init 0\n"
	"var n 32 init 0\n"
	"thread T0\n write mine 1\n write turn 1\n read yours a\n cond (eq a 0)\n"
	" read n x\n write n (add x 1)\n write mine 0\n exit\n"
	"thread T0.1\n write yours 1\n write turn 0\n read mine b\n cond (eq b 0)\n"
	" read n y\n write n (add y 1)\n write yours 0\n exit\n"
	"thread T0.2\n join T0\n join T0.1\n read n r\n fail\n"
	"failure assert thread T0.2 text \"n == 2\" if (eq r 1)\n";

static void mutual_exclusion(void)
{
	struct sym_trace *t = parse(dekker);
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(!a->found && !a->ndelays, "Dekker's flags hold under SC");
	sched_answer_free(a);
	a = solve(t, SCHED_TSO);
	CHECK(a->found && a->ncause && a->cause_minimal && a->nalternates,
	      "Dekker's flags fail under TSO: cause and alternate");
	CHECK(a->ndelays == 2 && has_delay(a, 0, 0, 1) && has_delay(a, 1, 0, 1),
	      "Dekker's flags: each look overtook the raising of the flag");
	sched_answer_free(a);
	sym_trace_free(t);
	t = parse(peterson);
	a = solve(t, SCHED_SC);
	CHECK(!a->found, "Peterson's algorithm holds under SC");
	sched_answer_free(a);
	a = solve(t, SCHED_TSO);
	CHECK(a->found && a->cause_minimal && a->ndelays == 2 && has_delay(a, 0, 0, 2) &&
	      has_delay(a, 1, 0, 2), "Peterson's algorithm: each look overtook the raising of the flag, "
				     "not just the store of the turn before it");
	sched_answer_free(a);
	sym_trace_free(t);
}

/* It fails in program order already: no fence is called for. */
static void no_fence(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar x 32 init 0\nvar y 32 init 0\n"
		"thread T0\n write y 1\n read x a\n fail\nthread T0.1\n write x 1\n read y b\n"
		"failure assert thread T0 if (eq a 1)\n");
	struct sched_answer *a = solve(t, SCHED_TSO);

	CHECK(a->found && a->ncause && !a->ndelays, "a race under TSO is not blamed on store buffers");
	sched_answer_free(a);
	sym_trace_free(t);
}

/* Message passing keeps its order under TSO: stores leave the buffer in order. */
static void message_passing(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar data 32 init 0\nvar flag 32 init 0\n"
		"thread T0\n write data 1\n write flag 1\n"
		"thread T0.1\n read flag f\n cond (eq f 1)\n read data d\n fail\n"
		"failure assert thread T0.1 if (eq d 0)\n");
	struct sched_answer *a = solve(t, SCHED_TSO);

	CHECK(!a->found && strstr(a->why, "cannot hold together"), "message passing holds: %s", a->why);
	sched_answer_free(a);
	sym_trace_free(t);
}

static void lost_update(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar n 32 init 0\n"
		"thread T0\n fork T0.1\n fork T0.2\n join T0.1\n join T0.2\n read n r\n fail\n"
		"thread T0.1\n start\n read n a\n write n (add a 1)\n exit\n"
		"thread T0.2\n start\n read n b\n write n (add b 1)\n exit\n"
		"failure assert thread T0 text \"n == 2\" if (bnot (eq r 2))\n");
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(a->found && a->failing.fails && a->failing.n == 14, "lost update: failing schedule");
	CHECK(a->ncause == 2 && a->cause_minimal, "lost update: two orderings cause it");
	CHECK((has_edge(a, 1, 1, 2, 2) && has_edge(a, 2, 1, 1, 2)) ||
	      (has_edge(a, 1, 1, 2, 2) && has_edge(a, 2, 2, 1, 2)) ||
	      (has_edge(a, 2, 1, 1, 2) && has_edge(a, 1, 2, 2, 2)),
	      "lost update: a read before the other's write, and before its own");
	CHECK(a->nalternates >= 1 && a->alternates[0].single && !a->alternates[0].path_differs &&
	      !a->alternates[0].order.fails, "lost update: turning one pair helps");
	for (size_t i = 1; i < a->nalternates; i++)
		CHECK(a->alternates[i].distance >= a->alternates[i - 1].distance,
		      "alternates: nearest first");
	sched_answer_free(a);
	sym_trace_free(t);
}

static void deadlock(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nobject a mutex\nobject b mutex\n"
		"thread T0\n lock a\n unlock a\n lock a\n lock b\n"
		"thread T0.1\n lock b\n lock a\n"
		"failure deadlock\nblocked T0 3\nblocked T0.1 1\n");
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(a->found && a->failing.n == 4, "deadlock: the acquisitions that never came are left out");
	CHECK(a->ncause == 2 && a->cause_minimal && has_edge(a, 0, 2, 1, 1) &&
	      has_edge(a, 1, 0, 0, 3), "deadlock: the acquisition order is the cause");
	CHECK(a->nalternates >= 1 && a->alternates[0].order.n == 6,
	      "deadlock: an order in which everybody gets through");
	sched_answer_free(a);
	sym_trace_free(t);
}

/* The same with semaphores of one: who gets both gives them back. Not where they count what is there. */
static void deadlock_of_semaphores(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nobject a sem count 1\nobject b sem count 1\n"
		"thread T0\n semwait a\n sempost a\n semwait a\n semwait b\n"
		"thread T0.1\n semwait b\n semwait a\n"
		"failure deadlock\nblocked T0 3\nblocked T0.1 1\n");
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(a->found && a->ncause == 2 && a->cause_minimal && has_edge(a, 0, 2, 1, 1) &&
	      has_edge(a, 1, 0, 0, 3), "deadlock of semaphores: the order in which they are taken is the cause");
	CHECK(a->nalternates >= 1 && a->alternates[0].order.n == 6,
	      "deadlock of semaphores: an order in which everybody gets through");
	sched_answer_free(a);
	sym_trace_free(t);
	t = parse("csched-sym 1\nobject items sem count 0\n"
		  "thread T0\n sempost items\n exit\nthread T0.1\n semwait items\n exit\nthread T0.2\n semwait items\n"
		  "failure deadlock\nblocked T0.2 0\n");
	a = solve(t, SCHED_SC);
	CHECK(a->found && !a->nalternates, "one item for two: one of them waits, whoever comes first");
	sched_answer_free(a);
	sym_trace_free(t);
}

/* The signal came before the wait: the waiter sleeps for ever. */
static void lost_wakeup(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nobject m mutex\nobject c cond\n"
		"thread T0\n lock m\n unlock m\n wait c link 1\n"
		"thread T0.1\n signal c\n exit\n"
		"failure deadlock\nblocked T0 2\n");
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(a->found && a->ncause == 1 && has_edge(a, 1, 0, 0, 1),
	      "lost wake-up: the signal before the wait is the cause");
	CHECK(a->nalternates == 1 && a->alternates[0].order.n == 5, "lost wake-up: it can be heard");
	sched_answer_free(a);
	sym_trace_free(t);
}

/* if (p == NULL) abort(): the branch decides, not a condition of the failure. */
static void branch_decides(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar p 64 init 0\nobject m mutex\n"
		"thread T0\n write p 4096\n"
		"thread T0.1\n lock m\n read p r\n cond (eq r 0)\n fail\n"
		"failure abort thread T0.1\n");
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(a->found && a->ncause == 1 && has_edge(a, 1, 1, 0, 0), "abort behind a branch: its read");
	CHECK(a->nalternates == 1 && a->alternates[0].path_differs && !a->deterministic &&
	      a->alternates[0].order.n == 3, "the alternate ends where the branch goes elsewhere");
	sched_answer_free(a);
	sym_trace_free(t);
	t = parse("csched-sym 1\nvar p 64 init 0\nthread T0\n read p r\n cond (eq r 0)\n fail\n"
		  "thread T0.1\n write p 0\n"
		  "failure abort thread T0\n");
	a = solve(t, SCHED_SC);
	CHECK(a->found && a->deterministic && !a->nalternates && strstr(a->why, "deterministic"),
	      "no order helps: %s", a->why);
	sched_answer_free(a);
	sym_trace_free(t);
}

/* Along the recorded path it always fails; another thread's branch is to blame. */
static void foreign_branch(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar closed 32 init 0\nvar backlog 32 init 0\nobject m mutex\n"
		"thread T0\n fork T0.1\n lock m\n write closed 1\n unlock m\n join T0.1\n"
		" read backlog b\n fail\n"
		"thread T0.1\n lock m\n read closed c\n cond (eq c 1)\n read backlog d\n"
		" write backlog (add d 1)\n unlock m\n exit\n"
		"failure assert thread T0 if (bnot (eq b 0))\n");
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(a->found && a->ncause == 1 && a->cause_minimal && has_edge(a, 0, 2, 1, 1),
	      "a branch of another thread: what it read is the cause");
	CHECK(a->nalternates == 1 && a->alternates[0].path_differs && a->alternates[0].order.n == 3 &&
	      a->alternates[0].order.refs[2].thread == 1 && a->alternates[0].order.refs[2].index == 1,
	      "the alternate ends with the read that decides otherwise");
	sched_answer_free(a);
	sym_trace_free(t);
}

/* The lock the assertion failed under is released once the assertion holds. */
static void failure_under_lock(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar x 32 init 0\nobject m mutex\n"
		"thread T0\n lock m\n read x a\n fail\n"
		"thread T0.1\n lock m\n write x 1\n unlock m\n"
		"failure assert thread T0 if (eq a 1)\n");
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(a->found && a->nalternates == 1 && a->alternates[0].order.n == 6,
	      "the failing section can come first");
	sched_answer_free(a);
	sym_trace_free(t);
}

static void unknown_start(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar x 32\nthread T0\n read x a\n cond (eq a 7)\n"
		"thread T0.1\n read x b\n fail\nthread T0.2\n write x 9\n"
		"failure assert thread T0.1 if (eq b 9)\n");
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(a->found && a->failing.values[0] == 7 && a->failing.values[1] == 9,
	      "one unknown initial value is found");
	CHECK(a->nalternates == 1 && a->alternates[0].order.values[1] == 7, "and kept in the alternate");
	sched_answer_free(a);
	sym_trace_free(t);
}

static bool stop_now(void *arg, const char *phase, double part)
{
	(void)phase;
	(void)part;
	return ++*(int *)arg > 0;
}

static void stopped(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar x 32 init 0\nthread T0\n read x a\n fail\n"
		"thread T0.1\n write x 1\nfailure assert thread T0 if (eq a 1)\n");
	struct sched_options o;
	struct sched_answer *a;
	int asked = 0;

	sched_options_init(&o);
	o.progress = stop_now;
	o.progress_arg = &asked;
	err_free(sched_solve(t, &o, &a));
	CHECK(a && a->timed_out && a->why && asked, "stopped at once: %s", a->why);
	sched_answer_free(a);
	sym_trace_free(t);
}

static bool stop_at_phase(void *arg, const char *phase, double part)
{
	(void)part;
	return !strcmp(phase, arg);
}

/* Interrupted later on: what is known by then is in the answer, and labelled. */
static void stopped_later(void)
{
	static const struct { const char *phase; bool cause; } when[] = {
		{ "fewer context switches", false }, { "root cause", false },
		{ "alternates", true },
	};
	struct sym_trace *t = parse(
		"csched-sym 1\nvar n 32 init 0\n"
		"thread T0\n fork T0.1\n fork T0.2\n join T0.1\n join T0.2\n read n r\n fail\n"
		"thread T0.1\n start\n read n a\n write n (add a 1)\n exit\n"
		"thread T0.2\n start\n read n b\n write n (add b 1)\n exit\n"
		"failure assert thread T0 if (bnot (eq r 2))\n");

	for (unsigned k = 0; k < sizeof when / sizeof *when; k++) {
		struct sched_options o;
		struct sched_answer *a;

		sched_options_init(&o);
		o.progress = stop_at_phase;
		o.progress_arg = (void *)when[k].phase;
		err_free(sched_solve(t, &o, &a));
		CHECK(a && a->found && a->failing.n == 14 && a->failing.fails && a->timed_out &&
		      strstr(a->why, "best so far"), "stopped at '%s': the failing schedule is there, "
		      "labelled: %s", when[k].phase, a->why);
		CHECK((a->ncause > 0) == when[k].cause && !a->nalternates && !a->deterministic,
		      "stopped at '%s': and what else was known", when[k].phase);
		sched_answer_free(a);
	}
	sym_trace_free(t);
}

static bool in_steps(const struct sym_trace *t, const struct sched_order *o)
{
	for (size_t i = 1; i < o->n; i++) {
		const struct sched_ref *r = &o->refs[i - 1], *q = &o->refs[i];

		if (t->threads[r->thread].events[r->index].step >
		    t->threads[q->thread].events[q->index].step)
			return false;
	}
	return true;
}

/* Where the trace says in which order it was made, that order is tried first. */
static void steps(void)
{
	static const struct { const char *what; int at[5]; bool holds; } given[] = {
		{ "write first", { 1, 2, 3, 4, 5 }, true },
		{ "read first", { 2, 1, 3, 4, 5 }, true },
		{ "an order that does not fail binds nobody", { 4, 1, 2, 5, 6 }, false },
	};

	for (unsigned k = 0; k < sizeof given / sizeof *given; k++) {
		const int *s = given[k].at;
		char *text = xasprintf(
			"csched-sym 1\nvar x 32 init 0\nthread T0\n write x 1 step %d\n"
			"thread T0.1\n read x a step %d\n write x 2 step %d\n"
			"thread T0.2\n read x b step %d\n fail step %d\n"
			"failure assert thread T0.2 if (eq b 2)\n", s[0], s[1], s[2], s[3], s[4]);
		struct sym_trace *t = parse(text);
		struct sched_answer *a = solve(t, SCHED_SC);

		CHECK(a->found && a->nalternates && in_steps(t, &a->recorded) == given[k].holds,
		      "steps: %s", given[k].what);
		sched_answer_free(a);
		sym_trace_free(t);
		free(text);
	}
}

static void feasible(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar x 32 init 0\nthread T0\n read x a fixed 2\n"
		"thread T0.1\n write x 1\n write x 2\n read x b fixed 1\n"
		"thread T0.2\n write x 1\n");
	struct sched_order o;
	struct sched_options so;
	bool found;

	sched_options_init(&so);
	err_free(sched_feasible(t, &so, &o, &found));
	CHECK(found && o.n == 5 && o.values[0] == 2 && o.values[1] == 1,
	      "recorded values decide the order");
	sched_order_free(&o);
	t->threads[2].events[0].value = expr_const(t->pool, 32, 3);
	err_free(sched_feasible(t, &so, &o, &found));
	CHECK(!found, "recorded values that no order gives");
	sym_trace_free(t);
}

/* Executed in an order that the clocks say cannot have been; it holds, and is the one. */
static void steps_against_time(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar x 32 init 0\nvar y 32 init 0\n"
		"thread T0\n write x 1 time 50 60 step 1\n"
		"thread T0.1\n write y 1 time 10 20 step 2\n"
		"thread T0.2\n read x a time 1 100 step 3\n fail time 1 100 step 4\n"
		"failure assert thread T0.2 if (eq a 1)\n");
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(a->found && a->nalternates && in_steps(t, &a->recorded), "steps: against the clock");
	sched_answer_free(a);
	sym_trace_free(t);
}

struct asked {
	unsigned times;
	enum sched_keeps last;
	bool content;
};

/* Stands only where T0.1 reads what it read in the recorded run, or wherever. */
static bool reads_the_same(void *arg, const struct sched_order *failing, enum sched_keeps keeps)
{
	struct asked *x = arg;

	x->times++;
	x->last = keeps;
	return x->content || failing->values[0] == 1;
}

/* The failing order is executed before its cause is looked for; what does not stand that is reduced again. */
static void stands(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar x 32 init 0\nvar y 32 init 0\n"
		"thread T0\n write y 1 step 1\n write y 2 step 3\n write x 1 step 4\n"
		"thread T0.1\n read y a step 2\n"
		"thread T0.2\n read x b step 5\n fail step 6\n"
		"failure assert thread T0.2 if (eq b 1)\n");

	for (int content = 1; content >= 0; content--) {
		struct asked x = { .content = content };
		struct sched_options o;
		struct sched_answer *a;

		sched_options_init(&o);
		o.stands = reads_the_same;
		o.stands_arg = &x;
		err_free(sched_solve(t, &o, &a));
		CHECK(a->found && a->ncause && a->nalternates, "stands: answered (%d)", content);
		CHECK(content ? x.times == 1 && x.last == SCHED_KEEPS_FAILURE && a->failing.switches == 2 :
				x.times == 3 && x.last == SCHED_KEEPS_VALUES && a->failing.values[0] == 1,
		      "stands: asked %u times, the last keeps %d, %zu switches", x.times, x.last, a->failing.switches);
		sched_answer_free(a);
	}
	sym_trace_free(t);
}

int main(void)
{
	litmus();
	mutual_exclusion();
	no_fence();
	message_passing();
	lost_update();
	deadlock();
	deadlock_of_semaphores();
	lost_wakeup();
	branch_decides();
	foreign_branch();
	failure_under_lock();
	unknown_start();
	stopped();
	stopped_later();
	steps();
	steps_against_time();
	feasible();
	stands();
	CHECK_END();
}
