#include "analyzer/cmd/native_gdb.h"

#include "analyzer/hunt/child.h"
#include "analyzer/hunt/files.h"
#include "analyzer/hunt/interrupt.h"
#include "analyzer/hunt/native.h"
#include "analyzer/launch.h"
#include "common/strbuf.h"
#include "common/vec.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * At a failure the shim calls csched_at_failure(kind, regs), and regs
 * is the program's own registers: with them in place gdb shows the program's
 * stack, because return addresses are never changed. A SIGSEGV before that is
 * the translator's.
 */
static void gdb_registers(struct strbuf *script)
{
	static const char *const names[] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8",
					     "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip" };

	/* At its first instruction arguments are in registers: that works in a library without debug information, too. */
	strbuf_str(script, "set $csched = (unsigned long *)$rsi\nset $csched_kind = (int)$rdi\n");
	/* What the program reports by a call is known by that call's return address. */
	strbuf_fmt(script, "set $csched_back = $csched_kind == %d || $csched_kind == %d\n", TRC_FAIL_ASSERT, TRC_FAIL_USER);
	/* rsp moves the frame gdb looks at: everything is fetched first. */
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		strbuf_fmt(script, "set $csched_%s = $csched[%zu]\n", names[i], i);
	strbuf_str(script, "set $csched_rip = $csched_rip - $csched_back\n");
	/* Of such a call only its frame is told: there lies the caller's rbp, and behind the return address its stack. */
	strbuf_str(script, "set $csched_rbp = $csched_back ? *(unsigned long *)$csched_rsp : $csched_rbp\n"
			   "set $csched_rsp = $csched_rsp + 16 * $csched_back\n");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		strbuf_fmt(script, "set $%s = $csched_%s\n", names[i], names[i]);
}

/*
 * Of a process and its child gdb goes on with one. process: the child that failed, "2.1" for the first one
 * of the second; at the fork that makes it gdb changes over, by a step.
 */
static void gdb_run(struct strbuf *script, const char *process)
{
	const char *run = "run";

	if (process && *process)
		strbuf_str(script, "catch fork\nset $csched_fork = $bpnum\n");
	for (const char *p = process; p && *p; p += *p == '.') {
		char *end;
		unsigned long which = strtoul(p, &end, 10);

		if (end == p)
			break;
		strbuf_fmt(script, "ignore $csched_fork %lu\n%s\nset follow-fork-mode child\nstepi\n"
				   "set follow-fork-mode parent\n", which - 1, run);
		run = "continue";
		p = end;
	}
	if (process && *process)
		strbuf_str(script, "delete $csched_fork\n");
	strbuf_fmt(script, "%s\n", run);
}

static err_t write_script(const char *path, const char *dir, const char *shim, const char *schedule,
			  const struct trc *t)
{
	struct strbuf options = { 0 }, script = { 0 };
	char *preload = launch_preload(shim);
	FILE *f = fopen(path, "wxe"); /* in a directory made for it */

	native_failure_options(t, &options);
	launch_options_given(&options);
	launch_option(&options, "schedule", schedule);
	launch_option(&options, "deadlock", "abort");
	launch_option(&options, "quiet", "1");
	launch_option(&options, "dir", dir);
	strbuf_fmt(&script, "set startup-with-shell off\nset confirm off\n"
			    "set environment CSCHED_OPTIONS %s\nset environment LD_PRELOAD %s\n"
			    "handle SIGSEGV nostop noprint pass\n"
			    "set breakpoint pending on\nbreak csched_at_failure\n", options.s, preload);
	gdb_run(&script, trc_identity(t, "process"));
	gdb_registers(&script);
	strbuf_str(&script, "echo csched: the failure, in the program's own registers\\n\nbacktrace\n");
	bool good = f && fputs(script.s, f) >= 0;
	if (f && fclose(f))
		good = false;
	strbuf_free(&options);
	strbuf_free(&script);
	free(preload);
	return good ? NULL : err_errno("%s", path);
}

static err_t wait_for_gdb(pid_t pid)
{
	int ended = 0;

	/* ^C is gdb's. */
	signal(SIGINT, SIG_IGN);
	while (waitpid(pid, &ended, 0) < 0) {
		if (errno != EINTR)
			return err_errno("gdb");
		/* It ends the program, too. */
		if (interrupt_pending())
			kill(pid, SIGTERM);
	}
	if (WIFEXITED(ended) && WEXITSTATUS(ended) == 127)
		return err_new(ERR_NOANSWER, "gdb could not be started; is it installed?");
	return NULL;
}

/* gdb runs programs, not scripts: the one that failed can be named instead. */
static err_t check_script(const char *path, const struct trc *t)
{
	char start[2] = "";
	FILE *f = fopen(path, "re");
	bool script = f && fread(start, 1, sizeof start, f) == sizeof start && !memcmp(start, "#!", sizeof start);
	const char *recorded = trc_identity(t, "program");

	if (f)
		fclose(f);
	return script ? err_new(ERR_USAGE, "%s is a script, which gdb cannot run: name what failed, %s, and its "
					   "arguments", path, recorded ? recorded : "the program it starts") : NULL;
}

err_t native_gdb(char **program, const char *shim, const char *schedule, const struct trc *t)
{
	char dir[4096];
	VEC(char *) argv = { 0 };

	TRY(check_script(program[0], t));
	TRY(files_make_work("csched-gdb", dir, sizeof dir));
	char *script = xasprintf("%s/script", dir);
	err_t e = write_script(script, dir, shim, schedule, t);
	char *fixed[] = { (char *)"gdb", (char *)"-q", (char *)"-x", script, (char *)"--args" };
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		vec_push(&argv, fixed[i]);
	for (char **a = program; *a; a++)
		vec_push(&argv, *a);
	vec_push(&argv, NULL);
	child_adopt_orphans();
	pid_t pid = e ? -1 : fork();
	if (!pid) {
		execvp("gdb", argv.v);
		_exit(127);
	}
	if (!e)
		e = pid < 0 ? err_errno("fork") : wait_for_gdb(pid);
	child_end_orphans();
	vec_free(&argv);
	free(script);
	files_remove_tree(dir);
	return e;
}
