/* Alternates that leave the recorded path, and answers told of a longer trace. */
#include "tests/lib/check.h"
#include "tests/lib/known.h"

#include "common/strbuf.h"

/*
 * A count that falls to 0 before somebody else takes his reference. What the first does behind
 * its branch (x) others saw: without that they cannot go their recorded way, and need not.
 */
static const char put_before_get[] =
	"csched-sym 1\nvar refs 32 init 1\nvar x 32 init 0\nvar y 32 init 0\n"
	"thread T0.1\n rmw refs p (sub p 1)\n cond (eq p 1)\n write x 1\n"
	"thread T0.2\n read x a\n cond (eq a 1)\n write y 1\n"
	"thread T0.3\n rmw refs g (add g 1)\n fail\n"
	"failure assert thread T0.3 if (sle g 0)\n";

static void consequences(void)
{
	struct sym_trace *t = parse(put_before_get);
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(a->found && a->ncause == 1 && a->cause_minimal && has_edge(a, 0, 0, 2, 0),
	      "put before get is the cause");
	CHECK(a->nalternates == 1 && a->alternates[0].path_differs &&
	      a->alternates[0].left.thread == 0 && a->alternates[0].order.n <= 3,
	      "what followed from the branch need not happen when it goes elsewhere");
	sched_answer_free(a);
	sym_trace_free(t);
}

/* More branches that lead to the failure somehow than are ever tried come behind the one. */
static void the_one_that_asks(void)
{
	struct strbuf b = { 0 };
	struct sym_trace *t;
	struct sched_answer *a;

	strbuf_str(&b, "csched-sym 1\nvar refs 32 init 1\nvar on 32 init 1\nvar z 32 init 0\n"
		       "thread T0.1\n rmw refs p (sub p 1)\n cond (eq p 1)\n write on 1\n"
		       "thread T0.2\n");
	for (int i = 0; i < 100; i++)
		strbuf_fmt(&b, " read on r%d\n cond (eq r%d 1)\n", i, i);
	strbuf_str(&b, " rmw refs g (add g 1)\n fail\nthread T0.3\n write on 2\n write on 1\n"
		       "failure assert thread T0.2 if (sle g 0)\n");
	char *text = strbuf_take(&b);

	t = parse(text);
	a = solve(t, SCHED_SC);
	CHECK(a->found && a->ncause == 1 && has_edge(a, 0, 0, 1, 100),
	      "the branch on what the failure is about comes first");
	sched_answer_free(a);
	sym_trace_free(t);
	free(text);
}

/*
 * Told to end while it holds a lock. Who tells sees that the other is at a place where it can be
 * told, so the lock is taken in every order; only the branch on having been told helps.
 */
static void into_a_deadlock(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar told 32 init 0\nobject m mutex\n"
		"thread T0\n read told a\n cond (eq a 2)\n write told 6\n lock m\n"
		"thread T0.1\n lock m\n write told 2\n read told b\n cond (eq b 6)\n exit\n"
		"failure deadlock thread T0\nblocked T0 2\n");
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(a->found && a->ncause == 1 && a->cause_minimal && has_edge(a, 0, 1, 1, 2),
	      "the branch of the one that holds the lock is the cause");
	CHECK(a->nalternates == 1 && a->alternates[0].path_differs && a->alternates[0].left.thread == 1,
	      "which goes elsewhere when it has not been told");
	sched_answer_free(a);
	sym_trace_free(t);
}

/* Many come and go before somebody looks whether anyone is in; the last comes too late for that. */
static void what_a_counter_came_to(void)
{
	struct strbuf b = { 0 };

	strbuf_str(&b, "csched-sym 1\nvar in 32 init 0\n"
		       "thread T0\n read in r step 900\n cond (eq r 0)\n fail step 901\n");
	for (int i = 1; i <= 66; i++)
		strbuf_fmt(&b, "thread T0.%d\n rmw in a%d (add a%d 1) step %d\n rmw in b%d (sub b%d 1) step %d\n",
			   i, i, i, 2 * i, i, i, 2 * i + 1);
	strbuf_str(&b, "thread T0.67\n rmw in z (add z 1) step 1000\nfailure assert thread T0\n");
	char *text = strbuf_take(&b);
	struct sym_trace *t = parse(text);
	struct sched_answer *a = solve(t, SCHED_SC);

	CHECK(a->found && a->ncause == 1 && has_edge(a, 0, 0, 67, 0),
	      "of all who make up a count the one is told that was looked for too early");
	CHECK(a->nalternates == 1 && a->alternates[0].inverted.after.thread == 67 && a->why,
	      "the alternate turns it; that there are others is said");
	sched_answer_free(a);
	sym_trace_free(t);
	free(text);
}

