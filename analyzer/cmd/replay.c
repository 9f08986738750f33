/* csched replay: a recorded run executed again, offline; or on the real program (--native). */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/follow.h"
#include "analyzer/cmd/native.h"
#include "analyzer/follow/machine.h"
#include "analyzer/trace_image.h"
#include "common/json.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct options {
	const char *until, *thread;
	double timeout;
	struct native_request native;
	bool is_native;
	struct cmd_common common;
};

/* ---- progress ---- */

static volatile sig_atomic_t interrupted;
static double started;
static bool shown;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
	signal(SIGINT, SIG_DFL); /* a second one ends us the ordinary way */
}

static bool on_progress(void *arg, uint64_t insns, double part)
{
	double spent = now() - started;

	(void)arg;
	if (!isatty(STDERR_FILENO))
		return interrupted;
	fprintf(stderr, "\r\033[Kreplay: %" PRIu64 " M instructions, %.1f M/s", insns / 1000000,
		(double)insns / spent / 1e6);
	if (part > 0.01 && part <= 1)
		fprintf(stderr, ", %.0f%%, %.0f s to go", part * 100, spent / part - spent);
	fflush(stderr);
	shown = true;
	return interrupted;
}

static void progress_done(void)
{
	if (shown)
		fputs("\r\033[K", stderr);
	shown = false;
}

/* ---- where to stop ---- */

static err_t find_thread(const struct trc *t, const char *id, uint32_t *out)
{
	for (uint32_t i = 0; i < t->threads.n; i++)
		if (!strcmp(trc_thread_id(t, i), id)) {
			*out = i;
			return NULL;
		}
	return err_new(ERR_NOANSWER, "the trace has no thread %s", id);
}

/* POSITION: [THREAD:]N, an instruction number, or [THREAD:]0xPC */
static err_t parse_position(const struct trc *t, const struct options *o, struct mach_options *m)
{
	const char *s = o->until, *colon = s ? strchr(s, ':') : NULL;
	char *end, id[128];

	m->until_thread = t->failure ? t->failure->thread : 0;
	if (o->thread)
		TRY(find_thread(t, o->thread, &m->until_thread));
	if (!s)
		return NULL;
	if (colon) {
		if ((size_t)(colon - s) >= sizeof id)
			return err_new(ERR_USAGE, "--until %s: no such thread", s);
		memcpy(id, s, (size_t)(colon - s));
		id[colon - s] = 0;
		TRY(find_thread(t, id, &m->until_thread));
		s = colon + 1;
	}
	uint64_t value = strtoull(s, &end, 0);

	if (end == s || *end || !value)
		return err_new(ERR_USAGE,
			       "--until %s: expected [THREAD:]N (an instruction number) or [THREAD:]0xPC",
			       o->until);
	if (!strncmp(s, "0x", 2) || !strncmp(s, "0X", 2))
		m->until_pc = value;
	else
		m->until_insn = value;
	return NULL;
}

/* ---- the answer ---- */

static const char *const end_names[] = {
	[MACH_END_FAILURE] = "failure", [MACH_END_EXIT] = "exit",
	[MACH_END_PATH] = "end of the record", [MACH_END_UNTIL] = "until",
	[MACH_END_STOPPED] = "stopped", [MACH_END_DIVERGED] = "diverged",
	[MACH_END_UNDECODED] = "unknown instruction", [MACH_END_NATIVE] = "left translated code",
};

static const char *const reg_names[TRC_NREGS] = {
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8",
	"r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip", "rflags",
};

static void json_strings(struct json *j, const char *key, char *const *v, size_t n)
{
	json_array(j, key);
	for (size_t i = 0; i < n; i++)
		json_str(j, NULL, v[i]);
	json_end(j);
}

static void json_registers(struct json *j, struct mach_run *r, uint32_t thread)
{
	uint64_t regs[TRC_NREGS];

	if (!mach_regs(r, thread, regs, NULL))
		return;
	json_object(j, "registers");
	for (unsigned i = 0; i < TRC_NREGS; i++)
		json_hex(j, reg_names[i], regs[i]);
	json_end(j);
}

