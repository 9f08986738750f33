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

#define MOST_WORDS 8
/* Executions of the run: one to look for the place, one to write the window down (symbolic ones take longer), and
 * some of its rest. And effort for the solver, who sees a small window. */
#define EXECUTIONS 8
#define SOLVING 10
/* Instructions of a window: a thread that spins in it leaves events all along, and what is symbolic takes memory. */
#define MOST_INSNS 4000000

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

/* The failure is found by the program, behind all that its threads did. */
static bool is_worth_it(const struct explanation *e)
{
	const struct sched_answer *a = e->answer;
	enum sym_failure_kind kind = e->extracted->trace->failure.kind;

	return !e->lost_sought && a->found && !a->ncause && !a->nalternates && e->extracted->from &&
	       !e->extracted->to && e->scope.model == SCHED_SC && e->extracted->trace->failure.condition != EXPR_NONE &&
	       (kind == SYM_FAIL_ASSERT || kind == SYM_FAIL_ABORT || kind == SYM_FAIL_EXIT ||
		kind == SYM_FAIL_USER || kind == SYM_FAIL_EXCEPTION) &&
	       !explain_past_deadline(e);
}

/* The solver has used up what nobody limited; this is done for the answer that it did not find. */
static void allow_more(struct explanation *e)
{
	double end = explain_effort(e) + EXECUTIONS * explain_effort_again(e) + SOLVING;

	if (e->effort_end > 0 && e->effort_end < end)
		e->effort_end = end;
}

static bool is_small(const struct ext_middle *m)
{
	return m->to - m->from - (m->gap_to - m->gap_from) <= MOST_INSNS;
}

static err_t solve_around(struct explanation *e, const struct explain_options *o, void *arg)
{
	enum sched_keeps keeps = e->keeps;

	(void)arg;
	/* The sum is wrong by what is lost later, too: that it fails does not say that the update was lost. */
	e->keeps = SCHED_KEEPS_VALUES;
	err_t bad = explain_solve_window(e, o, false);
	e->keeps = keeps;
	if (bad)
		return bad;
	/* That holds for the order behind the window as it was. */
	if (e->answer->deterministic) {
		e->answer->deterministic = false;
		free(e->answer->why);
		e->answer->why = NULL;
	}
	if (!e->answer->found)
		return NULL;
	TRY(explain_validate_alternates(e));
	return judge_is_confirmed(e) ? NULL : explain_serial(e, SIZE_MAX);
}

static void tell(struct explanation *e, const struct lost *l, const char *name)
{
	struct sym_trace *t = e->extracted->trace;
	char *s = l->times == 1 ?
		xasprintf("In the whole run, as it was followed, one write of `%s' went over another one that its "
			  "thread had not seen: the one shown.", name) :
		xasprintf("In the whole run, as it was followed, %" PRIu64 " writes of `%s' went over others that "
			  "their thread had not seen; shown is the first. In both orders shown each thread goes on "
			  "undisturbed behind it: none of the others is in them.", l->times, name);

	sym_add_assumption(t, s);
	free(s);
}

err_t explain_lost_updates(struct explanation *e, const struct explain_options *o)
{
	struct lost_word words[MOST_WORDS];
	uint32_t vars[MOST_WORDS];
	struct lost lost;

	if (!is_worth_it(e))
		return NULL;
	allow_more(e);
	size_t n = find_words(e->extracted->trace, words, vars);
	/* Where nobody shares them, they are not known to be what it depends on; a larger window may tell. */
	e->lost_sought = n > 0;
	err_t unknown = n ? lost_find(e->run, words, n, out_of_time, e, &lost) : NULL;
	if (unknown)
		n = 0; /* the answer that there is stays */
	err_free(unknown);
	if (!n || !lost.times || !is_small(&lost.around))
		return NULL;

	char *name = xstrdup(e->extracted->trace->vars[vars[lost.word]].name);
	struct explain_scope around = e->scope;

	around.in_middle = true;
	around.around = lost.around;
	if (explain_try(e, &around, o, solve_around, NULL))
		tell(e, &lost, name);
	free(name);
	return NULL;
}
