/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a hunt makes of a run that has ended: statuses learned, kinds of failures counted, the traces that are kept. */
#include "analyzer/hunt/hunt_internal.h"

#include "analyzer/hunt/around.h"
#include "analyzer/hunt/files.h"
#include "common/newfile.h"
#include "common/strbuf.h"
#include "common/trace_read.h"
#include "common/trace_sum.h"
#include "common/vec.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A failure whose trace was refused is looked for again: so often, and so long. */
#define MOST_REFUSED 8
#define REFUSED_SECONDS 10.0
/* Runs like the one that ended with a status nobody knew to be a failure: its trace is gone. */
#define ODD_REPEATS 20
/* Runs after the first that failed by a learned status: something worse may hide behind it. */
#define ODD_MORE 20
/* A run that failed beside others is done again alone, so often; then the plan goes on, one run at a time. */
#define ALONE_REPEATS 10
#define MOST_KEPT 16 /* traces of different failures that --keep-going keeps */

/* ---- exit statuses ---- */

static bool statuses_given(const struct hunt *h)
{
	const char *env = getenv("CSCHED_OPTIONS");

	return h->o->fail_exit || (h->o->options && strstr(h->o->options, "fail_exit")) ||
	       (env && strstr(env, "fail_exit"));
}

static char *tail_of(const char *path)
{
	char buf[4097];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	off_t from = st.st_size > 4096 ? st.st_size - 4096 : 0;
	ssize_t n = pread(fd, buf, 4096, from);
	close(fd);
	buf[n < 0 ? 0 : n] = 0;
	return xstrdup(buf);
}

static void repeat(struct hunt *h, const struct job *j, uint32_t times)
{
	h->again.seed = j->seed;
	memcpy(h->again.hunt, j->hunt, sizeof h->again.hunt);
	h->repeats = times;
}

/*
 * A test that fails now and then often just ends with a status. When some runs end with 0 and others
 * do not, it is what the hunt is for, and from now on a failure; which of the two a calm run ends with
 * does not matter: a flaky program may fail more often than not.
 */
static void note_exit(struct hunt *h, const struct job *j, int status)
{
	struct hunt_result *r = h->res;

	if (status && !r->exits++)
		r->exit_output = tail_of(j->output);
	if (status)
		r->exit_status = status;
	if (statuses_given(h))
		return;
	if (status && !h->statuses.odd[status & 0xff]) {
		h->again.seed = j->seed;
		memcpy(h->again.hunt, j->hunt, sizeof h->again.hunt);
	}
	if (!statuses_note(&h->statuses, status))
		return;
	struct strbuf list = { 0 };
	statuses_list(&h->statuses, &list);
	h->repeats = ODD_REPEATS;
	snprintf(r->odd_exits, sizeof r->odd_exits, "%s", list.s);
	if (!r->odd_exit)
		r->odd_exit = r->exit_status;
	if (!h->o->quiet)
		fprintf(stderr, "%scsched hunt: some runs end with exit status 0 and some with %s: "
			"that is hunted for (--fail-exit=%s)\n", isatty(2) ? "\r\033[K" : "", list.s, list.s);
	strbuf_free(&list);
}

/* ---- kinds of failures ---- */

static uint32_t count_failure(struct hunt_result *res, const struct pick *p)
{
	res->failures++;
	for (uint32_t i = 0; i < res->nkinds; i++)
		if (res->kinds[i].print == p->print) {
			res->kinds[i].count++;
			return i;
		}
	res->kinds = xrealloc(res->kinds, (res->nkinds + 1) * sizeof *res->kinds);
	res->kinds[res->nkinds] = (struct hunt_failure){ .text = xstrdup(p->text), .print = p->print, .count = 1,
							 .kind = p->kind };
	return res->nkinds++;
}

/* A status that was learned, not given: whether it is the failure that matters is not known. */
static bool is_learned(const struct hunt *h, uint32_t kind)
{
	return h->res->kinds[kind].kind == TRC_FAIL_EXIT && !statuses_given(h);
}

