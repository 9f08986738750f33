/* csched: find the command, run it. */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/nearest.h"

#include "commit.h" /* made by the Makefile */

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command {
	const char *name;
	cmd_function *run;
	const char *summary;
} commands[] = {
	{ "run", cmd_run, "record a program; ends exactly as the program ends" },
	{ "explain", cmd_explain, "say why a recorded run failed, and in which order it passes" },
	{ "hunt", cmd_hunt, "run a program under perturbation until it fails, then explain" },
	{ "explore", cmd_explore, "execute orders that are guaranteed to be new, until one fails or none is left" },
	{ "merge", cmd_merge, "combine what the shards of a hunt found" },
	{ "test", cmd_test, "hunt in each test of a suite: ctest, meson, googletest or a script" },
	{ "replay", cmd_replay, "execute a recorded run again, offline or on the real program" },
	{ "debug", cmd_debug, "debug a recorded run with gdb, forwards and backwards" },
	{ "info", cmd_info, "what is in a trace" },
	{ "dump", cmd_dump, "every record of a trace, readable" },
	{ "trace", cmd_trace, "print the symbolic traces of a recorded run" },
	{ "solve", cmd_solve, "schedule, root cause and passing order of a symbolic trace" },
	{ "testgen", cmd_testgen, "generate concurrent tests for a library, and find those that fail" },
	{ "reproduce", cmd_reproduce, "find a test and an order that fail with a given crash stack" },
	{ "export", cmd_export, "a trace for other tools: a Chrome trace, a core dump" },
	{ "save", cmd_save, "save what a running program's flight recorder holds, as a trace" },
	{ "pack", cmd_pack, "pack a trace into one self-contained file" },
	{ "doctor", cmd_doctor, "what will and will not work on this machine, and why" },
};
#define NCOMMANDS (sizeof commands / sizeof *commands)

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < NCOMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int help(void)
{
	puts("usage: csched COMMAND [options] ...\n\n"
	     "csched records the threads of an unmodified program and explains its\n"
	     "concurrency bugs: which orderings make it fail, and in which it passes.\n\n"
	     "commands:");
	for (size_t i = 0; i < NCOMMANDS; i++)
		printf("  %-9s %s\n", commands[i].name, commands[i].summary);
	puts("\noptions:\n"
	     "  --help     this text; csched COMMAND --help describes a command\n"
	     "  --version  the version");
	return 0;
}

static int unknown(const char *name)
{
	struct nearest near;

	nearest_begin(&near, name, strlen(name));
	for (size_t i = 0; i < NCOMMANDS; i++)
		nearest_try(&near, commands[i].name);
	if (near.found)
		fprintf(stderr, "csched: no command '%s' (did you mean %s?); see csched --help\n", name, near.found);
	else
		fprintf(stderr, "csched: no command '%s'; see csched --help\n", name);
	return ERR_USAGE;
}

static int version(void)
{
	puts(*CSCHED_COMMIT ? "csched " CSCHED_VERSION " (" CSCHED_COMMIT ")" : "csched " CSCHED_VERSION);
	return 0;
}

/* `csched help info` is `csched info --help`. */
static int run_help(int argc, char **argv)
{
	const struct command *c = argc > 1 ? find_command(argv[1]) : NULL;
	char *args[] = { argc > 1 ? argv[1] : NULL, (char *)"--help", NULL };

	if (argc < 2)
		return help();
	return c ? c->run(2, args) : unknown(argv[1]);
}

static int run_command(int argc, char **argv)
{
	const struct command *c = find_command(argv[0]);

	if (c)
		return c->run(argc, argv);
	if (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h"))
		return help();
	if (!strcmp(argv[0], "--version") || !strcmp(argv[0], "-V"))
		return version();
	if (!strcmp(argv[0], "help"))
		return run_help(argc, argv);
	return unknown(argv[0]);
}

/* An answer that did not reach its reader was not given. */
static int flushed(int status)
{
	if (fflush(stdout) || ferror(stdout)) {
		perror("csched: standard output");
		return status ? status : ERR_INTERNAL;
	}
	return status;
}

static int usage(void)
{
	help();
	return ERR_USAGE;
}

/* Traces are mapped: one that is cut shorter while we read it ends here. */
static void trace_vanished(int signal)
{
	static const char text[] = "csched: a file was truncated while it was read\n";

	(void)signal;
	_exit(write(2, text, sizeof text - 1) < 0 ? ERR_INTERNAL : ERR_INPUT);
}

/*
 * A standard descriptor that is closed would become that of the next file opened, and a report or a
 * message would be written into it. What takes its place refuses to be used, and is gone again in
 * a program that `csched run` becomes.
 */
static void hold_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	hold_standard_descriptors();
	setlocale(LC_CTYPE, "");
	/* A program that `csched run` becomes inherits ignored signals. */
	if (signal(SIGBUS, trace_vanished) == SIG_IGN)
		signal(SIGBUS, SIG_IGN);
	return flushed(argc > 1 ? run_command(argc - 1, argv + 1) : usage());
}
