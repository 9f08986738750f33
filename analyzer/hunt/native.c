#include "analyzer/hunt/native.h"

#include "analyzer/hunt/child.h"
#include "analyzer/hunt/files.h"
#include "analyzer/hunt/interrupt.h"
#include "analyzer/launch.h"
#include "analyzer/trace_image.h"
#include "common/strbuf.h"
#include "common/vec.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct native {
	const struct native_options *o;
	struct native_result *res;
	char work[PATH_MAX - 64];
	char dir[PATH_MAX], input[PATH_MAX], output[PATH_MAX];
};

static err_t prepare(struct native *n)
{
	TRY(files_make_work("csched-native", n->work, sizeof n->work));
	snprintf(n->dir, sizeof n->dir, "%s/traces", n->work);
	snprintf(n->input, sizeof n->input, "%s/input", n->work);
	snprintf(n->output, sizeof n->output, "%s/output", n->work);
	return files_keep_input(n->input, NULL);
}

#define HANG "6" /* seconds; longer than an edge is waited for */

void native_failure_options(const struct trc *t, struct strbuf *b)
{
	char status[16];

	if (t->failure->rec.flags == TRC_FAIL_HANG)
		launch_option(b, "hang", HANG);
	if (t->failure->rec.flags != TRC_FAIL_EXIT)
		return;
	snprintf(status, sizeof status, "%d", t->failure->status);
	launch_option(b, "fail_exit", status);
}

static err_t start(struct native *n, struct child *c)
{
	struct strbuf b = { 0 };
	char *preload = launch_preload(n->o->shim);

	native_failure_options(n->o->t, &b);
	launch_options_given(&b);
	launch_option(&b, "quiet", "1");
	launch_option(&b, "deadlock", "abort");
	launch_option(&b, "keep", "always");
	launch_option(&b, "dir", n->dir);
	launch_option(&b, "schedule", n->o->schedule);
	char *env[] = { xasprintf("CSCHED_OPTIONS=%s", b.s), xasprintf("LD_PRELOAD=%s", preload), NULL };
	struct child_spec spec = { n->o->argv, n->input, n->output, env, NULL, NULL };
	mkdir(n->dir, 0700);
	err_t e = child_start(c, &spec, n->o->limit);
	strbuf_free(&b);
	free(preload);
	free(env[0]);
	free(env[1]);
	return e;
}

/* Of an assertion: the expression, and where it stands. */
static bool same_assertion(const struct trc_failure *a, const struct trc_failure *b, bool rebuilt)
{
	const char *x = (const char *)a->data + a->text_len, *y = (const char *)b->data + b->text_len;

	if (!rebuilt)
		return a->detail_len == b->detail_len && !memcmp(x, y, a->detail_len);
	/* The expression ends with a NUL; line numbers may have moved. */
	size_t n = strnlen(x, a->detail_len);
	return n < b->detail_len && n == strnlen(y, b->detail_len) && !memcmp(x, y, n);
}

/* A lost wake-up may be seen as either: somebody stands still for ever. */
static bool stands_still(const struct trc_failure *f)
{
	return f->rec.flags == TRC_FAIL_DEADLOCK || f->rec.flags == TRC_FAIL_HANG;
}

/*
 * The same failure: kind, signal and place. The program may lie elsewhere in
 * memory, so the place is the offset inside its page; in another build it is unknown.
 */
static bool same_failure(const struct trc_failure *a, const struct trc_failure *b, bool rebuilt)
{
	if (a && b && stands_still(a) && stands_still(b))
		return true;
	if (!a || !b || a->rec.flags != b->rec.flags || a->signal != b->signal)
		return false;
	if (a->rec.flags == TRC_FAIL_EXIT)
		return a->status == b->status;
	if (a->rec.flags == TRC_FAIL_ASSERT)
		return same_assertion(a, b, rebuilt);
	return rebuilt || (a->regs[TRC_RIP] & 0xfff) == (b->regs[TRC_RIP] & 0xfff);
}

static struct native_edge *edge_with(struct native_result *r, uint32_t id)
{
	for (uint32_t i = 0; i < r->nedges; i++)
		if (r->edges[i].id == id)
			return &r->edges[i];
	r->edges = xrealloc(r->edges, (r->nedges + 1) * sizeof *r->edges);
	r->edges[r->nedges] = (struct native_edge){ .id = id };
	return &r->edges[r->nedges++];
}

/* A note of preload/control/enforce.c; true when a thread waited in vain. */
static bool count_note(struct native_result *r, const struct trc_note *note, bool first)
{
	char text[256];
	unsigned id;
	int at = 0;

	snprintf(text, sizeof text, "%.*s", (int)note->text_len, note->text);
	if (sscanf(text, "schedule: edge %u: %n", &id, &at) != 1 || !at)
		return false;
	struct native_edge *e = edge_with(r, id);
	const char *what = text + at;
	e->no_source += !strcmp(what, "its source was never reached");
	e->no_target += !strcmp(what, "its target was never reached");
	bool vain = !strcmp(what, "its target waited in vain");
	e->vain += vain;
	e->first += vain && first;
	return vain;
}

