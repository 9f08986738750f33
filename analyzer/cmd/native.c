#include "analyzer/cmd/native.h"

#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/follow.h"
#include "analyzer/cmd/native_gdb.h"
#include "analyzer/hunt/child.h"
#include "analyzer/hunt/files.h"
#include "analyzer/hunt/interrupt.h"
#include "analyzer/hunt/native.h"
#include "analyzer/hunt/schedule.h"
#include "analyzer/image/image.h"
#include "analyzer/launch.h"
#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_LIMIT 60.0

/* Schedules to enforce: of an alternate there may be several, the likeliest first. */
struct files {
	VEC(char *) v;
	bool temporary;
};

static unsigned ways_of(const struct native_request *r)
{
	return r->alternate ? EXPLAIN_MAX_WAYS : EXPLAIN_FAILING_WAYS;
}

/* Beside the trace, as `csched explain` left them. */
static void kept_schedules(const struct native_request *r, struct files *out)
{
	for (unsigned way = 0; way < ways_of(r); way++) {
		char *name = explain_schedule_name(r->trace, r->alternate, way);

		if (!access(name, R_OK))
			vec_push(&out->v, name);
		else
			free(name);
	}
}

/* ERR_NOANSWER: there is no such way. */
static err_t make_schedule(struct explanation *e, bool alternate, unsigned way, struct files *out)
{
	char *name;
	FILE *f;

	TRY(files_make_file("csched-schedule", &name, &f));
	vec_push(&out->v, name);
	err_t bad = alternate ? explain_write_alternate(e, way, f) : explain_write_failing(e, way, f);
	fclose(f);
	if (bad) {
		unlink(name);
		free(name);
		out->v.n--;
	}
	return bad;
}

/* Not explained yet (or packed): explain it now. */
static err_t explain_now(const char *trace, struct explanation **out)
{
	struct explain_options x;

	explain_options_init(&x);
	x.whole = true;
	TRY(follow_to_end(trace, &x, out));
	err_t bad = explain_solve(*out, &x);
	follow_quiet();
	return bad;
}

/* Later ways may exist where an earlier one does not; why there is none, the first one tells. */
static err_t make_schedules(const struct native_request *r, struct explanation *e, struct files *out)
{
	err_t first = NULL;

	out->temporary = true;
	for (unsigned way = 0; way < ways_of(r); way++) {
		err_t bad = make_schedule(e, r->alternate, way, out);
		bool fatal = bad && bad->code != ERR_NOANSWER;

		if (first || !bad)
			err_free(bad);
		else
			first = bad;
		if (fatal)
			break;
	}
	if (out->v.n) {
		err_free(first);
		first = NULL;
	}
	return first;
}

static void free_files(struct files *f)
{
	for (size_t i = 0; i < f->v.n; i++) {
		if (f->temporary)
			unlink(f->v.v[i]);
		free(f->v.v[i]);
	}
	vec_free(&f->v);
}

/* ---- the answer ---- */

/* Everything that is known about one request. */
struct answer {
	const struct native_request *q;
	struct schedule schedule;
	bool rebuilt;      /* the program is not the recorded build */
	uint32_t lost;     /* edges with no place in that build */
	uint32_t way, ways; /* of enforcing an alternate, from 1 */
	bool trial;        /* to choose a way: the first failure ends it ... */
	uint32_t most_diverged; /* ... and so many runs that go another way */
	double seconds;    /* for its runs; 0: as many as were asked for */
	struct native_result r;
};

static void answer_free(struct answer *a)
{
	schedule_free(&a->schedule);
	native_result_free(&a->r);
	*a = (struct answer){ 0 };
}

static bool impossible(const struct answer *a)
{
	return a->r.runs && a->r.diverged == a->r.runs;
}

