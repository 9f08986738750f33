/* A program with its own crash handler: crash_handler WHAT-IT-DOES HOW-IT-CRASHES. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <execinfo.h>
#include <ucontext.h>
#include <setjmp.h>
#include <sys/syscall.h>
#include <pthread.h>
static sigjmp_buf jb;
static void probe(int s)
{
	siglongjmp(jb, 1);
}
static void crash(int sig, siginfo_t *si, void *u)
{
	ucontext_t *uc = u;
	void *b[50];
	int n = backtrace(b, 50);
	printf("crash %d code %d frames %d\n", sig, si->si_code, n > 2);
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = probe;
	a.sa_flags = SA_NODEFER;
	sigaction(SIGSEGV, &a, 0);
	sigaction(SIGBUS, &a, 0);
	int ok = 0, bad = 0;
	for (int i = 0; i < 20; i++) {
		volatile char *p = (i % 2) ? (char *)uc->uc_mcontext.gregs[REG_RSP] + i * 8
					   : (char *)(long)(i * 4096);
		if (!sigsetjmp(jb, 1)) {
			(void)*p;
			ok++;
		} else
			bad++;
	}
	printf("probe %d %d\n", ok, bad);
	/* call the faulting pc like redis's bug report does for eip==NULL? */
	if (!sigsetjmp(jb, 1))
		((void (*)(void))0)();
	else
		puts("jump survived");
	fflush(stdout);
	memset(&a, 0, sizeof a);
	a.sa_handler = SIG_DFL;
	a.sa_flags = SA_NODEFER | SA_RESETHAND;
	sigaction(sig, &a, 0);
	kill(getpid(), sig);
}
/* As servers' crash reports do: every page of anonymous writable memory is overwritten and
 * restored. */
static void memory(int sig)
{
	static char saved[4096];
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from[500], to[500], n = 0, bad = 0;
	char line[600], *volatile skip = saved;
	while (n < 500 && fgets(line, sizeof line, f))
		if (strstr(line, " 00:00 ") && strstr(line, "rw") && !strstr(line, "stack") &&
		    !strstr(line, "heap"))
			n += sscanf(line, "%lx-%lx", &from[n], &to[n]) == 2;
	fclose(f);
	for (unsigned long i = 0; i < n; i++)
		for (unsigned long at = from[i]; at < to[i] && at < from[i] + (64 << 20);
		     at += 4096) {
			char *p = (char *)at;
			if (p < skip + 8192 && skip < p + 8192)
				continue;
			__builtin_memcpy(saved, p, 4096);
			for (int k = 0; k < 4096; k++)
				((volatile char *)p)[k] = (char)k;
			for (int k = 0; k < 4096; k++)
				bad += ((volatile char *)p)[k] != (char)k;
			for (int k = 0; k < 4096; k++)
				((volatile char *)p)[k] = saved[k];
		}
	printf("memory: some %d, bad %lu\n", n > 0, bad);
	fflush(stdout);
	signal(sig, SIG_DFL);
	kill(getpid(), sig);
}
static void crash_exit(int sig)
{
	static const char m[] = "handler exits\n";
	write(1, m, sizeof m - 1);
	_exit(17);
}
static void crash_abort(int sig)
{
	puts("handler aborts");
	fflush(stdout);
	abort();
}
static void chain(int sig, siginfo_t *si, void *u)
{
	puts("chained");
	fflush(stdout);
	signal(sig, SIG_DFL);
}
static void skip(int sig, siginfo_t *si, void *u)
{
	((ucontext_t *)u)->uc_mcontext.gregs[REG_RIP] += 2;
}
static void *th(void *a)
{
	if (*(char *)a == 'k')
		pthread_kill(pthread_self(), SIGSEGV);
	else
		*(volatile int *)0 = 1;
	return 0;
}
int main(int c, char **v)
{
	const char *h = v[1], *w = v[2];
	struct sigaction a;
	memset(&a, 0, sizeof a);
	sigemptyset(&a.sa_mask);
	a.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESETHAND;
	static char alt[65536];
	stack_t ss = {.ss_sp = alt, .ss_size = sizeof alt};
	if (!strcmp(h, "report"))
		a.sa_sigaction = crash;
	if (!strcmp(h, "exit"))
		a.sa_handler = crash_exit;
	if (!strcmp(h, "memory"))
		a.sa_handler = memory;
	if (!strcmp(h, "abort"))
		a.sa_handler = crash_abort;
	if (!strcmp(h, "chain")) {
		a.sa_sigaction = chain;
		a.sa_flags = SA_SIGINFO;
	}
	if (!strcmp(h, "chainalt")) {
		a.sa_sigaction = chain;
		a.sa_flags = SA_SIGINFO | SA_ONSTACK;
		sigaltstack(&ss, 0);
	}
	int s[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	for (int i = 0; i < 5; i++)
		sigaction(s[i], &a, 0);
	if (!strcmp(w, "null"))
		*(volatile int *)0 = 1;
	if (!strcmp(w, "kill"))
		kill(getpid(), SIGSEGV);
	if (!strcmp(w, "jump"))
		((void (*)(void))8)();
	if (!strcmp(w, "abort"))
		abort();
	if (!strcmp(w, "div")) {
		volatile int z = 0;
		z = 1 / z;
	}
	if (!strcmp(w, "ill"))
		__asm__("ud2");
	if (!strcmp(w, "thread") || !strcmp(w, "kthread")) {
		pthread_t t;
		pthread_create(&t, 0, th, (void *)w);
		pthread_join(t, 0);
	}
	puts("end");
	return 0;
}
