/*
 * A sum that is wrong, and the updates that were lost lie far back. No window at the end of the run holds them, and
 * there may be thousands: turning one round leaves the sum wrong by the others. But what is before the first
 * one is as it ought to be, so from there on the run is saved when threads are not interrupted any more, and
 * fails when this one update is lost and they are not interrupted behind it. Both are executed, and the
 * difference between them is told.
 */
#include "analyzer/explain/judge.h"
#include "analyzer/explain/lost.h"

#include <inttypes.h>

#define MOST_WORDS 8 /* that the failure depends on, whose updates are watched */

struct words {
	const struct sym_trace *t;
	bool *seen;       /* by variable */
	VEC(uint32_t) vars;
};

static void add_var(struct words *w, uint32_t var)
{
	if (w->seen[var] || w->vars.n == MOST_WORDS)
		return;
	w->seen[var] = true;
	vec_push(&w->vars, var);
}

/* What was read to get this symbol. */
static void add_symbol(void *arg, uint64_t symbol)
{
	struct words *w = arg;

	for (size_t i = 0; i < w->t->nthreads; i++)
		for (size_t k = 0; k < w->t->threads[i].nevents; k++) {
			const struct sym_event *e = &w->t->threads[i].events[k];

			if ((e->op == SYM_READ || e->op == SYM_RMW) && e->symbol != EXPR_NONE &&
			    expr_get(w->t->pool, e->symbol)->value == symbol) {
				add_var(w, e->target);
				return;
			}
		}
}

/* The last write of each thread says what the variable is made of as well as all of them do. */
static void add_sources(struct words *w, uint32_t var)
{
	for (size_t i = 0; i < w->t->nthreads; i++)
		for (size_t k = w->t->threads[i].nevents; k-- > 0;) {
			const struct sym_event *e = &w->t->threads[i].events[k];

			if (order_writes(e) && e->target == var) {
				expr_symbols(w->t->pool, e->value, add_symbol, w);
				break;
			}
		}
}

/* The words that the failure depends on, as the window at the end tells. */
static size_t find_words(const struct sym_trace *t, struct lost_word *out, uint32_t *vars)
{
	struct words w = { .t = t, .seen = xcalloc(t->nvars + 1, sizeof *w.seen) };
	size_t n = 0;

	expr_symbols(t->pool, t->failure.condition, add_symbol, &w);
	for (size_t i = 0; i < w.vars.n; i++)
		add_sources(&w, w.vars.v[i]);
	for (size_t i = 0; i < w.vars.n; i++) {
		const struct sym_var *v = &t->vars[w.vars.v[i]];

		if (!v->address || v->width == EXPR_INT)
			continue;
		vars[n] = w.vars.v[i];
		out[n++] = (struct lost_word){ v->address, v->width / 8u };
	}
	vec_free(&w.vars);
	free(w.seen);
	return n;
}

static bool out_of_time(void *arg)
{
	return explain_out_of_time(arg);
}

/* The failure is found by the program, behind all that its threads did, and nothing in the window avoids it. */
double lost_cost(const struct search *s, const struct view *v, unsigned tried)
{
	const struct sched_answer *a = v->solved ? v->solved->answer : NULL;
	const struct explain_scope *scope = &v->scope;

	if (tried || s->lost_sought || s->chosen || !a || !a->found || a->ncause || a->nalternates || !v->extracted->from ||
	    judge_passing(s->best) == JUDGE_PASSES || scope->in_middle || scope->focus || scope->onward ||
	    scope->model != SCHED_SC || v->extracted->trace->failure.condition == EXPR_NONE)
		return NO_USE;
	switch (v->extracted->trace->failure.kind) {
	case SYM_FAIL_ASSERT: case SYM_FAIL_ABORT: case SYM_FAIL_EXIT: case SYM_FAIL_USER: case SYM_FAIL_EXCEPTION:
		return v->price + LIMIT_PRICE_LOST;
	default:
		return NO_USE;
	}
}

/* The solver has used up what nobody limited; this is done for the answer that it did not find. */
static void allow_more(struct explanation *e)
{
	double end = explain_effort(e) + LIMIT_LOST_EXECUTIONS * explain_effort_again(e) + LIMIT_LOST_EFFORT;

	if (e->effort_end > 0 && e->effort_end < end)
		e->effort_end = end;
}

static bool is_small(const struct ext_middle *m)
{
	return m->to - m->from - (m->gap_to - m->gap_from) <= LIMIT_LOST_INSNS;
}

/* The sum is wrong by what is lost later, too: that it fails does not say that the update was lost. */
static err_t solve_around(struct search *s, struct view *v, struct candidate **out, char **outcome)
{
	struct core_options how = { .keeps = SCHED_KEEPS_VALUES };

	TRY(core_solve(s, v, &how, out));
	struct candidate *c = *out, *other = NULL;
	struct sched_answer *a = c->answer;
	/* That holds for the order behind the window as it was. */
	if (a->deterministic) {
		a->deterministic = false;
		free(a->why);
		a->why = NULL;
	}
	if (!a->found)
		return NULL;
	TRY(candidate_execute_alternates(c));
	if (judge_grade(c) >= JUDGE_CONFIRMED && judge_has_cause(c))
		return NULL;
	TRY(difference_from(c, SIZE_MAX, 0, &other, outcome));
	if (other && judge_is_better(other, c)) {
		candidate_free(c);
		*out = other;
	} else {
		candidate_free(other);
		free(*outcome);
		*outcome = NULL;
	}
	return NULL;
}

static char *told(const struct lost *l, const char *name)
{
	return l->times == 1 ?
		xasprintf("In the whole run, as it was followed, one write of `%s' went over another one that its "
			  "thread had not seen: the one shown.", name) :
		xasprintf("In the whole run, as it was followed, %" PRIu64 " writes of `%s' went over others that "
			  "their thread had not seen; shown is the first. In both orders shown each thread goes on "
			  "undisturbed behind it: none of the others is in them.", l->times, name);
}

err_t lost_run(struct search *s, struct view *v, unsigned tried, struct candidate **out, char **outcome)
{
	struct lost_word words[MOST_WORDS];
	uint32_t vars[MOST_WORDS];
	struct lost lost = { 0 };

	(void)tried;
	allow_more(s->e);
	size_t n = find_words(v->extracted->trace, words, vars);
	/* Where nobody shares them, they are not known to be what it depends on; a larger window may tell. */
	s->lost_sought = n > 0;
	err_t unknown = n ? lost_find(s->e->run, words, n, out_of_time, s->e, &lost) : NULL;
	err_free(unknown);
	if (!n || unknown || !lost.times || !is_small(&lost.around)) {
		*outcome = xstrdup(!n ? "the failure depends on no word that threads share here" : "no update was lost, as far as could be seen");
		return NULL;
	}
	struct explain_scope around = v->scope;
	around.in_middle = true;
	around.around = lost.around;
	struct view *there = search_view(s, &around, 0);
	TRY(scope_extract(s->e, s->o, &around, &there->extracted));
	TRY(solve_around(s, there, out, outcome));
	if (*out)
		(*out)->note = told(&lost, v->extracted->trace->vars[vars[lost.word]].name);
	return NULL;
}
