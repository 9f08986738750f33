#include "analyzer/hunt/hunt.h"

#include "analyzer/hunt/child.h"
#include "analyzer/hunt/files.h"
#include "analyzer/hunt/interrupt.h"
#include "analyzer/hunt/plan.h"
#include "analyzer/image/image.h"
#include "analyzer/launch.h"
#include "analyzer/trace_image.h"
#include "common/strbuf.h"
#include "common/trace_read.h"
#include "common/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_JOBS 32
/* A failure whose trace was refused is looked for again: so often, and so long. */
#define MOST_REFUSED 8
#define REFUSED_SECONDS 10.0
/* Runs like the one that ended with a status nobody knew to be a failure: its trace is gone. */
#define ODD_REPEATS 20
#define FIRST_LIMIT 60.0 /* seconds for the first run, whose length is unknown ... */
#define LEAST_FIRST 6.0  /* ... of a short hunt half of its time, but no less than this */
/* When the time is over, who has run for so many times an undisturbed run, and so many seconds, would not have ended soon. */
#define OVERDUE_TIMES 5.0
#define OVERDUE_SECONDS 1.0

struct job {
	struct child child;
	uint64_t run;
	uint64_t seed;
	char hunt[128];
	char dir[PATH_MAX];
	char output[PATH_MAX + 8];
};

struct hunt {
	const struct hunt_options *o;
	struct hunt_result *res;
	struct plan plan;
	char work[PATH_MAX - 64]; /* temporary directory of the hunt */
	char input[PATH_MAX];
	struct job jobs[MAX_JOBS];
	uint32_t njobs;
	struct job next;          /* what the next run will be: run, seed, hunt */
	bool has_next;
	uint64_t started;
	double begin, shown;
	uint64_t undisturbed, undisturbed_failed;
	bool ended_well;          /* some run ended with status 0 */
	struct job again;         /* the last run that did not: run, seed, hunt ... */
	uint32_t repeats;         /* ... and how often it is still to be done again */
};

static err_t make_work(struct hunt *h)
{
	bool terminal = false;

	TRY(files_make_work("csched-hunt", h->work, sizeof h->work));
	snprintf(h->input, sizeof h->input, "%s/input", h->work);
	TRY(files_keep_input(h->input, &terminal));
	if (terminal && !h->o->quiet)
		fprintf(stderr, "csched hunt: standard input is a terminal; the runs get an empty one\n");
	return NULL;
}

/* ---- one run ---- */

static double limit_of(const struct hunt *h)
{
	if (h->o->run_limit > 0)
		return h->o->run_limit;
	if (h->plan.run_seconds <= 0 && h->o->max_seconds > 0 && h->o->max_seconds / 2 < FIRST_LIMIT)
		return h->o->max_seconds / 2 > LEAST_FIRST ? h->o->max_seconds / 2 : LEAST_FIRST;
	if (h->plan.run_seconds <= 0)
		return FIRST_LIMIT;
	return 10 + 20 * h->plan.run_seconds;
}

static void option_number(struct strbuf *b, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	launch_option(b, key, text);
}

static void option_seconds(struct strbuf *b, const char *key, double value)
{
	char text[24];

	snprintf(text, sizeof text, "%.1f", value);
	launch_option(b, key, text);
}

static char *options_of(const struct hunt *h, const struct job *j)
{
	struct strbuf b = { 0 };
	char sites[PATH_MAX];

	snprintf(sites, sizeof sites, "%s/sites", h->work);
	/* A run that stands still is reported by the shim, with all stacks, before
	 * the time limit ends it. Learning can be slow enough to look like that. */
	if (strncmp(j->hunt, "learn", 5))
		option_seconds(&b, "hang", limit_of(h) * 0.6);
	launch_options_given(&b);
	launch_option(&b, "quiet", "1");
	launch_option(&b, "deadlock", "abort");
	launch_option(&b, "dir", j->dir);
	launch_option(&b, "sites", sites);
	option_number(&b, "seed", j->seed);
	if (*j->hunt)
		launch_option(&b, "hunt", j->hunt);
	if (h->o->fail_exit)
		launch_option(&b, "fail_exit", h->o->fail_exit);
	else if (h->res->odd_exit)
		option_number(&b, "fail_exit", (uint64_t)h->res->odd_exit);
	if (h->o->options && *h->o->options)
		strbuf_fmt(&b, ":%s", h->o->options);
	return strbuf_take(&b);
}

/* Does the run need two threads on two cores at the same time? */
static bool wants_cores(const struct job *j)
{
	return !*j->hunt || !strncmp(j->hunt, "meet", 4);
}

