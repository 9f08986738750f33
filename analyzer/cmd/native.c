#include "analyzer/cmd/native.h"

#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/follow.h"
#include "analyzer/cmd/native_answer.h"
#include "analyzer/cmd/native_gdb.h"
#include "analyzer/hunt/child.h"
#include "analyzer/hunt/files.h"
#include "analyzer/hunt/interrupt.h"
#include "analyzer/hunt/native.h"
#include "analyzer/enforce/schedule.h"
#include "analyzer/image/image.h"
#include "analyzer/launch.h"
#include "common/newfile.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Schedules to enforce: of an alternate there may be several, the likeliest first. */
struct files {
	VEC(char *) v;
	char work[PATH_MAX]; /* a directory of our own for those that cannot lie beside the trace; "": there is none */
};

static unsigned ways_of(const struct native_request *r)
{
	return r->alternate ? ENFORCE_PASSING_WAYS : ENFORCE_FAILING_WAYS;
}

/* In the trace, as `csched explain` left them, or in our directory. */
static void kept_schedules(const struct native_request *r, const char *dir, struct files *out)
{
	for (unsigned way = 0; way < ways_of(r); way++) {
		char *name = enforce_file_name(dir, r->alternate, way);

		if (!access(name, R_OK))
			vec_push(&out->v, name);
		else
			free(name);
	}
}

struct making {
	const struct native_request *r;
	const char *work;
	struct explanation *e;
	unsigned way;
};

static err_t write_schedule(FILE *f, void *making)
{
	const struct making *m = making;

	struct enforce what = explain_enforce(m->e);

	return m->r->alternate ? enforce_write_alternate(&what, m->way, f) : enforce_write_failing(&what, m->way, f);
}

/* Later ways may exist where an earlier one does not; the first one says why there is none. */
static err_t write_schedules(struct making *m)
{
	bool some = false, fatal = false;
	err_t first = NULL;

	for (m->way = 0; m->way < ways_of(m->r) && !fatal; m->way++) {
		char *name = enforce_file_name(m->work, m->r->alternate, m->way);
		err_t bad = newfile_write(name, NEWFILE_GIVEN, 0600, write_schedule, m);

		some |= !bad;
		fatal = bad && bad->code != ERR_NOANSWER;
		if (first || !bad)
			err_free(bad);
		else
			first = bad;
		free(name);
	}
	if (!some)
		return first;
	err_free(first);
	return NULL;
}

static err_t explain_now(struct making *m)
{
	struct explain_options x;

	explain_options_init(&x);
	x.whole = x.wants_cause = true;
	TRY(follow_to_end(m->r->trace, &x, &m->e));
	/* A live run cannot be brought to a checkpoint: only to what came after its own beginning. */
	if (m->e->t->epoch > 1 && trc_epochs_before(m->e->t, UINT32_MAX) == 1) {
		explanation_free(m->e);
		trc_epoch_wanted = 1;
		TRY(follow_to_end(m->r->trace, &x, &m->e));
	}
	err_t bad = m->e->t->epoch <= 1 ? explain_solve(m->e, &x) :
		    err_new(ERR_NOANSWER, "%s begins at a checkpoint: a run of the program cannot be brought to there; "
					  "replay it without --native, or record without --ring", m->r->trace);
	follow_quiet();
	if (!bad)
		bad = write_schedules(m);
	/* Next time, or for the other order, it need not be explained again. */
	if (m->e->answer && !m->e->t->packed)
		explain_keep_orders(m->e, m->r->trace);
	explanation_free(m->e);
	return bad;
}

static int explain_confined(void *making)
{
	return cmd_fail("replay", explain_now(making));
}

/* Not explained yet (or packed): a confined process explains it, and leaves the schedules in our directory. */
static err_t make_schedules(const struct native_request *r, struct files *out, int *status)
{
	struct making m = { .r = r, .work = out->work };

	TRY(files_make_work("csched-replay", out->work, sizeof out->work));
	for (unsigned way = 0; way < ways_of(r); way++) {
		char *name = enforce_file_name(out->work, r->alternate, way);
		err_t bad = newfile_hold(name, NEWFILE_GIVEN, 0600);

		free(name);
		if (bad)
			return bad;
	}
	*status = confined_run(&(struct confined){ .command = "replay", .input = r->trace }, explain_confined, &m);
	if (!*status)
		kept_schedules(r, out->work, out);
	return NULL;
}

static void free_files(struct files *f)
{
	for (size_t i = 0; i < f->v.n; i++)
		free(f->v.v[i]);
	vec_free(&f->v);
	if (*f->work)
		files_remove_tree(f->work);
}

static bool show(void *arg, uint32_t done, uint32_t runs)
{
	progress_at(arg, done, runs);
	return false;
}

