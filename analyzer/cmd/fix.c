/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched hunt --with-fix: the advice of an explanation, or a fix from a file, tried on the real program. */
#include "analyzer/cmd/fix.h"

#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/follow.h"
#include "analyzer/fix/fix.h"
#include "analyzer/launch.h"
#include "analyzer/term.h"
#include "analyzer/trace_image.h"
#include "common/json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WHEN_FOUND_WITH_NOTHING "auto"

struct session {
	const struct fix_request *r;
	struct fix_trial trial;
	char *shim;
	char strategy[160], fail_exit[16];
	struct explanation *e; /* NULL: the fix is from a file */
	/* Of a fix from a file. */
	struct fix_count without, with;
	struct dsp_trial result;
};

static void say(const struct session *s, const char *text)
{
	char *safe;

	if (s->r->json || !text)
		return;
	safe = term_text_of(text, strlen(text));
	puts(safe);
	fflush(stdout);
	free(safe);
}

/* While runs are made, for who looks at a terminal. */
static void progress(const struct session *s, const char *what)
{
	if (isatty(STDERR_FILENO) && !s->r->json)
		fprintf(stderr, "\r\033[K%s", what);
}

static err_t open_trace(struct session *s)
{
	struct trc *t;

	TRY(trc_open(s->r->trace, TRC_TOLERANT, &t));
	if (!t->failure) {
		trc_close(t);
		return err_new(ERR_NOANSWER, "%s: this run did not fail: there is nothing to fix", s->r->trace);
	}
	if (!fix_strategy_of(t, s->strategy, sizeof s->strategy, &s->trial.seed))
		snprintf(s->strategy, sizeof s->strategy, "%s", WHEN_FOUND_WITH_NOTHING);
	s->trial.strategy = s->strategy;
	if (t->failure->rec.flags == TRC_FAIL_EXIT && !s->r->fail_exit) {
		snprintf(s->fail_exit, sizeof s->fail_exit, "%d", t->failure->status);
		s->trial.fail_exit = s->fail_exit;
	}
	trc_close(t);
	return NULL;
}

/* What the trace does not say. */
static err_t trial_of(const struct fix_request *r, struct fix_trial *out, char **shim)
{
	bool alone;

	*out = (struct fix_trial){
		.argv = r->argv, .fail_exit = r->fail_exit, .options = r->options, .runs = r->runs ? r->runs : FIX_RUNS,
		.seconds = r->time, .run_limit = r->limit, .jobs = (uint32_t)r->jobs, .input = r->input, .outside = r->outside,
	};
	if (r->outside)
		return NULL;
	TRY(launch_find_shim(shim));
	out->shim = *shim;
	char *obstacle = launch_obstacle(r->argv[0], &alone);
	err_t e = obstacle ? err_new(ERR_USAGE, "%s", obstacle) : NULL;
	free(obstacle);
	launch_suit(r->argv[0]);
	return e;
}

static err_t begin(struct session *s)
{
	TRY(trial_of(s->r, &s->trial, &s->shim));
	return open_trace(s);
}

int fix_confined(struct fix_request *r, const char *command, int (*work)(void *), void *arg)
{
	struct sandbox_helper helper = { 0 };
	struct fix_trial trial;
	char *shim = NULL;
	err_t e = trial_of(r, &trial, &shim);

	if (!e)
		e = sandbox_helper_start(fix_serve, &trial, &helper);
	free(shim);
	if (e)
		return cmd_fail(command, e);
	r->outside = helper.sock;
	int status = confined_run(&(struct confined){ .command = command, .input = r->trace, .keep = { helper.sock } }, work, arg);
	sandbox_helper_end(&helper);
	r->outside = 0;
	return status;
}

/* ---- the advice of an explanation ---- */

err_t fix_try(const struct fix_request *r, struct explanation *e)
{
	struct session s = { .r = r };
	err_t bad = begin(&s);

	if (!bad) {
		progress(&s, "trying the advice on the program");
		bad = fix_try_hints(&s.trial, e->extracted->trace, e->images, e->dsp);
		progress(&s, "");
	}
	if (!bad && !e->t->packed)
		fix_keep_trials(r->trace, e->dsp);
	free(s.shim);
	return bad;
}

