/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched debug: debug a recorded run with gdb, forwards and backwards. */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/debug_order.h"
#include "analyzer/cmd/follow.h"
#include "analyzer/debug/front.h"
#include "common/json.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct options {
	const char *at, *listen;
	char **gdb;
	bool alternate, failing;
	int packets, control; /* sockets to the front; 0: there is none */
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
	json_str(&j, "order", d->order ? d->order : "recorded");
	json_str(&j, "position", at);
	json_uint(&j, "instruction", d->now);
	json_uint(&j, "instructions", d->end);
	json_bool(&j, "failure_reached", d->order ? d->order_fails : d->result->failure_reached);
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

/* The front has said what went wrong on its side. */
static err_t serve(struct dbg *d, struct options *o)
{
	const struct stub_help help = { front_explain, front_events, &o->control };
	struct dbg_place at;

	if (o->at) {
		TRY(dbg_parse(d, o->at, &at));
		TRY(dbg_go(d, at.time));
	}
	if (o->common.json) {
		print_json(d);
		return NULL;
	}
	signal(SIGINT, SIG_IGN); /* ^C is gdb's, and comes as a packet */
	if (front_announce(o->control, d))
		stub_serve(d, o->packets, &help);
	return NULL;
}

static err_t debug_run(struct trc *t, struct img_set *images, struct options *o)
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
				e = serve(&d, o);
			dbg_free(&d);
		}
		mach_result_free(&res);
	}
	mach_close(r);
	return e;
}

/* ^C of gdb while another order moves. */
static bool on_order_progress(void *arg, const char *phase, double part)
{
	(void)phase;
	return stub_interrupted(arg, 0, part);
}

static err_t debug_order(const char *path, struct options *o)
{
	struct explain_options x;
	struct explanation *e = NULL;
	struct dbg d = { 0 };
	uint64_t stand;
	err_t bad = debug_order_open(path, o->failing, &x, &e, &d, &stand);

	x.progress = on_order_progress;
	if (!bad)
		bad = dbg_go(&d, stand);
	if (!bad)
		bad = serve(&d, o);
	dbg_free(&d);
	if (e)
		explanation_free(e);
	return bad;
}

static err_t debug(const char *path, struct options *o)
{
	struct img_set *images;
	struct trc *t;
	err_t e;

	if (o->alternate || o->failing)
		return debug_order(path, o);
	TRY(trc_open(path, 0, &t));
	images = img_set_new();
	e = debug_run(t, images, o);
	img_set_free(images);
	trc_close(t);
	return e;
}

struct call {
	const char *path;
	struct options *o;
};

static int debug_confined(void *arg)
{
	struct call *c = arg;

	return cmd_fail("debug", debug(c->path, c->o));
}

/* gdb, or whoever connects, talks to a process outside; the one that reads the trace is confined. */
static err_t run(const char *path, struct options *o, int *status)
{
	struct front front = { .trace = path, .listen = o->listen, .gdb = o->gdb };
	struct sandbox_helper helper = { 0 };
	int both[2] = { 0 };

	if (!o->common.json) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both))
			return err_errno("socketpair");
		front.packets = both[0];
		front.others = o->packets = both[1];
		TRY(sandbox_helper_start(front_serve, &front, &helper));
		o->control = helper.sock;
		close(front.packets);
	}
	*status = confined_run(&(struct confined){ .command = "debug", .input = path, .keep = { o->packets, o->control } },
			       debug_confined, &(struct call){ path, o });
	if (o->packets)
		close(o->packets);
	int served = sandbox_helper_end(&helper);
	*status = *status ? *status : served;
	return NULL;
}

int cmd_debug(int argc, char **argv)
{
	struct options o = { 0 };
	const struct cmd_option options[] = {
		{ "at", 'a', "POSITION", CMD_TEXT, &o.at,
		  "stand there at first: THREAD:N, begin or end (default: end, the failure)" },
		{ "alternate", 0, NULL, CMD_FLAG, &o.alternate,
		  "stand in the passing order of the report, where the failing thread takes the other way" },
		{ "failing", 0, NULL, CMD_FLAG, &o.failing,
		  "stand in the failing order of the report, which has fewer context switches than the recorded one" },
		{ "listen", 'l', "ADDRESS", CMD_TEXT, &o.listen,
		  "wait for one gdb at HOST:PORT, :PORT or the path of a socket; start none" },
		EPOCH_OPTION,
		CONFINED_OPTIONS,
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
		return cmd_fail("debug", err_new(ERR_USAGE, "takes one trace, but %s is a second one (gdb's arguments "
							    "come after --)", args.v[1]));
	if (o.alternate && o.failing)
		return cmd_fail("debug", err_new(ERR_USAGE, "--alternate and --failing are two orders: choose one"));
	if (args.n > 1 && o.listen)
		return cmd_fail("debug", err_new(ERR_USAGE, "--listen starts no gdb that could take %s", args.v[1]));
	o.gdb = args.v + 1;
	status = 0;
	err_t e = run(args.v[0], &o, &status);
	return e ? cmd_fail("debug", e) : status;
}