/* Runs that do not end before that is what is to be said about the order. */
#define MOST_TIMEOUTS 3

static err_t enforce(struct native_answer *a, const char *shim, const char *schedule, const struct trc *t,
		     uint32_t runs)
{
	const struct native_request *q = a->q;
	struct progress line = { .what = "native runs" };

	a->limit = q->limit > 0 ? q->limit : native_limit(t);
	struct native_options o = {
		.argv = q->argv, .shim = shim, .schedule = schedule, .t = t, .rebuilt = a->rebuilt,
		.runs = runs, .limit = a->limit, .most_timeouts = a->trial || a->seconds > 0 ? 1 : MOST_TIMEOUTS,
		.seconds = a->seconds > 0 ? a->seconds : q->time, .until_failure = a->trial,
		.most_diverged = a->most_diverged, .progress = show, .progress_arg = &line,
	};
	err_t e = native_run(&o, &a->r);

	progress_end(&line);
	return e;
}

/* ---- another build ---- */

static err_t remap(struct native_answer *a, const char *program)
{
	TRY(schedule_remap(&a->schedule, program));
	for (size_t i = 0; i < a->schedule.edges.n; i++)
		a->lost += schedule_edge_lost(&a->schedule.edges.v[i]);
	a->rebuilt = true;
	if (a->lost == a->schedule.edges.n)
		return err_new(ERR_NOANSWER, "%s was rebuilt, and none of the %zu orderings was found "
					     "again in it by its source line", program, a->schedule.edges.n);
	return NULL;
}

/* The schedule as this program needs it: for another name, for another build. *schedule: a new file, or NULL. */
static err_t adapt(struct native_answer *a, const struct trc *t, const char *program, char **schedule)
{
	const char *recorded = trc_identity(t, "program");
	bool renamed = recorded && schedule_rename(&a->schedule, recorded, program);
	bool foreign = schedule_is_foreign(&a->schedule, program);
	FILE *f;

	if (foreign)
		TRY(remap(a, program));
	if (!foreign && !renamed)
		return NULL;
	TRY(files_make_file("csched-schedule", schedule, &f));
	schedule_write(&a->schedule, f);
	fclose(f);
	return NULL;
}

