/* The entry: phases in order, each within what time is left. */
#include "analyzer/schedule/schedule.h"
#include "analyzer/schedule/work.h"

#include <string.h>

void sched_options_init(struct sched_options *o)
{
	*o = (struct sched_options){ .use_times = true, .alternates = 1 };
}

static bool stop_asked(void *arg)
{
	struct work *w = arg;

	return w->o->progress && w->o->progress(w->o->progress_arg, w->phase, -1);
}

static void work_init(struct work *w, const struct sym_trace *t, const struct sched_options *o)
{
	*w = (struct work){ .o = o, .phase = "failing schedule", .relax = SYM_NONE };
	w->v = order_view_new(t, o->model, o->use_times);
	w->timeless = order_view_new(t, o->model, false);
	w->limit = (struct smt_limit){ .stop = stop_asked, .arg = w, .most = o->effort };
	if (o->timeout > 0)
		w->limit.deadline = smt_now() + o->timeout;
	w->init = xcalloc(t->nvars + 1, sizeof *w->init);
	w->syms = xcalloc(expr_symbol_count(t->pool) + 1, sizeof *w->syms);
	w->order = xcalloc(w->v->n + 1, sizeof *w->order);
	w->rank = xcalloc(w->v->n + 1, sizeof *w->rank);
	for (uint32_t i = 0; i < w->v->n; i++)
		w->n += !w->v->ev[i].pending;
	w->a = xcalloc(1, sizeof *w->a);
	w->a->stats.events = w->v->n;
}

static void work_free(struct work *w)
{
	order_view_free(w->v);
	order_view_free(w->timeless);
	free(w->init);
	free(w->syms);
	free(w->order);
	free(w->rank);
}

static bool find_failing(struct work *w)
{
	double start = smt_now();
	enum search_result r;

	guess_order(w, true);
	r = search_order(w, true);
	if (r == SEARCH_NONE && w->v->use_times) {
		/* What was executed is beyond doubt, clocks are not. */
		order_view_free(w->v);
		w->v = order_view_new(w->timeless->t, w->o->model, false);
		guess_order(w, true);
		r = search_order(w, true);
		if (r == SEARCH_FOUND)
			work_why(w, "the time stamps contradict the recorded paths and were not used");
	}
	w->a->stats.t_fail = smt_now() - start;
	w->a->found = r == SEARCH_FOUND;
	if (r == SEARCH_NONE) {
		char *conflict = search_conflict(w);

		work_why(w, "no failing schedule exists along the recorded paths%s%s",
			 *conflict ? ": " : "", conflict);
		free(conflict);
	} else if (r == SEARCH_UNKNOWN) {
		work_why(w, w->limit.expired ? "stopped before a failing schedule was found" :
			 "the solver gave no usable answer about a failing schedule");
	}
	return w->a->found;
}

/* Fewer context switches; what does not stand its execution is reduced again, nearer to the recorded run. */
static void reduce_until_it_stands(struct work *w)
{
	uint32_t *found = xcalloc(w->n + 1, sizeof *found);
	bool stands = false;

	memcpy(found, w->order, w->n * sizeof *found);
	for (w->keeps = w->o->keeps; !stands && w->keeps <= SCHED_KEEPS_VALUES; w->keeps++) {
		double start = smt_now();

		memcpy(w->order, found, w->n * sizeof *found);
		reduce_switches(w);
		w->a->stats.t_csr += smt_now() - start;
		sched_order_free(&w->a->failing);
		work_export(w, w->order, w->n, true, &w->a->failing);
		stands = !w->o->stands || w->o->stands(w->o->stands_arg, &w->a->failing, w->keeps) ||
			 work_stopped(w);
	}
	free(found);
}

err_t sched_solve(const struct sym_trace *t, const struct sched_options *o,
		  struct sched_answer **out)
{
	struct work w;

	*out = NULL;
	TRY(sym_check(t));
	work_init(&w, t, o);
	if (find_failing(&w)) {
		work_export(&w, w.order, w.n, true, &w.a->recorded);
		w.phase = "fewer context switches";
		reduce_until_it_stands(&w);
		w.phase = "root cause";
		find_cause(&w);
		w.phase = "store buffers";
		find_delays(&w);
	}
	w.a->timed_out = w.limit.expired;
	w.a->stats.effort = w.limit.spent;
	w.a->stats.questions = w.limit.questions;
	w.a->stats.constraints = w.limit.clauses;
	w.a->stats.variables = w.limit.bools;
	if (w.a->timed_out && w.a->found)
		work_why(&w, "stopped early: what is shown is the best so far");
	*out = w.a;
	work_free(&w);
	return NULL;
}

err_t sched_feasible(const struct sym_trace *t, const struct sched_options *o,
		     struct sched_order *out, bool *found)
{
	struct work w;
	enum search_result r;

	*found = false;
	memset(out, 0, sizeof *out);
	TRY(sym_check(t));
	work_init(&w, t, o);
	guess_order(&w, false);
	r = search_order(&w, false);
	if (r == SEARCH_FOUND) {
		*found = true;
		work_export(&w, w.order, w.n, false, out);
	}
	sched_answer_free(w.a);
	work_free(&w);
	if (r == SEARCH_UNKNOWN)
		return err_new(ERR_NOANSWER, "stopped before an order of the events was found");
	return NULL;
}

char *sched_reach(const struct sched_answer *a)
{
	if (a->ncause && a->cause_tested)
		return xasprintf("The root cause was found by executing, not by solving: the failing order with %s turned "
				 "round does not fail%s.", a->ncause == 1 ? "this one pair" : "these pairs",
				 a->ncause == 1 ? "" : ", and with any of them as it was no order was found that does not");
	if (a->ncause && a->cause_executed)
		return xasprintf("The root cause was found by executing, not by solving: with the failing order kept "
				 "for its first %zu of %zu events, and then each thread going on as far as it "
				 "can, it does not fail; told is what that turns round.",
				 a->cause_kept, a->failing.n);
	if (!a->ncause || !a->cause_events)
		return NULL;
	return xasprintf("The root cause holds for every order of the last %zu of the %zu events; those before them "
			 "keep the order in which they were found.", a->cause_events, a->failing.n);
}

static void *copied(const void *of, size_t n, size_t size)
{
	void *copy = xcalloc(n + 1, size);

	if (n)
		memcpy(copy, of, n * size);
	return copy;
}

struct sched_answer *sched_answer_copy(const struct sched_answer *a)
{
	struct sched_answer *copy = copied(a, 1, sizeof *a);

	copy->recorded = sched_order_copy(&a->recorded);
	copy->failing = sched_order_copy(&a->failing);
	copy->cause = copied(a->cause, a->ncause, sizeof *a->cause);
	copy->delays = copied(a->delays, a->ndelays, sizeof *a->delays);
	copy->alternates = copied(a->alternates, a->nalternates, sizeof *a->alternates);
	for (size_t i = 0; i < a->nalternates; i++)
		copy->alternates[i].order = sched_order_copy(&a->alternates[i].order);
	copy->why = a->why ? xstrdup(a->why) : NULL;
	return copy;
}

void sched_answer_free(struct sched_answer *a)
{
	if (!a)
		return;
	sched_order_free(&a->recorded);
	sched_order_free(&a->failing);
	for (size_t i = 0; i < a->nalternates; i++)
		sched_order_free(&a->alternates[i].order);
	free(a->alternates);
	free(a->cause);
	free(a->delays);
	free(a->why);
	free(a);
}
