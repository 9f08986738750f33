/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched debug: gdb on a recorded run, forwards and backwards. */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/follow.h"
#include "analyzer/debug/gdb.h"
#include "common/json.h"
#include "common/strbuf.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
	const char *at, *listen;
	char **gdb;
	struct cmd_common common;
};

static volatile sig_atomic_t interrupted;
static bool following;
static struct progress line;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
	signal(SIGINT, SIG_DFL);
}

/* While following: the terminal's progress line and ^C; later: gdb's ^C. */
static bool on_progress(void *arg, uint64_t insns, double part)
{
	if (!following)
		return stub_interrupted(arg, insns, part);
	line.what = "following the recorded run";
	progress_at(&line, part > 0 ? (uint64_t)(part * 1000) : 0, part > 0 ? 1000 : 0);
	return interrupted;
}

/* What `csched explain` prints; it works in a process of its own, because this one stands in the middle of the run. */
static char *explained(void *arg)
{
	struct strbuf b = { 0 };
	char self[4096], piece[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	int ends[2];

	if (n <= 0 || pipe(ends))
		return NULL;
	self[n] = 0;
	pid_t pid = fork();

	if (!pid) {
		dup2(ends[1], 1);
		dup2(ends[1], 2);
		close(ends[0]);
		close(ends[1]);
		execl(self, "csched", "explain", "--color=never", arg, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	while (pid > 0 && (n = read(ends[0], piece, sizeof piece)) > 0)
		strbuf_add(&b, piece, (size_t)n);
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return strbuf_take(&b);
}

static void tell_guesses(const struct mach_result *res)
{
	if (res->exact || res->end == MACH_END_STOPPED)
		return;
	fprintf(stderr, "csched debug: the run is not followed exactly%s%s\n", res->why ? ": " : "", res->why ? res->why : "");
	for (size_t i = 0; i < res->nundetermined && i < 5; i++)
		fprintf(stderr, "  undetermined by the trace: %s\n", res->undetermined[i]);
	if (res->end != MACH_END_FAILURE && res->end != MACH_END_EXIT)
		fprintf(stderr, "  It can be looked at up to there, instruction %" PRIu64 " of the run.\n", res->insns);
}

/* What a front end needs that starts its gdb by itself: where the run stands, and which files lie where. */
static void print_json(struct dbg *d)
{
	struct img_module *const *modules;
	size_t n = img_modules(d->images, &modules);
	char *at = dbg_position(d);
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "position", at);
	json_uint(&j, "instruction", d->now);
	json_uint(&j, "instructions", d->end);
	json_bool(&j, "failure_reached", d->result->failure_reached);
	json_bool(&j, "exact", d->result->exact);
	json_array(&j, "modules");
	for (size_t i = 0; i < n; i++) {
		if (!img_module_file(modules[i]))
			continue;
		json_object(&j, NULL);
		json_str(&j, "file", img_module_file(modules[i]));
		json_hex(&j, "bias", img_module_bias(modules[i]));
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	json_print(&j, stdout);
	free(at);
}

static err_t serve(const char *path, struct dbg *d, const struct options *o, int *status)
{
	const struct stub_help help = { explained, (void *)path };
	uint64_t time;

	if (o->at) {
		TRY(dbg_parse(d, o->at, &time));
		TRY(dbg_go(d, time));
	}
	if (o->common.json) {
		print_json(d);
		return NULL;
	}
	return o->listen ? gdb_listen(d, o->listen, &help) : gdb_run(d, o->gdb, &help, status);
}

static err_t debug_run(const char *path, struct trc *t, struct img_set *images, const struct options *o, int *status)
{
	struct mach_options m = { .progress = on_progress, .keep_checkpoints = true };
	struct mach_result res;
	struct mach_run *r;
	struct dbg d;
	err_t e;

	TRY(mach_open(t, images, &m, &r));
	signal(SIGINT, on_interrupt);
	following = true;
	e = mach_follow(r, &res);
	following = false;
	progress_end(&line);
	signal(SIGINT, SIG_DFL);
	if (!e) {
		char *changed = res.why ? follow_file_changed(t, res.why) : NULL;

		if (interrupted)
			e = err_new(ERR_NOANSWER, "interrupted");
		else if (changed)
			e = err_new(ERR_NOANSWER, "%s", changed);
		else if (!res.insns)
			e = err_new(ERR_NOANSWER, "nothing of the run could be followed: %s",
				    res.why ? res.why : "it has no recorded path (csched run --mode=path records one)");
		free(changed);
		if (!e) {
			tell_guesses(&res);
			e = dbg_init(&d, t, images, r, &res);
			if (!e)
				e = serve(path, &d, o, status);
			dbg_free(&d);
		}
		mach_result_free(&res);
	}
	mach_close(r);
	return e;
}

static err_t debug(const char *path, const struct options *o, int *status)
{
	struct img_set *images;
	struct trc *t;
	err_t e;

	TRY(trc_open(path, 0, &t));
	images = img_set_new();
	e = debug_run(path, t, images, o, status);
	img_set_free(images);
	trc_close(t);
	return e;
}

int cmd_debug(int argc, char **argv)
{
	struct options o = { 0 };
	const struct cmd_option options[] = {
		{ "at", 'a', "POSITION", CMD_TEXT, &o.at,
		  "stand there at first: THREAD:N, begin or end (default: end, the failure)" },
		{ "listen", 'l', "ADDRESS", CMD_TEXT, &o.listen,
		  "wait for one gdb at HOST:PORT, :PORT or the path of a socket; start none" },
		{ 0 },
	};
	const struct cmd_spec spec = {
		.name = "debug", .usage = "[options] TRACE [-- GDB ARGUMENTS...]",
		.summary = "Starts gdb at the failure of a recorded run; it moves forwards and backwards.",
		.options = options, .common = &o.common, .min_args = 1, .max_args = CMD_ANY,
	};
	struct cmd_args args;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	if (args.n > 1 && !args.dashes)
		return cmd_fail("debug", err_new(ERR_USAGE, "one trace, please: %s is a second one (what is meant for gdb "
							    "stands behind --)", args.v[1]));
	if (args.n > 1 && o.listen)
		return cmd_fail("debug", err_new(ERR_USAGE, "with --listen no gdb is started that could take %s",
						 args.v[1]));
	o.gdb = args.v + 1;
	status = 0;
	err_t e = debug(args.v[0], &o, &status);
	return e ? cmd_fail("debug", e) : status;
}
