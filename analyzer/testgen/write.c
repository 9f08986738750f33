/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A violation as files: the test, its schedule, the recorded run and its explanation; and its failure in words. */
#include "analyzer/testgen/emit.h"
#include "analyzer/testgen/heap_guard.h"
#include "analyzer/testgen/testgen.h"
#include "analyzer/testgen/walls.h"

#include "analyzer/hunt/child.h"
#include "analyzer/hunt/files.h"
#include "analyzer/hunt/place.h"
#include "analyzer/image/image.h"
#include "analyzer/launch.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMPILE_SECONDS 60.0
#define RUN_SECONDS 30.0
#define EXPLAIN_SECONDS 120.0

/* ---- words ---- */

static void add_place(struct strbuf *b, struct img_set *set, uint64_t offset)
{
	struct img_frame f[4];
	size_t n = set ? img_frames(set, offset, f, 4) : 0;

	if (!n) {
		strbuf_fmt(b, "0x%lx", (long)offset);
		return;
	}
	const char *slash = f[0].file ? strrchr(f[0].file, '/') : NULL;
	strbuf_str(b, f[0].function);
	if (f[0].file && f[0].line)
		strbuf_fmt(b, " (%s:%u)", slash ? slash + 1 : f[0].file, f[0].line);
}

static const char *signal_name(int sig)
{
	return sig == SIGSEGV ? "segmentation fault" : sig == SIGABRT ? "abort" : sig == SIGBUS ? "bus error" :
	       sig == SIGFPE ? "arithmetic error" : sig == SIGILL ? "illegal instruction" : "signal";
}

/* What a program says when it aborts: one line, and nothing that steers a terminal. */
static void add_said(struct strbuf *b, const char *said)
{
	size_t n = strcspn(said, "\n");

	strbuf_str(b, ": ");
	for (size_t i = 0; i < n && i < 160; i++)
		strbuf_char(b, (unsigned char)said[i] < 32 || (unsigned char)said[i] > 126 ? '?' : said[i]);
}

char *testgen_failure_text(const struct api *a, const struct failure *f)
{
	struct strbuf b = { 0 };
	struct img_set *set = NULL;

	err_free(place_open(a->path, &set));
	if (f->end == JOB_DONE) {
		strbuf_str(&b, "data race: thread A at ");
		add_place(&b, set, f->frames[0]);
		strbuf_str(&b, ", thread B at ");
		add_place(&b, set, f->frames[1]);
	} else if (f->end == JOB_DEADLOCK) {
		strbuf_str(&b, "deadlock");
		for (unsigned i = 0; i < JOB_THREADS; i++)
			if (f->waits[i]) {
				strbuf_fmt(&b, "%s thread %c waits in ", b.n > 8 ? "," : ":", 'A' + i);
				add_place(&b, set, f->waits[i]);
			}
	} else if (f->end == JOB_HANG) {
		strbuf_str(&b, "hang");
	} else {
		strbuf_fmt(&b, "%s in ", f->misuse == HEAP_FREED ? "use after free" :
			   f->misuse == HEAP_OVERRUN ? "access behind a block" : signal_name(f->status));
		if (f->nframes)
			add_place(&b, set, f->frames[0]);
		else
			strbuf_str(&b, "an unknown place");
		if (f->outside && f->nframes)
			strbuf_str(&b, ", in a function it calls");
		if (f->said)
			add_said(&b, f->said);
	}
	img_set_free(set);
	return strbuf_take(&b);
}

char *testgen_odd_text(const struct api *a, const struct violation *v)
{
	struct strbuf b = { 0 };

	if (v->odd_state)
		return xstrdup("the object is left in another state");
	for (unsigned p = JOB_A; p < JOB_POST; p++) {
		const struct seq *s = test_part_of(&v->test, p);
		unsigned first = test_first(&v->test, p);

		for (unsigned i = 0; i < s->n; i++) {
			const struct api_function *f = &a->functions.v[s->calls[i].function];
			char *text = seq_call_text(a, s, i);

			if (f->result.kind == API_INT)
				strbuf_fmt(&b, "%s%s returns %ld", b.n ? ", " : "", text, (long)v->results[first + i]);
			else if (f->result.kind == API_FLOAT || f->result.kind == API_VOID)
				strbuf_fmt(&b, "%s%s returns", b.n ? ", " : "", text);
			else
				strbuf_fmt(&b, "%s%s returns %s", b.n ? ", " : "", text,
					   v->results[first + i] ? "an address" : "NULL");
			free(text);
		}
	}
	return strbuf_take(&b);
}

