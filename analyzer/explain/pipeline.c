#include "analyzer/explain/candidate.h"
#include "analyzer/explain/judge.h"

#include "common/log.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

void explain_gap(struct explanation *e, const char *phase, const char *why)
{
	char *text = xstrdup(why);

	vec_push(&e->texts, text);
	vec_push(&e->gaps, (struct report_gap){ phase, text });
}

void explain_phase_done(struct explanation *e, const char *name, double since)
{
	for (size_t i = 0; i < e->phases.n; i++)
		if (!strcmp(e->phases.v[i].name, name)) {
			e->phases.v[i].seconds += explain_clock() - since;
			return;
		}
	vec_push(&e->phases, (struct report_phase){ name, explain_clock() - since });
}

static bool machine_progress(void *arg, uint64_t insns, double part)
{
	const struct explain_options *o = arg;

	(void)insns;
	return o->progress && o->progress(o->progress_arg, "following the run", part);
}

static err_t open_all(struct explanation *e, const char *path, const struct explain_options *o)
{
	struct mach_options m = { .keep_checkpoints = true, .timeout = o->timeout,
				  .progress = machine_progress,
				  .progress_arg = (void *)o };

	TRY(trc_open(path, 0, &e->t));
	e->images = img_set_new();
	if (!e->t->memory || !e->t->frags)
		return err_new(ERR_NOANSWER,
			       "%s holds sync events only: it was recorded with mode=sync or "
			       "recording ended before it began; record again with mode=path", path);
	return mach_open(e->t, e->images, &m, &e->run);
}

static const char *signal_word(int number)
{
	const char *word = number > 0 && number < NSIG ? sigabbrev_np(number) : NULL;

	return word ? word : "?";
}

/* Without a failure, or with one that came from outside, there are no orders to look for. */
static err_t has_cause(const struct trc *t, const char *path)
{
	if (!t->failure && !t->end)
		return err_new(ERR_NOANSWER, "the recorded run was killed (or is still running): its record is cut off "
			       "and no failure comes before that; csched info %s", path);
	if (!t->failure && t->end->rec.flags == 1)
		return err_new(ERR_NOANSWER, "the recorded run was killed by signal %d (SIG%s), which is no failure of "
			       "its own; csched info %s", t->end->status, signal_word(t->end->status), path);
	if (!t->failure)
		return err_new(ERR_NOANSWER, "the recorded run did not fail; csched info %s", path);
	return explain_from_outside(t);
}

err_t explain_follow(const char *path, const struct explain_options *o, struct explanation **out)
{
	struct explanation *e = xcalloc(1, sizeof *e);
	double since = explain_clock();
	err_t bad;

	e->deadline = o->timeout > 0 ? since + o->timeout : 0;
	e->scope = (struct explain_scope){ .window = o->window, .whole = o->whole, .model = o->model };
	bad = open_all(e, path, o);

	if (!bad && o->wants_cause)
		bad = has_cause(e->t, path);
	if (!bad && o->wants_cause)
		bad = explain_inherited_lock(e->t, e->images);
	if (!bad)
		bad = mach_follow(e->run, &e->followed);
	if (bad) {
		explanation_free(e);
		return bad;
	}
	explain_phase_done(e, "machine", since);
	log_line(LOG_FOLLOW, 1, "%" PRIu64 " instructions, failure %s%s%s", e->followed.insns,
		 e->followed.failure_reached ? "reached" : "not reached", e->followed.why ? ": " : "",
		 e->followed.why ? e->followed.why : "");
	explain_allow_effort(e, o);
	*out = e;
	return NULL;
}

err_t explain_extract(struct explanation *e, const struct explain_options *o)
{
	return scope_extract(e, o, &e->scope, &e->extracted);
}

/* The answer that was found belongs to e. */
static void conclude(struct explanation *e, struct candidate *c)
{
	e->scope = c->scope;
	e->answer = c->answer;
	e->failing_proof = c->failing_proof;
	e->alternate_proof = c->alternate_proof;
	e->failing_why = c->failing_why;
	e->alternate_why = c->alternate_why;
	if (c->note)
		sym_add_assumption(e->extracted->trace, c->note);
	if (c->attempt < e->attempts.n)
		e->attempts.v[c->attempt].chosen = true;
	explain_notes(e);
	judge_conclude(e);
	e->answer->stats.questions = e->asked;
	e->answer->stats.constraints = e->clauses;
	e->answer->stats.variables = e->bools;
	c->answer = NULL;
	c->failing_why = c->alternate_why = NULL;
}

static void search_free(struct search *s)
{
	for (size_t i = 0; i < s->found.n; i++)
		candidate_free(s->found.v[i]);
	for (size_t i = 0; i < s->views.n; i++) {
		ext_result_free(s->views.v[i]->extracted);
		vec_free(&s->views.v[i]->firm);
		free(s->views.v[i]);
	}
	vec_free(&s->found);
	vec_free(&s->views);
}

/* e has the extraction that the candidate is told of. */
static void take_extraction(struct explanation *e, struct search *s, const struct candidate *c)
{
	for (size_t i = 0; i < s->views.n; i++)
		if (s->views.v[i]->extracted == c->extracted) {
			e->extracted = s->views.v[i]->extracted;
			s->views.v[i]->extracted = NULL;
		}
}

err_t explain_solve(struct explanation *e, const struct explain_options *o)
{
	struct search s = { .e = e, .o = o, .chosen = o->window != 0 };
	double since = explain_clock();
	err_t bad = search_run(&s);
	struct candidate *best = (struct candidate *)s.best;

	explain_phase_done(e, "search", since);
	if (!bad && !s.chosen && !best->scope.in_middle && best->answer->found)
		best = history_extend(&s, best);
	if (!bad) {
		take_extraction(e, &s, best);
		conclude(e, best);
		bad = dsp_build(e->extracted->trace, e->answer, &e->dsp);
	}
	if (!bad)
		explain_misuse_hint(e);
	search_free(&s);
	return bad;
}

void explanation_free(struct explanation *e)
{
	if (!e)
		return;
	dsp_free(e->dsp);
	sched_answer_free(e->answer);
	ext_result_free(e->extracted);
	for (size_t i = 0; i < sizeof e->surveys / sizeof *e->surveys; i++)
		ext_survey_free(e->surveys[i]);
	mach_result_free(&e->followed);
	mach_close(e->run);
	img_set_free(e->images);
	trc_close(e->t);
	for (size_t i = 0; i < e->texts.n; i++)
		free(e->texts.v[i]);
	vec_free(&e->texts);
	vec_free(&e->gaps);
	vec_free(&e->attempts);
	vec_free(&e->phases);
	free(e->failing_why);
	free(e->alternate_why);
	free(e);
}
