/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched hunt --with-fix: the advice of an explanation, or a fix from a file, tried on the real program. */
#include "analyzer/cmd/fix.h"

#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/follow.h"
#include "analyzer/fix/fix.h"
#include "analyzer/launch.h"
#include "analyzer/term.h"
#include "analyzer/trace_image.h"
#include "common/json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_FIXES 4
#define WHEN_FOUND_WITH_NOTHING "auto"

struct tried {
	const struct dsp_hint *hint; /* NULL: it is from a file */
	char *why_not;               /* it could not be applied */
	struct fix_result result;
};

struct session {
	const struct fix_request *r;
	struct fix_trial trial;
	char strategy[160], fail_exit[16];
	struct explanation *e;       /* NULL: the fix is from a file */
	struct fix_count without;
	struct tried tried[MAX_FIXES];
	unsigned ntried;
	bool holds;
};

static void say(const struct session *s, const char *text)
{
	char *safe;

	if (s->r->json)
		return;
	safe = term_text_of(text, strlen(text));
	puts(safe);
	fflush(stdout);
	free(safe);
}

static const char *hint_text(const struct tried *t)
{
	return t->hint ? t->hint->text : NULL;
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
	return NULL;
}

static void say_result(const struct session *s, const struct tried *t)
{
	char *text = t->why_not ? xasprintf("Not tried: %s.", t->why_not) : fix_result_text(&t->result);

	say(s, text);
	free(text);
}

static err_t try_one(struct session *s, const struct dsp_hint *hint, const char *file)
{
	struct tried *t = &s->tried[s->ntried++];
	struct fix f = { 0 };
	err_t e;

	t->hint = hint;
	if (file) {
		TRY(fix_read(file, s->r->argv[0], &f));
	} else {
		say(s, hint->text);
		e = fix_of_hint(s->e->extracted->trace, s->e->images, hint, &f);
		if (e) {
			t->why_not = xstrdup(e->msg);
			err_free(e);
			say_result(s, t);
			return NULL;
		}
	}
	e = fix_run_with(&s->trial, &f, &s->without, &t->result);
	fix_free(&f);
	if (e)
		return e;
	s->holds |= t->result.verdict == FIX_HOLDS;
	say_result(s, t);
	return NULL;
}

static err_t try_all(struct session *s)
{
	char *line;

	if (s->r->file)
		return try_one(s, NULL, s->r->file);
	TRY(try_one(s, &s->e->dsp->hint, NULL));
	if (!s->holds && s->e->dsp->also.text) {
		line = xasprintf("Another way:");
		say(s, line);
		free(line);
		TRY(try_one(s, &s->e->dsp->also, NULL));
	}
	return NULL;
}

static err_t run_without(struct session *s)
{
	char *line;

	TRY(fix_run_without(&s->trial, &s->without));
	line = xasprintf("Without a fix: %llu failures in %llu runs (strategy %s, seed %llu).",
			 (unsigned long long)s->without.failures, (unsigned long long)s->without.runs,
			 *s->strategy ? s->strategy : "native", (unsigned long long)s->trial.seed);
	say(s, line);
	free(line);
	if (!s->without.failures)
		return err_new(ERR_NOANSWER, "the program did not fail in %llu runs like the recorded one: whether a "
			       "fix helps cannot be told (--runs=N tries more)", (unsigned long long)s->without.runs);
	return NULL;
}

static void json_count(struct json *j, const char *key, const struct fix_count *c)
{
	json_object(j, key);
	json_uint(j, "runs", c->runs);
	json_uint(j, "failures", c->failures);
	json_uint(j, "deadlocks", c->deadlocks);
	json_uint(j, "timeouts", c->timeouts);
	json_str(j, "failure", c->first);
	json_end(j);
}

static void print_json(const struct session *s)
{
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "trace", s->r->trace);
	json_str(&j, "strategy", *s->strategy ? s->strategy : "native");
	json_uint(&j, "seed", s->trial.seed);
	json_count(&j, "without", &s->without);
	json_array(&j, "fixes");
	for (unsigned i = 0; i < s->ntried; i++) {
		const struct tried *t = &s->tried[i];
		char *text = fix_result_text(&t->result);

		json_object(&j, NULL);
		json_str(&j, "kind", t->hint ? dsp_hint_name(t->hint->kind) : "file");
		json_str(&j, "hint", hint_text(t));
		json_str(&j, "verdict", fix_verdict_name(t->result.verdict));
		json_str(&j, "why", t->why_not);
		json_count(&j, "with", &t->result.with);
		json_str(&j, "text", text);
		json_end(&j);
		free(text);
	}
	json_end(&j);
	json_bool(&j, "holds", s->holds);
	json_end(&j);
	json_print(&j, stdout);
}

static err_t work(struct session *s)
{
	TRY(open_trace(s));
	if (!s->r->file)
		TRY(explain(s));
	TRY(run_without(s));
	return try_all(s);
}

int fix_command(const struct fix_request *r)
{
	struct session s = {
		.r = r,
		.trial = { .argv = r->argv, .fail_exit = r->fail_exit, .options = r->options,
			   .runs = r->runs ? r->runs : FIX_RUNS, .seconds = r->time, .run_limit = r->limit,
			   .jobs = (uint32_t)r->jobs },
	};
	char *shim = NULL;
	bool alone;
	err_t e = launch_find_shim(&shim);

	s.trial.shim = shim;
	char *obstacle = e ? NULL : launch_obstacle(r->argv[0], &alone);
	if (obstacle)
		e = err_new(ERR_USAGE, "%s", obstacle);
	free(obstacle);
	launch_suit(r->argv[0]);
	if (!e)
		e = work(&s);
	if (!e && r->json)
		print_json(&s);
	for (unsigned i = 0; i < s.ntried; i++) {
		free(s.tried[i].why_not);
		fix_result_free(&s.tried[i].result);
	}
	fix_count_free(&s.without);
	if (s.e)
		explanation_free(s.e);
	free(shim);
	if (e)
		return cmd_fail("hunt", e);
	return s.holds ? 0 : ERR_NOANSWER;
}