/* ---- files ---- */

static char *remark_of(const struct api *a, const struct violation *v, bool linked)
{
	struct strbuf b = { 0 };
	bool fails = v->failure.end != JOB_DONE || v->race;
	char *text = fails ? testgen_failure_text(a, &v->failure) : testgen_odd_text(a, v);

	static const char *const many[] = { "Two", "Two", "Two", "Three", "Four" };

	strbuf_fmt(&b, " * %s threads use %s of %s, which %s:\n *   %s\n", many[test_threads(&v->test)],
		   v->test.object_call == TEST_NO_OBJECT ? "functions" : "one object", a->soname,
		   v->race ? "races" : fails ? "fails" : "is not linearisable", text);
	free(text);
	if (v->race)
		strbuf_str(&b, " * Nothing fails: with the schedule the two accesses are next to each other.\n");
	else
		strbuf_fmt(&b, " * None of the %u orders in which whole calls follow each other %s.\n",
			   v->linearisations, fails ? "fails" : "does that");
	strbuf_str(&b, " *\n * cc -g -pthread -o test THIS-FILE");
	if (linked)
		strbuf_fmt(&b, " %s -Wl,-rpath,DIRECTORY-OF-THE-LIBRARY", a->soname);
	if (fails && !v->race) {
		const char *slash = strrchr(v->file, '/'), *name = slash ? slash + 1 : v->file;

		strbuf_fmt(&b, "\n * csched replay --native %.*s.csched -- ./test", (int)strlen(name) - 2, name);
	}
	strbuf_char(&b, '\n');
	return strbuf_take(&b);
}

static err_t write_files(const struct api *a, const char *dir, const struct violation *v)
{
	char *program = NULL;
	err_t e = a->program ? api_copy_program(a, dir, &program) : NULL;
	FILE *f = e ? NULL : fopen(v->file, "we");

	if (!f) {
		free(program);
		return e ? e : err_errno("%s", v->file);
	}
	char *remark = remark_of(a, v, !program);
	emit_test(a, &v->test, remark, program, v->failure.end == JOB_DONE && !v->race, v->guarded, f);
	free(remark);
	free(program);
	if (fclose(f))
		return err_errno("%s", v->file);
	f = fopen(v->schedule, "we");
	if (!f)
		return err_errno("%s", v->schedule);
	emit_schedule(a, v, f);
	return fclose(f) ? err_errno("%s", v->schedule) : NULL;
}

/* directory: where it runs. The status that waitpid(2) gives; -1: it could not be started or took too long. */
static int run(char **argv, char **environment, const char *output, double seconds, const char *directory)
{
	struct child_spec spec = { argv, "/dev/null", output, environment, NULL, directory };
	struct child c;
	err_t e = child_start(&c, &spec, seconds);

	if (e) {
		err_free(e);
		return -1;
	}
	while (child_wait_any(&c, 1, 0.5) < 0)
		;
	bool late = c.timed_out;
	int status = child_finish(&c);
	return late ? -1 : status;
}

struct walled {
	char **argv, **environment;
	const char *output, *directory;
	int status;
};

static void *run_behind_walls(void *arg)
{
	struct walled *w = arg;

	walls_files(w->directory);
	w->status = run(w->argv, w->environment, w->output, RUN_SECONDS, w->directory);
	return NULL;
}

/* The test may change files in the output directory only: walls are a thread's, and of what it starts. */
static int run_walled(char **argv, char **environment, const char *output, const char *directory)
{
	struct walled w = { argv, environment, output, directory, -1 };
	pthread_t t;

	if (!pthread_create(&t, NULL, run_behind_walls, &w))
		pthread_join(t, NULL);
	return w.status;
}

