/* Schedules are claims until the machine has executed them. */
#include "analyzer/explain/explain.h"

#include "common/log.h"

/* Threads of a deadlock that are let go first, in turn. */
#define MOST_FIRST 4

/*
 * How often a thread tries to take a lock of the program's own making depends on the order; that
 * it was let go before counts, and that nobody else has it the program sees to itself.
 */
static bool is_attempt(const struct sym_trace *t, struct sched_ref r)
{
	const struct sym_event *e = &t->threads[r.thread].events[r.index];

	return (e->op == SYM_LOCK || e->op == SYM_TRYLOCK) && t->objects[e->target].home_made;
}

struct mach_point *explain_points(const struct ext_result *x, const struct sched_order *o, size_t *n,
				  size_t *of)
{
	struct mach_point *p = xcalloc(o->n + 1, sizeof *p);

	*n = 0;
	for (size_t i = 0; i < o->n; i++) {
		struct sched_ref r = o->refs[i];
		struct mach_point at = x->points[r.thread][r.index];

		enum sym_op op = x->trace->threads[r.thread].events[r.index].op;

		/* A thread starts when its creator's clone returns; the failure is what
		 * the execution is to show: it is decided here. */
		if (op == SYM_FAIL && x->fate.thread == at.thread)
			at = x->fate;
		else if (op == SYM_START || op == SYM_FAIL || is_attempt(x->trace, r))
			continue;
		else if (x->fate.thread == at.thread && at.insn > x->fate.insn)
			continue; /* on the way from the decision to the failure */
		else if (op == SYM_WAIT && r.index + 1 < x->trace->threads[r.thread].nevents)
			continue; /* a wake-up shows when its lock is taken again */
		/* Several events of one instruction or call are one point. */
		if (*n && p[*n - 1].thread == at.thread && p[*n - 1].insn >= at.insn)
			p[*n - 1].insn = at.insn;
		else
			p[(*n)++] = at;
		if (of)
			of[i] = *n;
	}
	return p;
}

void explain_count_tried(struct explanation *e, const struct mach_outcome *out)
{
	struct explain_tried *t = &e->tried;

	t->orders++;
	if (out->kind == MACH_OUT_FAILED || out->kind == MACH_OUT_BLOCKED)
		t->failed++;
	else if (out->recurs)
		t->recurred++;
	else if (out->kind == MACH_OUT_OTHER || (out->kind == MACH_OUT_PASSED && out->fails_later))
		t->other++;
	else if (out->kind == MACH_OUT_PASSED && !mach_fails_in_handler(e->run))
		t->passed++;
	else
		t->left++;
}

static err_t execute_as(struct explanation *e, const struct sched_order *order, struct mach_order o,
			enum mach_outcome_kind wanted, struct report_proof *proof, char **why)
{
	struct mach_outcome out = { 0 };
	struct mach_point *points = explain_points(e->extracted, order, &o.npoints, NULL);
	const struct mach_point *fate = &e->extracted->fate, *brink = &e->extracted->brink;

	o.from = e->extracted->from;
	o.onward_insns = e->extracted->onward_insns;
	o.points = points;
	o.fate = fate->thread == SYM_NONE ? NULL : fate;
	o.brink = brink->thread == SYM_NONE ? NULL : brink;
	err_t bad = mach_execute(e->run, &o, &out);

	free(points);
	e->ordered_insns += out.insns;
	e->printed |= out.printed;
	if (bad) {
		mach_outcome_free(&out);
		return bad;
	}
	log_line(LOG_EXPLAIN, 2, "  executed %zu points: %s", o.npoints, out.why ? out.why : "?");
	if (wanted == MACH_OUT_PASSED)
		explain_count_tried(e, &out);
	proof->runs = 1;
	/* What only hands the failure on to another thread, or to the next round, does not avoid it. */
	proof->agreed = out.kind == wanted && !out.recurs;
	proof->fails_later = out.fails_later && !out.recurs;
	proof->left = out.kind == MACH_OUT_LEFT;
	free(*why);
	*why = out.why;
	out.why = NULL;
	/* That it gets past by never coming there says nothing. */
	if (out.kind == MACH_OUT_PASSED && mach_fails_in_handler(e->run)) {
		proof->agreed = false;
		proof->left = true;
		free(*why);
		*why = xstrdup("it fails in a signal's handler, and other orders are executed without signals");
	}
	proof->why = *why;
	mach_outcome_free(&out);
	return NULL;
}

err_t explain_execute(struct explanation *e, const struct sched_order *order,
		      enum mach_outcome_kind wanted, bool others_first, struct report_proof *proof,
		      char **why)
{
	return execute_as(e, order, (struct mach_order){ .others_first = others_first }, wanted, proof, why);
}