/* Once the recorded path was left, it is not looked at again. */
static void leave_at_once(void)
{
	struct sym_trace *t = parse(
		"csched-sym 1\nvar x 32 init 0\nvar go 32 init 0\n"
		"thread T0\n write x 1\n write go 1\n"
		"thread T0.1\n read go g\n cond (eq g 1)\n read x r\n fail\n"
		"thread T0.2\n write x 0\n"
		"failure assert thread T0.1 if (eq r 0)\n");
	struct sched_options o;
	struct sched_answer *a;

	sched_options_init(&o);
	err_free(sched_solve(t, &o, &a));
	CHECK(a->nalternates == 1 && !a->alternates[0].path_differs, "along the recorded path");
	sched_answer_free(a);
	o.leave_path = true;
	err_free(sched_solve(t, &o, &a));
	CHECK(a->nalternates == 1 && a->alternates[0].path_differs, "off the recorded path");
	t->threads[1].conds[0].firm = true;
	sched_answer_free(a);
	err_free(sched_solve(t, &o, &a));
	CHECK(!a->deterministic, "no branch left to turn, and nothing proved");
	sched_answer_free(a);
	sym_trace_free(t);
}

/* Threads that count once each: an audit that wants `want` of them. */
static struct sched_answer *audit(int threads, int want)
{
	struct strbuf b = { 0 };
	struct sym_trace *t;
	struct sched_answer *a;
	char *text;

	strbuf_str(&b, "csched-sym 1\nvar done 32 init 0\nthread T0\n read done r\n fail\n");
	for (int i = 1; i <= threads; i++)
		strbuf_fmt(&b, "thread T0.%d\n rmw done d%d (add d%d 1)\n", i, i, i);
	strbuf_fmt(&b, "failure assert thread T0 if (bnot (eq r %d))\n", want);
	text = strbuf_take(&b);
	t = parse(text);
	a = solve(t, SCHED_SC);
	sym_trace_free(t);
	free(text);
	return a;
}

/* What a solver would prove order by order follows from adding up. */
static void adding_up(void)
{
	struct sched_answer *a = audit(40, 41);

	CHECK(a->found && a->deterministic && !a->nalternates, "no order makes 41 of 40");
	sched_answer_free(a);
	a = audit(3, 3);
	CHECK(a->found && !a->deterministic && a->nalternates, "all of them first do");
	sched_answer_free(a);
}

static const char shorter[] =
	"csched-sym 1\nvar x 32 init 0\nvar y 32 init 0\n"
	"thread T0\n write x 1\n"
	"thread T0.1\n read x r\n fail\n"
	"failure assert thread T0.1 if (eq r 0)\n";
static const char longer[] =
	"csched-sym 1\nvar x 32 init 0\nvar y 32 init 0\n"
	"thread T0\n write y 1\n write y 2\n write x 1\n"
	"thread T0.1\n write y 3\n read x r\n fail\n"
	"failure assert thread T0.1 if (eq r 0)\n";

static void lengthened(void)
{
	struct sym_trace *was = parse(shorter), *t = parse(longer);
	struct sched_answer *a = solve(was, SCHED_SC), *b;
	uint32_t more[] = { 2, 1 };

	CHECK(a->found && has_edge(a, 1, 0, 0, 0), "the answer to the shorter trace");
	b = sched_lengthen(was, t, SCHED_SC, a, more);
	CHECK(b && b->found && b->ncause == a->ncause && has_edge(b, 1, 1, 0, 2),
	      "the same cause in the longer one");
	CHECK(b && b->failing.n == a->failing.n + 3 && b->failing.fails &&
	      b->nalternates == a->nalternates && !b->alternates[0].order.fails,
	      "with what came before in its orders");
	sched_answer_free(b);
	/* One that does not go on like the shorter one. */
	t->threads[1].events[1].target = 1;
	b = sched_lengthen(was, t, SCHED_SC, a, more);
	CHECK(!b, "no answer when its orders do not hold there");
	sched_answer_free(b);
	sched_answer_free(a);
	sym_trace_free(was);
	sym_trace_free(t);
}

int main(void)
{
	consequences();
	the_one_that_asks();
	into_a_deadlock();
	what_a_counter_came_to();
	leave_at_once();
	adding_up();
	lengthened();
	CHECK_END();
}