static err_t explain(struct session *s)
{
	struct explain_options x;

	explain_options_init(&x);
	x.wants_cause = true;
	TRY(follow_to_end(s->r->trace, &x, &s->e));
	err_t e = explain_solve(s->e, &x);
	follow_quiet();
	if (e)
		return e;
	if (!s->e->dsp->hint.text)
		return err_new(ERR_NOANSWER, "%s: there is no advice to try; csched explain says what is known",
			       s->r->trace);
	return fix_try(s->r, s->e);
}

static void say_hint(const struct session *s, const struct dsp_hint *h, const char *word)
{
	char *text, *result = dsp_trial_text(&h->trial);

	if (!h->text)
		return;
	text = xasprintf("%s%s", word, h->text);
	say(s, text);
	say(s, result ? result : "(Not tried.)");
	free(text);
	free(result);
}

/* ---- a fix from a file ---- */

static err_t try_file(struct session *s)
{
	struct fix f = { 0 };
	char *line;

	TRY(fix_read(s->r->file, s->r->argv[0], &f));
	progress(s, "running the program without the fix");
	err_t e = fix_run_without(&s->trial, &s->without);
	if (!e && !s->without.failures)
		e = err_new(ERR_NOANSWER, "the program did not fail in %llu runs like the recorded one: whether a "
			    "fix helps is not known (--runs=N tries more)", (unsigned long long)s->without.runs);
	progress(s, "running the program with the fix");
	if (!e)
		e = fix_run_with(&s->trial, &f, &s->without, &s->with, &s->result);
	progress(s, "");
	fix_free(&f);
	if (e)
		return e;
	line = dsp_trial_text(&s->result);
	say(s, line);
	free(line);
	if (s->with.first) {
		line = xasprintf("It failed like this: %s", s->with.first);
		say(s, line);
		free(line);
	}
	return NULL;
}

/* ---- what came of it ---- */

static void json_fix(struct json *j, const char *kind, const char *hint, const struct dsp_trial *t, const char *failure)
{
	char *text = dsp_trial_text(t);

	json_object(j, NULL);
	json_str(j, "kind", kind);
	json_str(j, "hint", hint);
	report_trial_json(j, "tried", t);
	json_str(j, "failure", failure);
	json_str(j, "text", text);
	json_end(j);
	free(text);
}

static void print_json(const struct session *s, bool holds)
{
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "trace", s->r->trace);
	json_array(&j, "fixes");
	if (s->e) {
		const struct dsp *d = s->e->dsp;

		json_fix(&j, dsp_hint_name(d->hint.kind), d->hint.text, &d->hint.trial, NULL);
		if (d->also.text)
			json_fix(&j, dsp_hint_name(d->also.kind), d->also.text, &d->also.trial, NULL);
		for (size_t i = 0; i < d->nmore; i++)
			if (d->more[i].trial.verdict != DSP_UNTRIED)
				json_fix(&j, dsp_hint_name(d->more[i].kind), d->more[i].text, &d->more[i].trial, NULL);
	} else {
		json_fix(&j, "file", NULL, &s->result, s->with.first);
	}
	json_end(&j);
	json_bool(&j, "holds", holds);
	json_end(&j);
	json_print(&j, stdout);
}

/* In a file's case of the program only, else of a trace: then confined. */
static int command(void *request)
{
	struct session s = { .r = request };
	err_t e = s.r->file ? begin(&s) : NULL;
	bool holds = false;

	if (!e)
		e = s.r->file ? try_file(&s) : explain(&s);
	if (!e && s.e) {
		say_hint(&s, &s.e->dsp->hint, "");
		say_hint(&s, &s.e->dsp->also, "Or: ");
	}
	if (!e)
		holds = (s.e ? &s.e->dsp->hint.trial : &s.result)->verdict == DSP_HOLDS;
	if (!e && s.r->json)
		print_json(&s, holds);
	fix_count_free(&s.without);
	fix_count_free(&s.with);
	if (s.e)
		explanation_free(s.e);
	free(s.shim);
	if (e)
		return cmd_fail("hunt", e);
	return holds ? 0 : ERR_NOANSWER;
}

int fix_command(struct fix_request *r)
{
	return r->file ? command(r) : fix_confined(r, "hunt", command, r);
}