bool hunt_is_settled(const struct hunt *h)
{
	const struct hunt_result *r = h->res;

	if (!r->trace || h->o->keep_going)
		return false;
	bool over = child_now() - h->begin > 3 * r->first_seconds + REFUSED_SECONDS;
	if (is_learned(h, h->main_kind) && r->runs < r->first_run + ODD_MORE && !over)
		return false;
	if (!r->refused || r->better || r->refused >= MOST_REFUSED)
		return true;
	return over;
}

/* ---- keeping ---- */

/* A failure that was found is not lost because there is no room for it where it was to go. */
static int stays(const struct hunt *h, const char *trace, char **path)
{
	char *there = xasprintf("%.*s%s", (int)(strrchr(h->work, '/') + 1 - h->work), h->work,
				strrchr(trace, '/') + 1);

	if (rename(trace, there)) {
		free(there);
		return -1;
	}
	free(*path);
	*path = there;
	return 0;
}

static err_t write_words(FILE *f, void *argv)
{
	for (char **a = argv; *a; a++)
		fwrite(*a, 1, strlen(*a) + 1, f);
	return NULL;
}

/* The process may be one that a script started: what has to be started again is the script. */
static void note_command(const struct hunt *h, const struct pick *p, const char *trace)
{
	if (p->started)
		return;
	char *name = xasprintf("%s/%s", trace, TRC_STARTED_BY);
	/* Without it the command of the process itself is shown. */
	err_free(newfile_write(name, NEWFILE_DERIVED, 0600, write_words, h->o->argv));
	free(name);
}

/* The trace moves to where the user wants it. *path: where it is now. */
static err_t move_out(struct hunt *h, const char *trace, char **path)
{
	err_t e = files_move_into(trace, h->o->out, path);

	if (e && !stays(h, trace, path)) {
		fprintf(stderr, "csched hunt: %s; the trace is in %s\n", e->msg, *path);
		err_free(e);
		e = NULL;
	}
	return e;
}

/* The first failure, or a better one than that: what the answer is about. */
static void make_main(struct hunt *h, const struct job *j, const struct pick *p, uint32_t kind)
{
	struct hunt_result *res = h->res;

	if (!res->trace) {
		res->first_run = res->runs;
		res->first_seconds = child_now() - h->begin;
	}
	free(res->trace);
	free(res->output);
	h->main_kind = kind;
	res->trace = xstrdup(res->kinds[kind].trace);
	res->first_seed = j->seed;
	memcpy(res->strategy, j->hunt, sizeof res->strategy);
	res->output = tail_of(j->output);
	res->explainable = p->explained;
	res->named = p->named;
}

/* as_main: it takes the place of the one that the answer is about; `replace`: whose trace goes. */
static err_t keep(struct hunt *h, const struct job *j, const struct pick *p, uint32_t kind, bool as_main, bool replace)
{
	struct hunt_result *res = h->res;
	char *worse = replace ? res->trace : NULL, *path = NULL;
	struct hunt_failure *k = &res->kinds[kind];

	TRY(move_out(h, p->path, &path));
	note_command(h, p, path);
	/* Gone only when the better one is safe. */
	if (worse) {
		files_remove_tree(worse);
		free(res->kinds[h->main_kind].trace);
		res->kinds[h->main_kind].trace = NULL;
		h->nkept--;
	}
	free(k->trace);
	k->trace = path;
	k->seed = j->seed;
	k->run = res->runs;
	k->seconds = child_now() - h->begin;
	memcpy(k->strategy, j->hunt, sizeof k->strategy);
	h->nkept++;
	if (as_main)
		make_main(h, j, p, kind);
	return NULL;
}

/* Another failure than the one the answer is about, while that is only an exit status. */
static err_t consider_other(struct hunt *h, const struct job *j, const struct pick *p, uint32_t kind)
{
	if (h->res->kinds[kind].trace || h->nkept >= MOST_KEPT)
		return NULL;
	return keep(h, j, p, kind, p->kind != TRC_FAIL_EXIT && is_learned(h, h->main_kind), false);
}