static bool count_notes(struct native_result *r, const struct trc *t)
{
	bool vain = false;

	for (size_t i = 0; i < t->notes.n; i++)
		vain |= count_note(r, t->notes.v[i], !vain);
	return vain;
}

/* Had all of the order happened by then? It cannot be what it failed by, then. */
static bool failed_behind(const struct trc *t)
{
	static const char said[] = "schedule: it fails after the order";

	for (size_t i = 0; i < t->notes.n; i++)
		if (t->notes.v[i]->text_len == sizeof said - 1 &&
		    !memcmp(t->notes.v[i]->text, said, sizeof said - 1))
			return true;
	return false;
}

static void look_at(struct native *n, const struct trc *t)
{
	struct native_result *r = n->res;

	r->diverged += count_notes(r, t);
	if (!t->failure)
		return;
	r->failures++;
	r->behind += failed_behind(t);
	if (same_failure(t->failure, n->o->t->failure, n->o->rebuilt))
		r->same++;
	else if (!r->other)
		r->other = trace_failure_text(t->failure);
}

static const char *program_of(const struct trc *t)
{
	const char *path = trc_identity(t, "program"), *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

/* The file may have another name than the recorded one. */
static bool same_process(const struct native *n, const struct trc *t)
{
	const char *x = trc_identity(t, "process"), *y = trc_identity(n->o->t, "process");
	const char *slash = strrchr(n->o->argv[0], '/'), *now = slash ? slash + 1 : n->o->argv[0];

	return (!strcmp(program_of(t), program_of(n->o->t)) || !strcmp(program_of(t), now)) &&
	       !strcmp(x ? x : "", y ? y : "");
}

/*
 * Every process of a run has a trace of its own. The one that counts is the one that was
 * recorded: the same program, the same child of it. A shell may have started it, and several times: then
 * the one that failed. Else what was started. Zero: it has nothing to do with it.
 */
static int rank(const struct native *n, const struct trc *t, pid_t pid)
{
	bool started = trc_identity_uint(t, "pid", 0) == (uint64_t)pid, same = same_process(n, t);

	return same ? 4 + 2 * (t->failure != NULL) + started : started;
}

static void look_at_run(struct native *n, pid_t pid)
{
	DIR *d = opendir(n->dir);
	struct dirent *e;
	struct trc *best = NULL;
	int high = 0;

	while (d && (e = readdir(d))) {
		struct trc *t = NULL;

		if (e->d_name[0] == '.')
			continue;
		char *path = xasprintf("%s/%s", n->dir, e->d_name);
		err_t bad = trc_open(path, TRC_TOLERANT, &t);
		int r = bad ? 0 : rank(n, t, pid);
		if (r > high) {
			struct trc *worse = best;

			high = r;
			best = t;
			t = worse;
		}
		if (t)
			trc_close(t);
		err_free(bad);
		free(path);
	}
	n->res->unrecorded += !best;
	if (best) {
		look_at(n, best);
		trc_close(best);
	}
	if (d)
		closedir(d);
	files_remove_tree(n->dir);
}

/*
 * An enforced run is slower than the recorded one: each ordering may be waited for, some of them in vain for
 * five seconds (preload/control/enforce.c). One that takes many times as long does not end by itself.
 */
#define LIMIT_TIMES 20.0
#define LIMIT_MOST 600.0 /* what a damaged clock says is not waited for */

double native_limit(const struct trc *t)
{
	double took = t->failure ? trc_seconds(t, t->failure->tsc) : -1;
	double limit = NATIVE_LEAST_LIMIT + (took > 0 ? LIMIT_TIMES * took : 0);

	return limit < LIMIT_MOST ? limit : LIMIT_MOST;
}

static err_t one_run(struct native *n)
{
	struct child c;

	TRY(start(n, &c));
	pid_t pid = c.pid;
	while (child_wait_any(&c, 1, 0.5) < 0 && !interrupt_pending())
		files_thin_output(n->output);
	bool counts = !interrupt_pending();
	n->res->timeouts += c.timed_out && counts;
	c.timed_out |= !counts;
	child_finish(&c);
	if (!counts)
		return NULL;
	n->res->runs++;
	look_at_run(n, pid);
	return NULL;
}

err_t native_run(const struct native_options *o, struct native_result *res)
{
	struct native n = { .o = o, .res = res };
	double begin = child_now();

	*res = (struct native_result){ 0 };
	interrupt_catch();
	err_t e = prepare(&n);
	for (uint32_t i = 0; i < o->runs && !e && !interrupt_pending(); i++) {
		e = one_run(&n);
		if (o->progress && o->progress(o->progress_arg, i + 1, o->runs))
			break;
		if (o->until_failure && res->failures)
			break;
		if (o->most_diverged && res->diverged >= o->most_diverged)
			break;
		if (o->most_timeouts && res->timeouts >= o->most_timeouts)
			break;
		if (o->seconds > 0 && child_now() - begin > o->seconds)
			break;
	}
	res->seconds = child_now() - begin;
	files_remove_tree(n.work);
	interrupt_release();
	return e;
}

void native_result_free(struct native_result *res)
{
	free(res->other);
	free(res->edges);
}
