/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs of the real program: the first one, and those under an order that was found. */
#include "analyzer/explore/enforce.h"

#include "analyzer/hunt/child.h"
#include "analyzer/hunt/files.h"
#include "analyzer/hunt/interrupt.h"
#include "analyzer/enforce/schedule.h"
#include "analyzer/launch.h"
#include "common/control_format.h"
#include "common/strbuf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTPUT_TAIL 4096 /* bytes of a run's output that are kept */
#define PERSONALITY_ASK 0xfffffffful

err_t xpl_native_open(struct xpl_native *n)
{
	TRY(files_make_work("csched-explore", n->work, sizeof n->work));
	snprintf(n->input, sizeof n->input, "%s/input", n->work);
	return files_keep_input(n->input, NULL);
}

void xpl_native_close(struct xpl_native *n)
{
	if (*n->work)
		files_remove_tree(n->work);
}

static err_t start(struct xpl_native *n, const char *schedule, const char *dir, const char *output,
		   struct child *c)
{
	struct strbuf b = { 0 };
	char *preload = launch_preload(n->shim), hang[24];

	snprintf(hang, sizeof hang, "%.1f", n->limit * 0.6);
	/* The first run may well be of a program that never ends. */
	if (schedule)
		launch_option(&b, "hang", hang);
	launch_options_given(&b);
	launch_option(&b, "quiet", "1");
	launch_option(&b, "deadlock", "abort");
	launch_option(&b, "keep", "always");
	launch_option(&b, "dir", dir);
	if (n->fail_exit)
		launch_option(&b, "fail_exit", n->fail_exit);
	if (schedule)
		launch_option(&b, "schedule", schedule);
	char *env[] = { xasprintf("CSCHED_OPTIONS=%s", b.s), xasprintf("LD_PRELOAD=%s", preload), NULL };
	struct child_spec spec = { n->argv, n->input, output, env, NULL, NULL };
	/* Inherited: pointers have the same values in each run then, where the kernel lets us. */
	int before = personality(PERSONALITY_ASK);
	personality((unsigned long)before | ADDR_NO_RANDOMIZE);
	err_t e = child_start(c, &spec, n->limit);
	personality((unsigned long)before);

	strbuf_free(&b);
	free(preload);
	free(env[0]);
	free(env[1]);
	return e;
}

/* Of the traces a run left that of a process that failed; else that of the program itself. */
static char *trace_in(const char *dir, pid_t pid)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char *best = NULL;
	int high = -1;

	while (d && (e = readdir(d))) {
		struct trc *t = NULL;

		if (e->d_name[0] == '.')
			continue;
		char *path = xasprintf("%s/%s", dir, e->d_name);
		err_t bad = trc_open(path, TRC_TOLERANT, &t);
		int rank = bad ? -1 : 2 * (t->failure != NULL) + (trc_identity_uint(t, "pid", 0) == (uint64_t)pid);
		if (rank > high) {
			char *worse = best;

			high = rank;
			best = path;
			path = worse;
		}
		if (t)
			trc_close(t);
		err_free(bad);
		free(path);
	}
	if (d)
		closedir(d);
	return best;
}