static bool compile(const struct api *a, const char *file, const char *program, const char *said)
{
	const char *cc = getenv("CC");
	char *dir = xstrdup(a->path);
	char *none[] = { NULL };

	*strrchr(dir, '/') = 0;
	char *rpath = xasprintf("-Wl,-rpath,%s", dir);
	char *argv[] = { (char *)(cc && *cc ? cc : "cc"), (char *)"-g", (char *)"-pthread", (char *)"-o", (char *)program,
			 (char *)file, a->program ? NULL : a->path, rpath, (char *)"-Wl,--allow-shlib-undefined", NULL };
	int status = run(argv, none, said, COMPILE_SECONDS, NULL);
	free(rpath);
	free(dir);
	return status >= 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* The recorded run in dir, with the schedule beside it where `csched replay --native` looks. */
static char *keep_trace(const char *dir, const char *to, const char *schedule)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char *kept = NULL;

	while (d && !kept && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		char *from = xasprintf("%s/%s", dir, e->d_name);
		files_remove_tree(to);
		err_t bad = files_move_tree(from, to);
		if (!bad)
			kept = xstrdup(to);
		err_free(bad);
		free(from);
	}
	if (d)
		closedir(d);
	if (kept) {
		char *link = xasprintf("%s/failing.schedule", kept);
		char text[65536];
		FILE *in = fopen(schedule, "re"), *out = fopen(link, "we");

		while (in && out && fgets(text, sizeof text, in))
			fputs(text, out);
		if (in)
			fclose(in);
		if (out)
			fclose(out);
		free(link);
	}
	return kept;
}

static bool native_run(const struct testgen_options *o, const struct violation *v, const char *program,
		       const char *traces, const char *said)
{
	struct strbuf b = { 0 };
	char *preload = launch_preload(o->shim), *argv[] = { (char *)program, NULL };

	launch_option(&b, "quiet", "1");
	launch_option(&b, "deadlock", "abort");
	launch_option(&b, "keep", "failure");
	launch_option(&b, "dir", traces);
	launch_option(&b, "schedule", v->schedule);
	if (v->failure.end == JOB_HANG)
		launch_option(&b, "hang", "2");
	char *env[] = { xasprintf("CSCHED_OPTIONS=%s", b.s), xasprintf("LD_PRELOAD=%s", preload), NULL };
	int status = run_walled(argv, env, said, o->out);
	strbuf_free(&b);
	free(preload);
	free(env[0]);
	free(env[1]);
	return status >= 0 && WIFSIGNALED(status);
}

static void explain(struct violation *v, const char *trace, const char *report)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *none[] = { NULL };

	if (n <= 0)
		return;
	self[n] = 0;
	char *argv[] = { self, (char *)"explain", (char *)"--color=never", (char *)trace, NULL };
	int status = run(argv, none, report, EXPLAIN_SECONDS, NULL);
	if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) <= 1)
		v->report = xstrdup(report);
}

/* Runs the compiled test with the order enforced, and keeps the first failing run. */
static void confirm(const struct testgen_options *o, struct violation *v, const char *base)
{
	char *program = xasprintf("%s/%s", o->out, base), *said = xasprintf("%s/%s.output", o->out, base);
	char *traces = xasprintf("%s/%s.traces", o->out, base), *trace = xasprintf("%s/%s.csched", o->out, base);
	char *report = xasprintf("%s/%s.txt", o->out, base), *kept = NULL;

	for (unsigned i = 0; i < o->native_runs; i++) {
		mkdir(traces, 0700);
		bool failed = native_run(o, v, program, traces, said);
		v->native_runs++;
		v->native_failures += failed;
		if (failed && !kept)
			kept = keep_trace(traces, trace, v->schedule);
		files_remove_tree(traces);
	}
	if (kept && o->explain)
		explain(v, trace, report);
	unlink(said);
	free(program);
	free(said);
	free(traces);
	free(trace);
	free(report);
	free(kept);
}

err_t testgen_write(struct lab *lab, const struct testgen_options *o, struct violation *v, unsigned number)
{
	char *base = xasprintf("violation-%u", number), *program = xasprintf("%s/%s", o->out, base);
	char *said = xasprintf("%s/%s.output", o->out, base);
	err_t e = files_make_dirs(o->out);

	v->file = xasprintf("%s/%s.c", o->out, base);
	v->schedule = xasprintf("%s/%s.schedule", o->out, base);
	if (!e)
		e = write_files(lab->api, o->out, v);
	if (!e && !compile(lab->api, v->file, program, said))
		e = err_new(ERR_INTERNAL, "the test %s does not compile; %s says why", v->file, said);
	/* A race need not have any consequence. */
	if (!e && o->shim && !v->race)
		confirm(o, v, base);
	if (!e)
		unlink(said);
	free(base);
	free(program);
	free(said);
	return e;
}

err_t testgen_write_odd(struct lab *lab, const struct testgen_options *o, struct violation *v, unsigned number)
{
	TRY(files_make_dirs(o->out));
	v->file = xasprintf("%s/not-linearisable-%u.c", o->out, number);
	v->schedule = xasprintf("%s/not-linearisable-%u.schedule", o->out, number);
	return write_files(lab->api, o->out, v);
}