static void print_json(const struct trc *t, struct mach_run *r, const struct mach_result *res)
{
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "end", end_names[res->end]);
	json_str(&j, "why", res->why);
	json_bool(&j, "failure_recorded", res->failure_recorded);
	json_bool(&j, "failure_reached", res->failure_reached);
	json_bool(&j, "same_thread", res->same_thread);
	json_bool(&j, "same_pc", res->same_pc);
	json_bool(&j, "same_kind", res->same_kind);
	json_array(&j, "registers_differ");
	for (size_t i = 0; i < res->ndiffer; i++) {
		json_object(&j, NULL);
		json_str(&j, "name", res->differ[i].name);
		json_hex(&j, "replayed", res->differ[i].replayed);
		json_hex(&j, "recorded", res->differ[i].recorded);
		json_end(&j);
	}
	json_end(&j);
	json_bool(&j, "exact", res->exact);
	json_bool(&j, "output_identical", res->output_identical);
	json_uint(&j, "output_bytes", res->output_bytes);
	json_strings(&j, "undetermined", res->undetermined, res->nundetermined);
	json_strings(&j, "notes", res->notes, res->nnotes);
	json_uint(&j, "branches_checked", res->branches + res->indirects);
	json_uint(&j, "syscalls", res->syscalls);
	json_uint(&j, "locked", res->locked);
	json_uint(&j, "signals", res->signals);
	json_uint(&j, "instructions", res->insns);
	json_uint(&j, "mismatches", res->mismatches);
	json_uint(&j, "tries", res->tries);
	json_uint(&j, "forced_loads", res->forced);
	json_uint(&j, "store_buffers", res->buffered);
	if (res->final_compared) {
		json_uint(&j, "final_bytes", res->final_bytes);
		json_uint(&j, "final_differ", res->final_differ);
		json_hex(&j, "final_first", res->final_first);
	}
	json_num(&j, "seconds", res->seconds);
	json_str(&j, "thread", trc_thread_id(t, res->thread));
	json_uint(&j, "thread_instruction", mach_thread_insns(r, res->thread));
	json_hex(&j, "pc", res->pc);
	json_registers(&j, r, res->thread);
	json_end(&j);
	json_print(&j, stdout);
}

/* What may hold names from the trace; format has one %s. */
static void print_safe(const char *format, const char *text)
{
	const char *at = strstr(format, "%s");
	char *safe = term_text_of(text, strlen(text));

	printf("%.*s%s%s", (int)(at - format), format, safe, at + 2);
	free(safe);
}

static void print_end(const struct term *term, const struct trc *t, struct img_set *images,
		      const struct mach_result *res)
{
	char *place = img_symbol_text(images, res->pc);
	bool good = res->end == MACH_END_EXIT || res->end == MACH_END_UNTIL ||
		    (res->end == MACH_END_FAILURE && res->same_thread && res->same_pc && res->same_kind);

	term_print(term, good ? TERM_GREEN : TERM_RED, "%s",
		   res->end == MACH_END_FAILURE ? "the recorded failure was reached" :
		   res->end == MACH_END_EXIT    ? "the run ended as recorded" :
						  end_names[res->end]);
	if (res->why)
		print_safe(": %s", res->why);
	printf("\n  at         %s, 0x%" PRIx64, trc_thread_id(t, res->thread), res->pc);
	print_safe(" %s\n", place);
	free(place);
	if (t->failure && res->failure_reached) {
		char *raw = trace_failure_text(t->failure), *text = term_text_of(raw, strlen(raw));

		printf("  failure    %s\n", text);
		free(raw);
		free(text);
	}
}

static void print_text(const struct term *term, const struct trc *t, struct img_set *images,
		       const struct mach_result *res)
{
	print_end(term, t, images, res);
	printf("  checked    %" PRIu64 " branches, %" PRIu64 " indirect targets, %" PRIu64
	       " system calls, %" PRIu64 " bytes of output%s\n",
	       res->branches, res->indirects, res->syscalls, res->output_bytes,
	       res->output_identical ? "" : " (which differ)");
	printf("  executed   %" PRIu64 " instructions in %.2f s (%.1f M/s)\n", res->insns,
	       res->seconds, (double)res->insns / (res->seconds + 1e-9) / 1e6);
	if (res->mismatches)
		printf("  order      %" PRIu64 " mismatches resolved by trying %" PRIu64 " orders\n",
		       res->mismatches, res->tries);
	if (res->forced)
		printf("  forced     %" PRIu64 " loads to a value that no order gives them, %" PRIu64
		       " of them explained by a store buffer\n", res->forced, res->buffered);
	if (res->final_compared)
		printf("  memory     %" PRIu64 " bytes compared at the end, %" PRIu64 " differ\n",
		       res->final_bytes, res->final_differ);
	for (size_t i = 0; i < res->ndiffer; i++)
		printf("  differs    %s is 0x%" PRIx64 ", recorded 0x%" PRIx64 "\n", res->differ[i].name,
		       res->differ[i].replayed, res->differ[i].recorded);
	for (size_t i = 0; i < res->nundetermined; i++)
		print_safe("  undetermined by the trace: %s\n", res->undetermined[i]);
	for (size_t i = 0; i < res->nnotes; i++)
		print_safe("  note       %s\n", res->notes[i]);
	if (res->end == MACH_END_EXIT || res->end == MACH_END_FAILURE)
		printf("  exact      %s\n", res->exact ? "yes" : "no");
}

static int status_of(const struct mach_result *res)
{
	switch (res->end) {
	case MACH_END_FAILURE:
		return res->same_thread && res->same_pc && res->same_kind ? 0 : ERR_NOANSWER;
	case MACH_END_EXIT:
	case MACH_END_UNTIL:
		return 0;
	case MACH_END_PATH:
		return res->failure_recorded ? ERR_NOANSWER : 0;
	default:
		return ERR_NOANSWER;
	}
}