static void print_lost(const struct answer *a)
{
	printf("the program was built anew: %zu of %zu orderings were found again by their source lines\n",
	       a->schedule.edges.n - a->lost, a->schedule.edges.n);
	for (size_t i = 0; i < a->schedule.edges.n; i++) {
		const struct schedule_edge *e = &a->schedule.edges.v[i];

		for (int side = 0; side < 2; side++) {
			const struct schedule_end *end = side ? &e->target : &e->source;
			if (!end->lost)
				continue;
			char *text = schedule_end_text(end);
			printf("  gone: %s%s%s\n", text, end->place.text ? "  " : "",
			       end->place.text ? end->place.text : "");
			free(text);
		}
	}
}

static void print_edges(const struct answer *a)
{
	for (uint32_t i = 0; i < a->r.nedges; i++) {
		const struct native_edge *n = &a->r.edges[i];
		const struct schedule_edge *e = schedule_edge(&a->schedule, n->id);

		/* What is waited for in vain behind the first time follows from that. */
		if (!e || !n->first)
			continue;
		char *target = schedule_end_text(&e->target), *source = schedule_end_text(&e->source);
		printf("  in %u of %u runs %s waited in vain for %s\n", n->first, a->r.runs, target, source);
		free(target);
		free(source);
	}
}

/* For a rebuilt program the question is whether the fix holds. */
static void print_verdict(const struct answer *a)
{
	const struct native_result *r = &a->r;

	if (!a->rebuilt || a->q->alternate)
		return;
	if (r->failures)
		printf("it still fails in this order: %u of %u runs\n", r->failures, r->runs);
	else if (impossible(a))
		puts("the failing order is no longer possible, and it did not fail");
	else if (a->lost)
		puts("what is left of the failing order is possible; it did not fail");
	else
		puts("the failing order is still possible; it did not fail");
}

/* The one kind of failure that no order of whole steps gives. */
static void print_meetings(const struct answer *a)
{
	for (size_t i = 0; i < a->schedule.edges.n; i++) {
		const struct schedule_edge *e = &a->schedule.edges.v[i];

		if (!e->meet)
			continue;
		char *one = schedule_end_text(&e->source), *other = schedule_end_text(&e->target);
		printf("  no order gives this failure: it needs stores that other processors see late. %s and %s "
		       "were let go at the same instant; whether the stores are late is up to the processor\n",
		       one, other);
		free(one);
		free(other);
	}
}

static void print_way(const struct answer *a)
{
	if (a->schedule.retreats && !a->schedule.edges.n)
		printf("  (way %u of %u: nothing is kept of the failing order, from the start one thread at a time%s)\n",
		       a->way, a->ways, a->schedule.yields ? "; who makes or wakes another one lets it go first" : "");
	else if (a->schedule.retreats)
		printf("  (way %u of %u: the failing order up to before its cause, from there one thread at a "
		       "time)\n", a->way, a->ways);
	else if (a->way > 1 && !a->q->alternate)
		printf("  (way %u of %u: without what led to where the explanation begins: with that it went another "
		       "way)\n", a->way, a->ways);
	else if (a->way > 1)
		printf("  (way %u of %u for the run to go on behind that order: in the first it failed)\n",
		       a->way, a->ways);
}

/* The same bug may strike again later, or before its time has come: that says nothing about the order. */
static void print_behind(const struct answer *a)
{
	const struct native_result *r = &a->r;

	if (!a->q->alternate || !r->failures)
		return;
	if (r->behind)
		printf("  %u of %u failures came behind that order, which had been kept: at another moment of the run\n",
		       r->behind, r->failures);
	if (r->behind < r->failures)
		printf("  %u of %u failures came before all of that order had happened\n", r->failures - r->behind,
		       r->failures);
}