static const struct job *next_run(struct hunt *h)
{
	struct job *n = &h->next;

	if (h->has_next)
		return n;
	if (h->repeats) {
		h->repeats--;
		n->seed = h->again.seed;
		memcpy(n->hunt, h->again.hunt, sizeof n->hunt);
	} else {
		plan_next(&h->plan, h->started, &n->seed, n->hunt, sizeof n->hunt);
	}
	n->run = h->started;
	h->has_next = true;
	return n;
}

static err_t start_job(struct hunt *h, struct job *j)
{
	const struct hunt_options *o = h->o;
	const struct job *n = next_run(h);

	j->run = n->run;
	j->seed = n->seed;
	memcpy(j->hunt, n->hunt, sizeof j->hunt);
	h->started++;
	h->has_next = false;
	if (mkdir(j->dir, 0700) && errno != EEXIST)
		return err_errno("%s", j->dir);
	char *options = options_of(h, j);
	char *preload = launch_preload(o->shim);
	char *env[] = { xasprintf("CSCHED_OPTIONS=%s", options),
			xasprintf("LD_PRELOAD=%s", preload), NULL };
	struct child_spec spec = { o->argv, h->input, j->output, env };
	err_t e = child_start(&j->child, &spec, limit_of(h));
	free(options);
	free(preload);
	free(env[0]);
	free(env[1]);
	return e;
}

static uint64_t failure_print(const struct trc_failure *f)
{
	/* The page offset of the pc survives address randomisation. */
	uint64_t facts[4] = { f->rec.flags, (uint64_t)(unsigned)f->signal,
			      f->regs[TRC_RIP] & 0xfff, f->text_len };

	return trc_checksum(facts, sizeof facts);
}

static void count_failure(struct hunt_result *res, const struct trc_failure *f)
{
	uint64_t print = failure_print(f);

	res->failures++;
	for (uint32_t i = 0; i < res->nkinds; i++)
		if (res->kinds[i].print == print) {
			res->kinds[i].count++;
			return;
		}
	res->kinds = xrealloc(res->kinds, (res->nkinds + 1) * sizeof *res->kinds);
	res->kinds[res->nkinds++] = (struct hunt_failure){
		trace_failure_text(f), print, 1 };
}

/* The trace with a failure among those a run left (children have their own), or NULL. */
static char *failed_trace(const char *dir, struct hunt_result *res)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char *found = NULL;

	while (d && !found && (e = readdir(d))) {
		struct trc *t = NULL;

		if (e->d_name[0] == '.')
			continue;
		char *path = xasprintf("%s/%s", dir, e->d_name);
		err_t bad = trc_open(path, TRC_TOLERANT, &t);
		if (!bad && t->failure) {
			count_failure(res, t->failure);
			found = path;
			path = NULL;
		}
		err_free(bad);
		if (t)
			trc_close(t);
		free(path);
	}
	if (d)
		closedir(d);
	return found;
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

static bool is_settled(const struct hunt *h)
{
	const struct hunt_result *r = h->res;

	if (!r->trace || h->o->keep_going)
		return false;
	if (!r->refused || r->better || r->refused >= MOST_REFUSED)
		return true;
	return child_now() - h->begin > 3 * r->first_seconds + REFUSED_SECONDS;
}

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

static err_t keep(struct hunt *h, const struct job *j, const char *trace)
{
	struct hunt_result *res = h->res;
	const char *base = strrchr(trace, '/') + 1;

	if (!res->trace) {
		res->first_run = res->runs;
		res->first_seconds = child_now() - h->begin;
	}
	char *worse = res->trace;

	free(res->output);
	res->first_seed = j->seed;
	memcpy(res->strategy, j->hunt, sizeof res->strategy);
	res->output = tail_of(j->output);
	if (h->o->out) {
		res->trace = xasprintf("%s/%s", h->o->out, base);
	} else {
		res->trace = xstrdup(base);
	}
	err_t e = files_move_tree(trace, res->trace);

	if (e && !stays(h, trace, &res->trace)) {
		fprintf(stderr, "csched hunt: %s; the trace is in %s\n", e->msg, res->trace);
		err_free(e);
		e = NULL;
	}
	/* Gone only when the better one is safe. */
	if (worse && !e)
		files_remove_tree(worse);
	free(worse);
	return e;
}

/* Of the budget; a large number where there is none. */
static double seconds_left(const struct hunt *h)
{
	double left = h->begin + h->o->max_seconds - child_now();

	return h->o->max_seconds <= 0 ? 1e9 : left > 0 ? left : 0;
}

static err_t consider(struct hunt *h, const struct job *j, const char *trace)
{
	struct hunt_result *res = h->res;

	if (!h->o->worth || h->o->keep_going)
		return res->trace ? NULL : keep(h, j, trace);
	if (is_settled(h))
		return NULL;

	bool good = h->o->worth(trace, seconds_left(h));

	if (!good)
		res->refused++;
	else if (res->trace)
		res->better = true;
	return good || !res->trace ? keep(h, j, trace) : NULL;
}