/* As execvp would find it; malloc'd, or NULL. */
static char *find_program(const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return xstrdup(name);
	while (path && *path) {
		size_t n = strcspn(path, ":");
		char *full = xasprintf("%.*s/%s", (int)n, path, name);

		if (!access(full, X_OK))
			return full;
		free(full);
		path += n + (path[n] == ':');
	}
	return NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A word of this text that names a program of that file name; malloc'd, or NULL. */
static char *program_in(const char *text, const char *name)
{
	while (*text) {
		size_t n = strcspn(text, " \t\n;&|()'\"");
		char *word = xasprintf("%.*s", (int)n, text);

		if (n && !strcmp(base_name(word), name) && !access(word, X_OK))
			return word;
		free(word);
		text += n + (text[n] != 0);
	}
	return NULL;
}

/*
 * The program that the schedule is for, as it is now. A shell, a script or env(1) may start it: then an
 * argument names it, or it lies where it was recorded.
 */
static char *find_recorded(char *const *argv, const struct trc *t)
{
	const char *recorded = trc_identity(t, "program");
	char *program = find_program(argv[0]), *id = NULL, *other = NULL;

	if (!program || !recorded || !strcmp(base_name(program), base_name(recorded)))
		return program;
	for (size_t i = 1; argv[i] && !other; i++)
		other = program_in(argv[i], base_name(recorded));
	id = img_build_id_of_file(program);
	if (!other && !id && !access(recorded, R_OK))
		other = xstrdup(recorded);
	free(id);
	if (!other)
		return program;
	free(program);
	return other;
}

/* Enforces one schedule file; *a has the result. runs 0: under gdb. */
static err_t with_schedule(struct native_answer *a, const struct trc *t, const char *file, uint32_t runs,
			   int *status)
{
	char *program = find_recorded(a->q->argv, t), *mapped = NULL, *shim = NULL;
	char *absolute = realpath(file, NULL);
	err_t e = schedule_read(file, &a->schedule);

	if (!e)
		e = launch_find_shim(&shim);
	if (!e && program)
		e = adapt(a, t, program, &mapped);
	const char *use = mapped ? mapped : absolute ? absolute : file;
	if (!e && !runs)
		e = native_gdb(a->q->argv, shim, use, t);
	else if (!e && !(e = enforce(a, shim, use, t, runs)))
		*status = native_answer_status(a);
	if (mapped)
		unlink(mapped);
	free(mapped);
	free(program);
	free(absolute);
	free(shim);
	return e;
}

/* Runs in which a way of going on behind an alternate must not fail to be taken. */
#define TRIALS 20
/* Those in which a failing order must not go another way, or another one is tried. */
#define FAILING_TRIALS 4
/* A way that does not keep the order is taken only when there is no other: the first run that shows it tells enough. */
#define DIVERGED_TRIALS 1

/* Runs may take long where threads wait in vain: each way gets this much, and the request as a whole its time. */
#define TRIAL_SECONDS 10.0

/* 0: it does not do what it is for, or cannot be completed; 1: it does, but went another way; 2: neither. */
static err_t try_way(const struct native_request *q, const struct trc *t, const char *file, int *good)
{
	struct native_answer a = { .q = q, .trial = q->alternate, .most_diverged = DIVERGED_TRIALS,
				   .seconds = TRIAL_SECONDS };
	int status = 0;
	err_t e = with_schedule(&a, t, file, q->alternate ? TRIALS : FAILING_TRIALS, &status);

	*good = e || status || a.r.timeouts ? 0 : a.r.diverged ? 1 : 2;
	native_answer_free(&a);
	return e;
}

/* A patched program is expected to go another way: that says nothing about the schedule. */
static bool is_rebuilt(const struct native_request *q, const struct trc *t, const char *file)
{
	char *program = find_recorded(q->argv, t);
	const char *recorded = trc_identity(t, "program");
	struct schedule s = { 0 };
	err_t e = schedule_read(file, &s);
	if (!e && program && recorded)
		schedule_rename(&s, recorded, program);
	bool rebuilt = !e && program && schedule_is_foreign(&s, program);

	err_free(e);
	schedule_free(&s);
	free(program);
	return rebuilt;
}

/* Which of several ways to take, from *way on: the first of the best. False: none of them did well. */
static err_t choose_way(const struct native_request *q, const struct trc *t, const struct files *f, double until,
			size_t *way, bool *found)
{
	int best = 0, good = 0;

	*found = !*way;
	if (!q->alternate && is_rebuilt(q, t, f->v.v[0]))
		return NULL;
	for (size_t i = *way; f->v.n > 1 && i < f->v.n && best < 2 && !interrupt_pending() && child_now() < until; i++) {
		TRY(try_way(q, t, f->v.v[i], &good));
		if (good > best) {
			best = good;
			*way = i;
			*found = true;
		}
	}
	return NULL;
}

/*
 * What fails seldom may not fail in a few trials: then the next way is taken that does well. When there is none
 * any more, the one that went well for longest is what can be had.
 */
static err_t run_ways(struct native_answer *a, const struct trc *t, const struct files *f, int *status)
{
	const struct native_request *q = a->q;
	uint32_t runs = q->gdb ? 0 : q->runs ? (uint32_t)q->runs : 1, longest = 0;
	double until = q->time > 0 ? child_now() + q->time : 1e18;
	size_t best = 0;
	bool found;

	for (size_t way = 0;; way++) {
		TRY(choose_way(q, t, f, until, &way, &found));
		way = found ? way : best;
		*a = (struct native_answer){ .q = q, .ways = (uint32_t)f->v.n, .way = (uint32_t)way + 1,
				      .trial = q->alternate && found && f->v.n > 1 && child_now() < until };
		TRY(with_schedule(a, t, f->v.v[way], runs, status));
		if (!a->trial || (!a->r.failures && !a->r.timeouts) || interrupt_pending())
			return NULL;
		if (a->r.runs > longest) {
			longest = a->r.runs;
			best = way;
		}
		native_answer_free(a);
	}
}

static err_t run_it(const struct native_request *q, const struct trc *t, const struct files *f,
		    int *status)
{
	struct native_answer a = { .q = q };
	err_t e = run_ways(&a, t, f, status);

	/* Interrupted: what is known is said all the same. */
	if (!e && a.r.runs)
		native_answer_print(&a);
	native_answer_free(&a);
	return e;
}

static err_t replay(const struct native_request *q, int *status)
{
	struct files files = { 0 };
	struct trc *t = NULL;

	if (!q->argv || !q->argv[0])
		return err_new(ERR_USAGE, "--native needs the program: TRACE -- PROGRAM ARGS...");
	err_t e = trc_open(q->trace, 0, &t);
	if (!e && !t->failure)
		e = err_new(ERR_NOANSWER, "%s records no failure", q->trace);
	if (!e)
		kept_schedules(q, q->trace, &files);
	if (!e && !files.v.n)
		e = make_schedules(q, &files, status);
	interrupt_catch();
	if (!e && !*status)
		e = run_it(q, t, &files, status);
	free_files(&files);
	if (t)
		trc_close(t);
	fflush(stdout);
	interrupt_obey();
	return e;
}

int native_replay(const struct native_request *r)
{
	int status = 0;
	err_t e = replay(r, &status);

	return e ? cmd_fail("replay", e) : status;
}