static void print_text(const struct answer *a)
{
	const struct native_result *r = &a->r;

	if (a->rebuilt)
		print_lost(a);
	printf("%s order, enforced %u times: failed %u of %u, %u as recorded",
	       a->q->alternate ? "alternate" : "failing", r->runs, r->failures, r->runs, r->same);
	if (r->diverged)
		printf(", %u went another way", r->diverged);
	if (r->timeouts)
		printf(", %u ended by the time limit", r->timeouts);
	if (r->unrecorded)
		printf(", %u left no trace", r->unrecorded);
	printf(" (%.1f s)\n", r->seconds);
	print_way(a);
	print_behind(a);
	print_meetings(a);
	print_edges(a);
	if (r->other) {
		char *safe = term_text_of(r->other, strlen(r->other));

		printf("another failure was seen: %s\n", safe);
		free(safe);
	}
	print_verdict(a);
}

static void json_edges(struct json *j, const struct answer *a)
{
	json_array(j, "not_kept");
	for (uint32_t i = 0; i < a->r.nedges; i++) {
		const struct native_edge *n = &a->r.edges[i];
		const struct schedule_edge *e = schedule_edge(&a->schedule, n->id);
		char *source = e ? schedule_end_text(&e->source) : NULL;
		char *target = e ? schedule_end_text(&e->target) : NULL;

		json_object(j, NULL);
		json_str(j, "source", source);
		json_str(j, "target", target);
		json_uint(j, "waited_in_vain", n->vain);
		json_uint(j, "went_another_way_here", n->first);
		json_uint(j, "source_missing", n->no_source);
		json_uint(j, "target_missing", n->no_target);
		json_end(j);
		free(source);
		free(target);
	}
	json_end(j);
}

static void print_json(const struct answer *a)
{
	const struct native_result *r = &a->r;
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "order", a->q->alternate ? "alternate" : "failing");
	json_uint(&j, "runs", r->runs);
	json_uint(&j, "failures", r->failures);
	json_uint(&j, "same_failure", r->same);
	json_uint(&j, "failures_behind", r->behind);
	json_uint(&j, "diverged", r->diverged);
	json_uint(&j, "timeouts", r->timeouts);
	json_uint(&j, "unrecorded", r->unrecorded);
	json_num(&j, "seconds", r->seconds);
	json_str(&j, "other_failure", r->other);
	json_uint(&j, "edges", a->schedule.edges.n);
	json_uint(&j, "way", a->way);
	json_uint(&j, "ways", a->ways);
	json_bool(&j, "retreats", a->schedule.retreats);
	json_bool(&j, "rebuilt", a->rebuilt);
	json_uint(&j, "edges_lost", a->lost);
	json_bool(&j, "order_possible", !impossible(a));
	json_edges(&j, a);
	json_end(&j);
	json_print(&j, stdout);
}

/*
 * The promise: the failing order fails every time, the alternate never. A
 * rebuilt program is asked whether it still fails.
 */
static int status_of(const struct answer *a)
{
	const struct native_result *r = &a->r;

	if (a->q->alternate || a->rebuilt)
		return r->failures || r->unrecorded ? ERR_NOANSWER : 0;
	return r->same == r->runs ? 0 : ERR_NOANSWER;
}

static bool show(void *arg, uint32_t done, uint32_t runs)
{
	progress_at(arg, done, runs);
	return false;
}

static err_t enforce(struct answer *a, const char *shim, const char *schedule, const struct trc *t,
		     uint32_t runs)
{
	const struct native_request *q = a->q;
	struct progress line = { .what = "native runs" };
	struct native_options o = {
		.argv = q->argv, .shim = shim, .schedule = schedule, .t = t, .rebuilt = a->rebuilt,
		.runs = runs, .limit = q->limit > 0 ? q->limit : DEFAULT_LIMIT,
		.seconds = a->seconds > 0 ? a->seconds : q->time, .until_failure = a->trial,
		.most_diverged = a->most_diverged, .progress = show, .progress_arg = &line,
	};
	err_t e = native_run(&o, &a->r);

	progress_end(&line);
	return e;
}

/* ---- another build ---- */

