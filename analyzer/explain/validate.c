/* Schedules are claims until the machine has executed them. */
#include "analyzer/explain/judge.h"

#include "common/log.h"

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

void candidate_count(struct explanation *e, const struct mach_outcome *out)
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

static err_t execute_points(const struct candidate *c, const struct sched_order *order, struct mach_order *o,
			    struct mach_outcome *out)
{
	struct mach_point *points = explain_points(c->extracted, order, &o->npoints, NULL);
	const struct mach_point *fate = &c->extracted->fate, *brink = &c->extracted->brink;

	o->from = c->extracted->from;
	o->onward_insns = c->extracted->onward_insns;
	o->points = points;
	o->fate = fate->thread == SYM_NONE ? NULL : fate;
	o->brink = brink->thread == SYM_NONE ? NULL : brink;
	err_t bad = mach_execute(c->e->run, o, out);

	free(points);
	o->points = NULL;
	return bad;
}

static err_t execute_as(const struct candidate *c, const struct sched_order *order, struct mach_order o,
			enum mach_outcome_kind wanted, struct report_proof *proof, char **why)
{
	struct explanation *e = c->e;
	struct mach_outcome out = { 0 };
	err_t bad = execute_points(c, order, &o, &out);

	e->ordered_insns += out.insns;
	e->printed |= out.printed;
	e->timed |= out.timed;
	e->tried.held = out.held;
	if (bad) {
		mach_outcome_free(&out);
		return bad;
	}
	log_line(LOG_EXPLAIN, 2, "  executed %zu points: %s", o.npoints, out.why ? out.why : "?");
	if (wanted == MACH_OUT_PASSED)
		candidate_count(e, &out);
	proof->runs = 1;
	/* What only hands the failure on to another thread, or to the next round, does not avoid it. */
	proof->agreed = out.kind == wanted && !out.recurs;
	proof->fails_later = out.fails_later && !out.recurs;
	proof->left = out.kind == MACH_OUT_LEFT;
	proof->met = out.met;
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

err_t candidate_execute(const struct candidate *c, const struct sched_order *order, enum mach_outcome_kind wanted,
			bool others_first, struct report_proof *proof, char **why)
{
	return execute_as(c, order, (struct mach_order){ .others_first = others_first }, wanted, proof, why);
}

/* Who comes first to where it waits for ever is no event of the order. */
static err_t execute_blocked(struct candidate *c, const struct sched_order *failing)
{
	const struct sym_failure *f = &c->extracted->trace->failure;
	struct report_proof *proof = &c->failing_proof.by[REPORT_MACHINE];
	size_t tries = f->nblocked < LIMIT_BLOCKED_FIRST ? f->nblocked : (size_t)LIMIT_BLOCKED_FIRST;

	for (size_t i = 0; i < tries && !proof->agreed; i++) {
		struct report_proof other = { 0 };
		struct mach_order o = { .goes_first = f->blocked[i].thread + 1 };
		char *why = NULL;

		TRY(execute_as(c, failing, o, MACH_OUT_BLOCKED, &other, &why));
		if (!other.agreed) {
			free(why);
			continue;
		}
		free(c->failing_why);
		c->failing_why = why;
		*proof = other;
	}
	return NULL;
}

err_t candidate_execute_failing(struct candidate *c, const struct sched_order *failing)
{
	bool deadlock = c->extracted->trace->failure.kind == SYM_FAIL_DEADLOCK;

	TRY(candidate_execute(c, failing, deadlock ? MACH_OUT_BLOCKED : MACH_OUT_FAILED, false,
			      &c->failing_proof.by[REPORT_MACHINE], &c->failing_why));
	return deadlock ? execute_blocked(c, failing) : NULL;
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
err_t candidate_execute_alternate(const struct candidate *c, const struct sched_alternate *alt, struct report_proof *proof,
				  char **why)
{
	TRY(candidate_execute(c, &alt->order, MACH_OUT_PASSED, false, proof, why));
	if (proof->agreed ? !proof->fails_later : !alt->path_differs)
		return NULL;

	struct report_proof other = { 0 };
	char *its = NULL;
	err_t bad = candidate_execute(c, &alt->order, MACH_OUT_PASSED, true, &other, &its);

	if (bad || !other.agreed || (proof->agreed && other.fails_later)) {
		free(its);
		return bad;
	}
	free(*why);
	*why = its;
	*proof = other;
	return NULL;
}

/* How good an alternate is, from worst to best. */
enum { REFUTED, FAILS_LATER, NEVER_COMES_THERE, HOLDS_THERE };

static int worth(const struct report_proof *p)
{
	return !p->agreed ? REFUTED : p->fails_later ? FAILS_LATER : p->met ? HOLDS_THERE : NEVER_COMES_THERE;
}

err_t candidate_execute_alternates(struct candidate *c)
{
	struct sched_answer *a = c->answer;
	struct report_proof *proof = &c->alternate_proof.by[REPORT_MACHINE];
	size_t best = 0, at = 0; /* the reason given belongs to this one */
	int how = REFUTED;

	*proof = (struct report_proof){ 0 };
	for (size_t i = 0; i < a->nalternates && how < HOLDS_THERE; i++) {
		leave_at_fate(c->extracted, &a->alternates[i]);
		TRY(candidate_execute_alternate(c, &a->alternates[i], proof, &c->alternate_why));
		at = i;
		if (worth(proof) > how) {
			how = worth(proof);
			best = i;
		}
	}
	if (!a->nalternates)
		return NULL;
	if (at != best)
		TRY(candidate_execute_alternate(c, &a->alternates[best], proof, &c->alternate_why));
	to_the_front(a, best);
	return NULL;
}

err_t explain_keep_order(struct explanation *e, bool failing, struct mach_outcome *out)
{
	const struct candidate c = { .e = e, .extracted = e->extracted };
	const struct sched_answer *a = e->answer;
	const struct sched_order *order = failing ? &a->failing : &a->alternates[0].order;
	struct mach_outcome first = { 0 };
	struct mach_order o = { 0 };

	*out = (struct mach_outcome){ 0 };
	/* As candidate_execute_alternate() found it: with the failing thread first, or the others. */
	if (!failing) {
		TRY(execute_points(&c, order, &o, &first));
		o.others_first = first.kind != MACH_OUT_PASSED || first.recurs ||
				 (first.fails_later && !e->alternate_proof.by[REPORT_MACHINE].fails_later);
		mach_outcome_free(&first);
	}
	o.keep = true;
	return execute_points(&c, order, &o, out);
}