static err_t consider(struct hunt *h, const struct job *j, const struct pick *p, uint32_t kind)
{
	struct hunt_result *res = h->res;

	if (!p->path || hunt_is_settled(h))
		return NULL;
	if (res->trace && (h->o->keep_going || (kind != h->main_kind && is_learned(h, h->main_kind))))
		return consider_other(h, j, p, kind);
	if (!h->o->worth || h->o->keep_going || !p->explained)
		return res->trace ? NULL : keep(h, j, p, kind, true, false);

	bool good = h->o->worth(p->path, hunt_seconds_left(h));

	if (!good)
		res->refused++;
	else if (res->trace)
		res->better = true;
	return (good && res->refused) || !res->trace ? keep(h, j, p, kind, true, res->trace) : NULL;
}

/* ---- runs that may disturb each other ---- */

/*
 * Two runs at once that write the same files or want the same port fail without any bug in the program. What they fail by
 * counts when a run that is alone fails, too.
 */
static void suspect(struct hunt *h, const struct job *j, const struct pick *p)
{
	h->res->unconfirmed++;
	if (!h->suspect && p->path) {
		char *dir = xasprintf("%s/suspect", h->work);

		mkdir(dir, 0700);
		h->suspect = xasprintf("%s/%s", dir, strrchr(p->path, '/') + 1);
		if (rename(p->path, h->suspect)) {
			free(h->suspect);
			h->suspect = NULL;
		}
		free(dir);
	}
	if (h->alone)
		return;
	h->alone = true;
	repeat(h, j, ALONE_REPEATS);
	if (!h->o->quiet)
		fprintf(stderr, "%scsched hunt: a run failed (%s) while others were under way, and they share files or "
			"sockets: from now on one run at a time, and it counts when it fails alone, too\n",
			isatty(2) ? "\r\033[K" : "", p->text);
}

void hunt_keep_suspect(struct hunt *h)
{
	char *path = NULL;

	if (h->suspect && !h->res->trace) {
		err_t e = move_out(h, h->suspect, &path);

		if (!e)
			h->res->unconfirmed_trace = path;
		else
			free(path);
		err_free(e);
	}
	free(h->suspect);
	h->suspect = NULL;
}

/* ---- the end of a run ---- */

static err_t ask_oracle(struct hunt *h, const struct job *j, int status, struct pick *p)
{
	int said = 0;

	if (!h->o->check || p->text)
		return NULL;
	TRY(around_check(h->o->check, j->output, status, hunt_limit(h), &said));
	if (!said)
		return NULL;
	p->text = xasprintf("the check failed with status %d: %s", said, h->o->check);
	uint64_t facts[2] = { trc_checksum(h->o->check, strlen(h->o->check)), (uint64_t)said };
	p->print = trc_checksum(facts, sizeof facts);
	return NULL;
}

static err_t look_at_run(struct hunt *h, const struct job *j, pid_t pid, int status, bool late, bool calm)
{
	struct pick p;
	err_t e = NULL;

	pick_trace(j->dir, h->o->trace_of, pid, h->o->check, &p);
	if (!late)
		e = ask_oracle(h, j, status, &p);
	bool failed = !e && p.text;
	h->undisturbed += calm;
	h->undisturbed_failed += calm && failed;
	if (failed && j->shared && p.outside)
		suspect(h, j, &p);
	else if (failed)
		e = consider(h, j, &p, count_failure(h->res, &p));
	pick_free(&p);
	return e;
}

err_t hunt_finish_job(struct hunt *h, struct job *j)
{
	double seconds = child_now() - j->child.started;
	bool late = j->child.timed_out, calm = !*j->hunt || !strcmp(j->hunt, "learn/0/0");
	pid_t pid = j->child.pid;
	int status = child_finish(&j->child);

	h->res->runs++;
	if (!late && WIFEXITED(status))
		note_exit(h, j, WEXITSTATUS(status));
	h->res->timeouts += late;
	if (h->plan.run_seconds <= 0 && !late)
		h->plan.run_seconds = h->res->run_seconds = seconds;
	err_t e = look_at_run(h, j, pid, status, late, calm);
	files_remove_tree(j->dir);
	return e;
}