static bool statuses_given(const struct hunt *h)
{
	const char *env = getenv("CSCHED_OPTIONS");

	return h->o->fail_exit || (h->o->options && strstr(h->o->options, "fail_exit")) ||
	       (env && strstr(env, "fail_exit"));
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
	else
		h->ended_well = true;
	if (r->odd_exit || statuses_given(h))
		return;
	if (status) {
		h->again.seed = j->seed;
		memcpy(h->again.hunt, j->hunt, sizeof h->again.hunt);
	}
	if (!r->exits || !h->ended_well)
		return;
	r->odd_exit = r->exit_status;
	h->repeats = ODD_REPEATS;
	if (!h->o->quiet)
		fprintf(stderr, "%scsched hunt: some runs end with exit status 0 and some with %d: "
			"that is hunted for (--fail-exit=%d)\n", isatty(2) ? "\r\033[K" : "", r->odd_exit,
			r->odd_exit);
}

static err_t finish_job(struct hunt *h, struct job *j)
{
	double seconds = child_now() - j->child.started;
	bool late = j->child.timed_out;
	err_t e = NULL;

	int status = child_finish(&j->child);
	h->res->runs++;
	bool calm = !*j->hunt || !strcmp(j->hunt, "learn/0/0");
	if (!late && WIFEXITED(status))
		note_exit(h, j, WEXITSTATUS(status));
	h->res->timeouts += late;
	if (h->plan.run_seconds <= 0 && !late)
		h->plan.run_seconds = h->res->run_seconds = seconds;
	char *trace = failed_trace(j->dir, h->res);
	h->undisturbed += calm;
	h->undisturbed_failed += calm && trace;
	if (trace)
		e = consider(h, j, trace);
	free(trace);
	files_remove_tree(j->dir);
	return e;
}

/* ---- the loop ---- */

/* How much of the budget is gone, what it brought, and why it may never bring anything. */
static void show_progress(struct hunt *h, bool last)
{
	const struct hunt_result *r = h->res;
	const struct hunt_options *o = h->o;
	double now = child_now(), spent = now - h->begin;
	char of_runs[32] = "", of_time[32] = "", found[64] = "no failure yet";

	if (o->quiet || !isatty(2) || (!last && now - h->shown < 0.2))
		return;
	h->shown = now;
	if (o->max_runs)
		snprintf(of_runs, sizeof of_runs, " of %llu", (unsigned long long)o->max_runs);
	if (o->max_seconds > 0)
		snprintf(of_time, sizeof of_time, " of %.0f", o->max_seconds);
	if (r->failures)
		snprintf(found, sizeof found, "%llu failed (%u distinct)", (unsigned long long)r->failures, r->nkinds);
	fprintf(stderr, "\r\033[K%llu%s runs in %.0f%s s, %.1f runs/s, %s, %u shared sites%s%s", (unsigned long long)r->runs,
		of_runs, spent, of_time, (double)r->runs / (spent + 1e-9), found, h->plan.sites->nshared,
		h->plan.sites->threads == 1 ? ", no second thread" : r->runs && r->exits == r->runs ? ", all exit with an error" : "",
		last ? "\n" : "");
}

static bool budget_left(const struct hunt *h)
{
	const struct hunt_options *o = h->o;

	if (interrupt_pending() || is_settled(h))
		return false;
	if (o->max_runs && h->started >= o->max_runs)
		return false;
	if (o->max_failures && h->res->failures >= o->max_failures)
		return false;
	return !o->max_seconds || child_now() - h->begin < o->max_seconds;
}

/* The first run alone tells how long runs take; others may want the cores to themselves. */
static bool may_start(struct hunt *h, uint32_t busy)
{
	if (!busy)
		return true;
	if (h->plan.run_seconds <= 0 || wants_cores(next_run(h)))
		return false;
	for (uint32_t i = 0; i < h->njobs; i++)
		if (h->jobs[i].child.pid && wants_cores(&h->jobs[i]))
			return false;
	return true;
}

/* The job whose run ended or is late, or -1 after a while. */
static int wait_job(struct hunt *h)
{
	struct child list[MAX_JOBS];

	for (uint32_t k = 0; k < h->njobs; k++)
		list[k] = h->jobs[k].child;
	double left = seconds_left(h);
	int i = child_wait_any(list, h->njobs, left < 0.5 ? left : 0.5);
	for (uint32_t k = 0; k < h->njobs && i < 0; k++)
		files_thin_output(h->jobs[k].output);
	if (i >= 0)
		h->jobs[i].child.timed_out = list[i].timed_out;
	return i;
}