static err_t remap(struct answer *a, const char *program)
{
	TRY(schedule_remap(&a->schedule, program));
	for (size_t i = 0; i < a->schedule.edges.n; i++)
		a->lost += schedule_edge_lost(&a->schedule.edges.v[i]);
	a->rebuilt = true;
	if (a->lost == a->schedule.edges.n)
		return err_new(ERR_NOANSWER, "%s was built anew, and none of the %zu orderings was found "
					     "again in it by its source line", program, a->schedule.edges.n);
	return NULL;
}

/* The schedule as this program needs it: for another name, for another build. *schedule: a new file, or NULL. */
static err_t adapt(struct answer *a, const struct trc *t, const char *program, char **schedule)
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
static err_t with_schedule(struct answer *a, const struct trc *t, const char *file, uint32_t runs,
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
		*status = status_of(a);
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

/* 0: it does not do what it is for; 1: it does, but went another way; 2: neither. */
static err_t try_way(const struct native_request *q, const struct trc *t, const char *file, int *good)
{
	struct answer a = { .q = q, .trial = q->alternate, .most_diverged = DIVERGED_TRIALS, .seconds = TRIAL_SECONDS };
	int status = 0;
	err_t e = with_schedule(&a, t, file, q->alternate ? TRIALS : FAILING_TRIALS, &status);

	*good = e || status ? 0 : a.r.diverged || a.r.timeouts ? 1 : 2;
	answer_free(&a);
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
static err_t run_ways(struct answer *a, const struct trc *t, const struct files *f, int *status)
{
	const struct native_request *q = a->q;
	uint32_t runs = q->gdb ? 0 : q->runs ? (uint32_t)q->runs : 1, longest = 0;
	double until = q->time > 0 ? child_now() + q->time : 1e18;
	size_t best = 0;
	bool found;

	for (size_t way = 0;; way++) {
		TRY(choose_way(q, t, f, until, &way, &found));
		way = found ? way : best;
		*a = (struct answer){ .q = q, .ways = (uint32_t)f->v.n, .way = (uint32_t)way + 1,
				      .trial = q->alternate && found && f->v.n > 1 && child_now() < until };
		TRY(with_schedule(a, t, f->v.v[way], runs, status));
		if (!a->trial || !a->r.failures || interrupt_pending())
			return NULL;
		if (a->r.runs > longest) {
			longest = a->r.runs;
			best = way;
		}
		answer_free(a);
	}
}

static err_t run_it(const struct native_request *q, const struct trc *t, const struct files *f,
		    int *status)
{
	struct answer a = { .q = q };
	err_t e = run_ways(&a, t, f, status);

	/* Interrupted: what is known is said all the same. */
	if (!e && a.r.runs && q->json)
		print_json(&a);
	else if (!e && a.r.runs)
		print_text(&a);
	answer_free(&a);
	return e;
}

static err_t replay(const struct native_request *q, int *status)
{
	struct explanation *x = NULL;
	struct files files = { 0 };
	struct trc *t = NULL;

	if (!q->argv || !q->argv[0])
		return err_new(ERR_USAGE, "--native needs the program: TRACE -- PROGRAM ARGS...");
	err_t e = trc_open(q->trace, 0, &t);
	if (!e && !t->failure)
		e = err_new(ERR_NOANSWER, "%s records no failure", q->trace);
	if (!e)
		kept_schedules(q, &files);
	if (!e && !files.v.n)
		e = explain_now(q->trace, &x);
	/* Next time, or for the other order, it need not be explained again. */
	if (!e && x && x->answer && !t->packed) {
		explain_keep_schedules(x, q->trace);
		kept_schedules(q, &files);
	}
	interrupt_catch();
	if (!e && x && !files.v.n)
		e = make_schedules(q, x, &files);
	if (!e)
		e = run_it(q, t, &files, status);
	free_files(&files);
	if (x)
		explanation_free(x);
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