static char *tail_of(const char *path)
{
	char buf[OUTPUT_TAIL + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = 0;

	if (fd >= 0 && !fstat(fd, &st))
		n = pread(fd, buf, OUTPUT_TAIL, st.st_size > OUTPUT_TAIL ? st.st_size - OUTPUT_TAIL : 0);
	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = 0;
	return xstrdup(buf);
}

err_t xpl_native_run(struct xpl_native *n, const char *schedule, char **trace, char **output)
{
	char dir[PATH_MAX], out[PATH_MAX];
	struct child c;

	*trace = NULL;
	snprintf(dir, sizeof dir, "%s/run%llu", n->work, (unsigned long long)n->runs++);
	snprintf(out, sizeof out, "%s/output", n->work);
	if (mkdir(dir, 0700) && errno != EEXIST)
		return err_errno("%s", dir);
	TRY(start(n, schedule, dir, out, &c));
	pid_t pid = c.pid;
	while (child_wait_any(&c, 1, 0.5) < 0 && !interrupt_pending())
		files_thin_output(out);
	n->timed_out = c.timed_out;
	c.timed_out |= interrupt_pending() != 0;
	n->status = child_finish(&c);

	*trace = trace_in(dir, pid);
	if (output)
		*output = tail_of(out);
	return NULL;
}

bool xpl_native_printed(const struct xpl_native *n, const char *bytes, size_t len)
{
	char out[PATH_MAX], *buf = xmalloc(len + 1);
	struct stat st;
	bool is = false;

	snprintf(out, sizeof out, "%s/output", n->work);
	int fd = open(out, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && (uint64_t)st.st_size >= len)
		is = pread(fd, buf, len, st.st_size - (off_t)len) == (ssize_t)len && (!len || !memcmp(buf, bytes, len));
	if (fd >= 0)
		close(fd);
	free(buf);
	return is;
}

void xpl_native_drop(const char *trace)
{
	files_remove_tree(trace);
}

err_t xpl_native_keep(const char *trace, const char *out, char **path)
{
	if (out)
		TRY(files_make_dirs(out));
	/* Shards on other machines may keep traces of that name there, too. */
	err_t e = files_move_into(trace, out, path);
	if (e) {
		free(*path);
		*path = NULL;
	}
	return e;
}

/* ---- an order as a schedule file ---- */

struct writing {
	const struct xpl_trace *t;
	const struct trc *recorded;
	struct img_set *images;
	const struct xpl_prelude *p;
	struct schedule *s;
};

static bool is_sync(const struct xpl_event *e)
{
	return !xpl_is_access(e);
}

static bool can_be_end(const struct xpl_event *e, bool source)
{
	if (!e->place || e->inside)
		return false;
	/* Its call returns only when the initialiser has. */
	if (source && e->op == XPL_ONCE_RUN)
		return false;
	/* Nobody waits there by himself: the others let him go. */
	return source || (e->op != XPL_BAR_OUT && e->op != XPL_ONCE_END);
}

static bool end_of(struct writing *w, const struct xpl_event *e, bool source, struct schedule_end *out)
{
	uint64_t pc = is_sync(e) ? place_call_before(w->images, e->pc + 1) : e->pc;
	struct img_module *m = pc ? img_module_at(w->images, pc) : NULL;

	if (!m)
		return false;
	*out = (struct schedule_end){
		.thread = xstrdup(trc_thread_id(w->recorded, e->thread)), .module = xstrdup(img_module_name(m)),
		.offset = pc - img_module_bias(m), .n = e->nth + xpl_prelude_count(w->p, e->thread, e->place),
	};
	bool sleeps = e->op == XPL_WAIT_IN || e->op == XPL_BAR_IN;
	out->inside = source && sleeps;
	out->again = !source && e->op == XPL_WAIT_OUT;
	out->middle = e->half && (e->op == XPL_READ) == source;
	out->after = source && !out->inside;
	if (!place_of(w->images, pc, &out->place))
		out->place = (struct place){ 0 };
	schedule_note_build(w->s, m);
	return true;
}

static void add_edge(struct writing *w, const struct xpl_event *from, const struct xpl_event *to)
{
	struct schedule_edge edge = { .id = (uint32_t)w->s->edges.n };

	if (w->s->edges.n >= CTL_MAX_EDGES || !end_of(w, from, true, &edge.source))
		return;
	if (end_of(w, to, false, &edge.target)) {
		vec_push(&w->s->edges, edge);
		return;
	}
	free(edge.source.thread);
	free(edge.source.module);
	place_free(&edge.source.place);
}

/* Wherever another thread goes on: behind the last event of who came before it. */
static void add_edges(struct writing *w)
{
	const struct xpl_event *last = NULL;

	for (size_t i = 0; i < w->t->events.n; i++) {
		const struct xpl_event *e = &w->t->events.v[i];

		if (last && last->thread != e->thread && can_be_end(e, false))
			add_edge(w, last, e);
		if (can_be_end(e, true) && (!last || last->thread == e->thread || can_be_end(e, false)))
			last = e;
	}
}

/*
 * Where the order ends the others stand still, until the failure is there: what they did next was not
 * part of it. In a deadlock everybody's last operation must be behind all that happened.
 */
static void hold_the_others(struct writing *w, const struct xpl_event *const *next, uint32_t fails)
{
	for (uint32_t t = 0; t < w->t->nthreads; t++) {
		const struct xpl_event *last = NULL;

		if (!next[t] || t == fails || !can_be_end(next[t], false))
			continue;
		for (size_t i = w->t->events.n; i-- > 0 && !last;) {
			const struct xpl_event *e = &w->t->events.v[i];

			if ((fails == XPL_NONE ? e->thread != t : e->thread == fails) && can_be_end(e, true))
				last = e;
		}
		size_t before = w->s->edges.n;
		if (last)
			add_edge(w, last, next[t]);
		if (w->s->edges.n > before && fails != XPL_NONE) {
			w->s->edges.v[before].source.n = CTL_NEVER;
			w->s->edges.v[before].source.middle = false;
			w->s->edges.v[before].source.after = true;
		}
	}
}

err_t xpl_native_write(const struct xpl_trace *t, const struct xpl_event *const *next, uint32_t fails,
		       const struct trc *recorded, struct img_set *images, const struct xpl_prelude *p,
		       const char *path)
{
	struct schedule s = { 0 };
	struct writing w = { t, recorded, images, p, &s };
	FILE *f;

	add_edges(&w);
	hold_the_others(&w, next, fails);
	if (!s.edges.n) {
		schedule_free(&s);
		return err_new(ERR_NOANSWER, "nothing in this order can be enforced on the program");
	}
	f = fopen(path, "we");
	if (!f) {
		schedule_free(&s);
		return err_errno("%s", path);
	}
	schedule_write(&s, f);
	fclose(f);
	schedule_free(&s);
	return NULL;
}