static bool is_overdue(const struct hunt *h, const struct job *j)
{
	double ran = child_now() - j->child.started;

	return !h->res->runs || (ran > OVERDUE_SECONDS && ran > OVERDUE_TIMES * h->plan.run_seconds);
}

static void end_all(struct hunt *h)
{
	bool late = h->o->max_seconds > 0 && seconds_left(h) <= 0;

	for (uint32_t k = 0; k < h->njobs; k++)
		if (h->jobs[k].child.pid) {
			if (late && is_overdue(h, &h->jobs[k])) {
				h->res->runs++;
				h->res->timeouts++;
			}
			h->jobs[k].child.timed_out = true;
			child_finish(&h->jobs[k].child);
			files_remove_tree(h->jobs[k].dir);
		}
}

static err_t fill_jobs(struct hunt *h, uint32_t *busy)
{
	*busy = 0;
	for (uint32_t i = 0; i < h->njobs; i++)
		*busy += h->jobs[i].child.pid != 0;
	for (uint32_t i = 0; i < h->njobs && budget_left(h) && may_start(h, *busy); i++)
		if (!h->jobs[i].child.pid) {
			TRY(start_job(h, &h->jobs[i]));
			++*busy;
		}
	return NULL;
}

static err_t loop(struct hunt *h)
{
	uint32_t busy;
	err_t e;

	while (!(e = fill_jobs(h, &busy)) && busy) {
		/* A run that hangs does not keep the hunt beyond its time. */
		if (interrupt_pending() || is_settled(h) || seconds_left(h) <= 0)
			break;
		int i = wait_job(h);
		if (i >= 0 && (e = finish_job(h, &h->jobs[i])))
			break;
		show_progress(h, false);
	}
	end_all(h);
	return e;
}

static void prepare_jobs(struct hunt *h)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	h->njobs = h->o->jobs ? h->o->jobs : cores > 0 ? (uint32_t)cores : 1;
	if (h->njobs > MAX_JOBS)
		h->njobs = MAX_JOBS;
	for (uint32_t i = 0; i < h->njobs; i++) {
		struct job *j = &h->jobs[i];

		j->child.fd = -1;
		snprintf(j->dir, sizeof j->dir, "%s/job%u", h->work, i);
		snprintf(j->output, sizeof j->output, "%s/out%u", h->work, i);
	}
}

static void summarise(struct hunt *h)
{
	h->res->seconds = child_now() - h->begin;
	h->res->always = h->undisturbed && h->undisturbed_failed == h->undisturbed;
	h->res->interrupted = interrupt_pending() != 0;
	h->res->sites = h->plan.sites->nsites;
	h->res->shared = h->plan.sites->nshared;
	h->res->threads = h->plan.sites->threads;
	show_progress(h, true);
}

/* Zero for what is not an ELF file beside us: then names and offsets are trusted. */
static uint64_t build_of(const char *program)
{
	char *id = img_build_id_of_file(program);
	uint64_t sum = id && *id ? trc_checksum(id, strlen(id)) : 0;

	free(id);
	return sum;
}

err_t hunt_run(const struct hunt_options *o, struct hunt_result *res)
{
	struct hunt *h = xcalloc(1, sizeof *h);

	*res = (struct hunt_result){ 0 };
	h->o = o;
	h->res = res;
	h->plan.strategy = o->strategy;
	h->plan.seed = o->seed;
	interrupt_catch();
	/* Now: the failure may come only once. */
	bool made_out = o->out && *o->out && access(o->out, F_OK);
	err_t e = made_out ? files_make_dirs(o->out) : NULL;
	if (!e && access(o->out ? o->out : ".", W_OK | X_OK))
		e = err_errno("no trace could be kept in %s", o->out ? o->out : "the current directory");
	if (!e)
		e = make_work(h);
	if (!e) {
		char *path = o->sites ? xstrdup(o->sites) : xasprintf("%s/sites", h->work);
		char *link_to = xasprintf("%s/sites", h->work);
		e = plan_sites_open(path, build_of(o->argv[0]), &h->plan.sites);
		if (!e && o->sites) {
			char *full = realpath(path, NULL);
			if (!full || symlink(full, link_to))
				e = err_errno("%s", link_to);
			free(full);
		}
		free(path);
		free(link_to);
	}
	if (!e) {
		prepare_jobs(h);
		h->begin = child_now();
		e = loop(h);
		summarise(h);
		if (made_out && !res->trace)
			rmdir(o->out);
	}
	plan_free(&h->plan);
	files_remove_tree(h->work);
	free(h);
	interrupt_release();
	return e;
}

void hunt_result_free(struct hunt_result *res)
{
	for (uint32_t i = 0; i < res->nkinds; i++)
		free(res->kinds[i].text);
	free(res->kinds);
	free(res->trace);
	free(res->output);
	free(res->exit_output);
}