/* Who comes first to where it waits for ever is no event of the order. */
static err_t validate_blocked(struct explanation *e, const struct sched_order *failing)
{
	const struct sym_failure *f = &e->extracted->trace->failure;
	struct report_proof *proof = &e->failing_proof.by[REPORT_MACHINE];
	size_t tries = f->nblocked < MOST_FIRST ? f->nblocked : MOST_FIRST;

	for (size_t i = 0; i < tries && !proof->agreed; i++) {
		struct report_proof other = { 0 };
		struct mach_order o = { .goes_first = f->blocked[i].thread + 1 };
		char *why = NULL;

		TRY(execute_as(e, failing, o, MACH_OUT_BLOCKED, &other, &why));
		if (!other.agreed) {
			free(why);
			continue;
		}
		free(e->failing_why);
		e->failing_why = why;
		*proof = other;
	}
	return NULL;
}

err_t explain_validate_failing(struct explanation *e, const struct sched_order *failing)
{
	bool deadlock = e->extracted->trace->failure.kind == SYM_FAIL_DEADLOCK;

	TRY(explain_execute(e, failing, deadlock ? MACH_OUT_BLOCKED : MACH_OUT_FAILED, false,
			    &e->failing_proof.by[REPORT_MACHINE], &e->failing_why));
	return deadlock ? validate_blocked(e, failing) : NULL;
}

static void to_the_front(struct sched_answer *a, size_t i)
{
	struct sched_alternate first = a->alternates[0];

	a->alternates[0] = a->alternates[i];
	a->alternates[i] = first;
}

/*
 * Where the failing thread goes the other way it does not do what lay between
 * there and the failure: then the alternate is on another path.
 */
static void leave_at_fate(const struct ext_result *x, struct sched_alternate *a)
{
	size_t n = 0;
	bool left = false;

	for (size_t i = 0; i < a->order.n && x->fate.thread != SYM_NONE; i++) {
		struct sched_ref r = a->order.refs[i];

		left |= r.thread == x->fate.thread &&
			x->points[r.thread][r.index].insn > x->fate.insn &&
			x->trace->threads[r.thread].events[r.index].op != SYM_FAIL;
	}
	for (size_t i = 0; left && i < a->order.n; i++) {
		struct sched_ref r = a->order.refs[i];

		if (r.thread != x->fate.thread || x->points[r.thread][r.index].insn <= x->fate.insn)
			a->order.refs[n++] = r;
	}
	if (!left)
		return;
	a->order.n = n;
	if (!a->path_differs)
		a->left.thread = SYM_NONE; /* the failure's own branch, which cannot be made firm */
	a->path_differs = true;
}

/* Where the path is new, or the damage shows later, what the others do next may decide. */
static err_t execute_both_ways(struct explanation *e, const struct sched_alternate *alt,
			       struct report_proof *proof)
{
	TRY(explain_execute(e, &alt->order, MACH_OUT_PASSED, false, proof, &e->alternate_why));
	if (proof->agreed ? !proof->fails_later : !alt->path_differs)
		return NULL;

	struct report_proof other = { 0 };
	char *why = NULL;
	err_t bad = explain_execute(e, &alt->order, MACH_OUT_PASSED, true, &other, &why);

	if (bad || !other.agreed || (proof->agreed && other.fails_later)) {
		free(why);
		return bad;
	}
	free(e->alternate_why);
	e->alternate_why = why;
	*proof = other;
	return NULL;
}

static err_t validate_alternates(struct explanation *e)
{
	struct sched_answer *a = e->answer;
	struct report_proof *proof = &e->alternate_proof.by[REPORT_MACHINE];
	size_t good = 0; /* the first that avoids this failure, if not every one */

	*proof = (struct report_proof){ 0 };
	for (size_t i = 0; i < a->nalternates; i++) {
		leave_at_fate(e->extracted, &a->alternates[i]);
		TRY(execute_both_ways(e, &a->alternates[i], proof));
		if (proof->agreed && !proof->fails_later) {
			to_the_front(a, i);
			return NULL;
		}
		if (proof->agreed && !good)
			good = i + 1;
	}
	if (!good)
		return NULL;
	/* The reason given belongs to the first. */
	to_the_front(a, good - 1);
	return good == a->nalternates ? NULL : execute_both_ways(e, &a->alternates[0], proof);
}

err_t explain_validate_alternates(struct explanation *e)
{
	double since = explain_effort(e);
	err_t bad = validate_alternates(e);

	if (!bad && e->answer->nalternates)
		explain_attempt_executed(e, since);
	return bad;
}
