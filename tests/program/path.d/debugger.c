/*
 * A debugger of one breakpoint, and what it debugs, itself with an argument: linked at a fixed
 * address, so that one knows where the other's function is.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) int met(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 2;
}

/* Goes on until a signal; true: it is a SIGTRAP. */
static int goes_on(pid_t pid, int *status)
{
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	waitpid(pid, status, 0);
	return WIFSTOPPED(*status) && WSTOPSIG(*status) == SIGTRAP;
}

int main(int argc, char **argv)
{
	unsigned long at = (unsigned long)met;
	struct user_regs_struct regs;
	pid_t pid;
	int status;

	if (argc > 1) {
		int n = met(argc);

		return met(n);
	}
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(argv[0], argv[0], "debugged", (char *)NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0); /* at the exec */
	long code = ptrace(PTRACE_PEEKTEXT, pid, at, NULL);

	ptrace(PTRACE_POKETEXT, pid, at, (code & ~0xffl) | 0xcc);
	if (!goes_on(pid, &status)) {
		printf("status %x\n", (unsigned)status);
		return 1;
	}
	ptrace(PTRACE_GETREGS, pid, NULL, &regs);
	printf("stopped behind it: %d, argument %lld\n", regs.rip == at + 1, regs.rdi);
	ptrace(PTRACE_POKETEXT, pid, at, code);
	regs.rip = at;
	ptrace(PTRACE_SETREGS, pid, NULL, &regs);
	goes_on(pid, &status);
	printf("ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	return 0;
}
