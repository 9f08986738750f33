/* A program that traces its own child, as debuggers and sandboxes do, in several ways; "fifo": a
 * thread made with a real-time policy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>
#include <errno.h>
#include <sched.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <sys/user.h>
#include <sys/syscall.h>
static void *ff(void *a)
{
	int p;
	struct sched_param s;
	pthread_getschedparam(pthread_self(), &p, &s);
	printf("policy %d prio %d\n", p, s.sched_priority);
	return 0;
}
int main(int c, char **v)
{
	int st;
	pid_t k;
	const char *w = v[1];
	if (!strcmp(w, "fifo")) {
		pthread_attr_t a;
		struct sched_param s = {.sched_priority = 7};
		pthread_t t;
		pthread_attr_init(&a);
		pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&a, SCHED_FIFO);
		pthread_attr_setschedparam(&a, &s);
		int e = pthread_create(&t, &a, ff, 0);
		if (!e)
			pthread_join(t, 0);
		printf("%d\n", e); /* not before: the thread prints, too */
		return 0;
	}
	k = fork();
	if (!k) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		if (!strcmp(w, "exec"))
			execl("/bin/echo", "echo", "hello", NULL);
		raise(SIGSTOP);
		volatile long x = getppid();
		if (!strcmp(w, "kill"))
			for (;;)
				pause();
		if (!strcmp(w, "sig"))
			raise(SIGUSR1);
		if (!strcmp(w, "segv"))
			*(volatile int *)0 = 1;
		_exit(x != 0 ? 4 : 5);
	}
	waitpid(k, &st, 0);
	printf("stop %x\n", st);
	if (!strcmp(w, "step")) {
		int n = 0;
		for (int i = 0; i < 50; i++) {
			ptrace(PTRACE_SINGLESTEP, k, 0, 0);
			if (waitpid(k, &st, 0) < 0 || !WIFSTOPPED(st))
				break;
			n++;
		}
		printf("steps %d\n", n);
		ptrace(PTRACE_CONT, k, 0, 0);
		waitpid(k, &st, 0);
		printf("end %x\n", st);
		return 0;
	}
	if (!strcmp(w, "syscall")) {
		int n = 0, seen = 0;
		for (;;) {
			ptrace(PTRACE_SYSCALL, k, 0, 0);
			if (waitpid(k, &st, 0) < 0 || !WIFSTOPPED(st))
				break;
			struct user_regs_struct r;
			ptrace(PTRACE_GETREGS, k, 0, &r);
			if (r.orig_rax == SYS_getppid)
				seen++;
			if (++n > 5000)
				break;
		}
		printf("getppid %d end %x\n", seen, st);
		return 0;
	}
	if (!strcmp(w, "kill")) {
		kill(k, SIGKILL);
		waitpid(k, &st, 0);
		printf("end %x\n", st);
		return 0;
	}
	if (!strcmp(w, "poke")) {
		static long word = 5;
		ptrace(PTRACE_POKEDATA, k, &word, 77);
		errno = 0;
		printf("peek %ld %d\n", ptrace(PTRACE_PEEKDATA, k, &word, 0), errno);
		ptrace(PTRACE_DETACH, k, 0, 0);
		waitpid(k, &st, 0);
		printf("end %x\n", st);
		return 0;
	}
	for (int i = 0; i < 100; i++) {
		int sig = WIFSTOPPED(st) && WSTOPSIG(st) != SIGSTOP && WSTOPSIG(st) != SIGTRAP
			      ? WSTOPSIG(st)
			      : 0;
		ptrace(PTRACE_CONT, k, 0, sig);
		if (waitpid(k, &st, 0) < 0)
			break;
		printf("st %x\n", st);
		if (!WIFSTOPPED(st))
			break;
	}
	return 0;
}