/* A position the thread never came to: addresses of a PIE are those of the run, not of the file. */
static void tell_missed(struct trc *t, struct mach_run *r, const struct options *o,
			const struct mach_options *m)
{
	fprintf(stderr, "csched replay: %s did not come to %s: it executed %" PRIu64 " instructions%s\n",
		trc_thread_id(t, m->until_thread), o->until, mach_thread_insns(r, m->until_thread),
		m->until_pc ? ", none of them there (csched info shows where modules were)" : "");
}

static err_t follow(struct trc *t, struct img_set *images, const struct options *o, int *status)
{
	struct mach_options m = { .progress = on_progress, .timeout = o->timeout };
	struct mach_result res;
	struct mach_run *r;
	err_t e;

	TRY(parse_position(t, o, &m));
	TRY(mach_open(t, images, &m, &r));
	started = now();
	signal(SIGINT, on_interrupt);
	e = mach_follow(r, &res);
	progress_done();
	if (!e) {
		struct term term = cmd_term(&o->common);
		char *changed = res.why ? follow_file_changed(t, res.why) : NULL;

		if (changed) {
			free(res.why);
			res.why = changed;
		}
		if (o->common.json)
			print_json(t, r, &res);
		else
			print_text(&term, t, images, &res);
		*status = status_of(&res);
		if (o->until && res.end != MACH_END_UNTIL && !*status) {
			tell_missed(t, r, o, &m);
			*status = ERR_NOANSWER;
		}
		mach_result_free(&res);
	}
	mach_close(r);
	return e;
}

static err_t replay(const char *path, const struct options *o, int *status)
{
	struct img_set *images;
	struct trc *t;
	err_t e;

	TRY(trc_open(path, 0, &t));
	images = img_set_new();
	e = follow(t, images, o, status);
	img_set_free(images);
	trc_close(t);
	return e;
}

struct call {
	const char *path;
	struct options *o;
};

static int replay_confined(void *arg)
{
	struct call *c = arg;
	int status = 0;
	err_t e = replay(c->path, c->o, &status);

	return e ? cmd_fail("replay", e) : status;
}

int cmd_replay(int argc, char **argv)
{
	struct options o = { 0 };
	const struct cmd_option options[] = {
		{ "until", 'u', "POSITION", CMD_TEXT, &o.until,
		  "stop at [THREAD:]N, an instruction number, or [THREAD:]0xPC" },
		{ "thread", 't', "THREAD", CMD_TEXT, &o.thread,
		  "the thread that --until refers to (default: the failing one)" },
		{ "timeout", 0, "SECONDS", CMD_NUM, &o.timeout, "give up after SECONDS" },
		{ "native", 0, NULL, CMD_FLAG, &o.is_native,
		  "enforce the found order on the real program: TRACE -- PROGRAM ARGS..." },
		{ "runs", 'n', "N", CMD_UINT, &o.native.runs, "--native: number of runs" },
		{ "alternate", 0, NULL, CMD_FLAG, &o.native.alternate,
		  "--native: enforce the passing order" },
		{ "gdb", 0, NULL, CMD_FLAG, &o.native.gdb,
		  "--native: one run under gdb, stopped at the failure" },
		{ "time", 0, "SECONDS", CMD_NUM, &o.native.time, "--native: start no further run after SECONDS" },
		{ "limit", 0, "SECONDS", CMD_NUM, &o.native.limit, "--native: time limit of one run" },
		EPOCH_OPTION,
		CONFINED_OPTIONS,
		{ 0 },
	};
	const struct cmd_spec spec = {
		.name = "replay", .usage = "[options] TRACE [-- PROGRAM ARGS...]",
		.summary = "Executes a recorded run again: offline, or on the real program.",
		.options = options, .common = &o.common, .min_args = 1, .max_args = CMD_ANY,
	};
	struct cmd_args args;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	if (o.is_native && (o.until || o.thread || o.timeout > 0))
		return cmd_fail("replay", err_new(ERR_USAGE, "--until, --thread and --timeout are not about "
							     "--native (--time and --limit are)"));
	if (o.is_native) {
		o.native.trace = args.v[0];
		o.native.argv = args.v + 1;
		o.native.json = o.common.json;
		return native_replay(&o.native);
	}
	if (o.native.runs || o.native.alternate || o.native.gdb || o.native.time > 0 || o.native.limit > 0)
		return cmd_fail("replay", err_new(ERR_USAGE, "--runs, --alternate, --gdb, --time and --limit "
							     "are about --native"));
	if (args.n != 1)
		return cmd_fail("replay", err_new(ERR_USAGE, "one trace, please (a program only with --native)"));
	return confined_run(&(struct confined){ .command = "replay", .input = args.v[0], .timeout = o.timeout }, replay_confined,
			    &(struct call){ args.v[0], &o });
}
