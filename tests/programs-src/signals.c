/*
 * What a program can see of signal dispositions, masks and alternate stacks:
 * must be the same with and without the shim.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sigjmp_buf env;
static sem_t sem;
static volatile int count;

static void on_segv(int sig)
{
	siglongjmp(env, sig);
}

static void on_usr1(int sig)
{
	(void)sig;
	count++;
	sem_post(&sem);
}

static const char *name(void (*h)(int))
{
	return h == SIG_DFL ? "default" : h == SIG_IGN ? "ignored" :
	       h == on_segv ? "mine" : "other";
}

static void show_mask(const char *what)
{
	sigset_t s;

	sigprocmask(SIG_BLOCK, NULL, &s);
	printf("%s:", what);
	for (int i = 1; i < 65; i++)
		if (sigismember(&s, i) == 1)
			printf(" %d", i);
	putchar('\n');
}

static void *in_thread(void *arg)
{
	stack_t ss;
	sigset_t all;

	show_mask("inherited");
	sigaltstack(NULL, &ss);
	printf("thread's alternate stack: %d %d\n", ss.ss_flags, ss.ss_sp != NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	show_mask("all");
	return arg;
}

int main(void)
{
	struct sigaction sa = { 0 }, old;
	stack_t ss = { 0 }, os;
	sigset_t set;
	pthread_t th;

	const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP };

	for (unsigned i = 0; i < 7; i++) {
		sigaction(faults[i], NULL, &old);
		printf("%d %s %x\n", faults[i], name(old.sa_handler), (unsigned)old.sa_flags);
	}
	printf("signal: %s", name(signal(SIGSEGV, on_segv)));
	printf(" %s", name(signal(SIGSEGV, SIG_IGN)));
	printf(" %s", name(signal(SIGSEGV, SIG_DFL)));
	printf(" %s\n", name(signal(SIGSEGV, on_segv)));
	if (!sigsetjmp(env, 1))
		*(volatile int *)16 = 1;
	puts("back from SIGSEGV");
	sa.sa_handler = SIG_DFL;
	sigaction(SIGSEGV, &sa, &old);
	printf("sigaction: %s", name(old.sa_handler));
	sigaction(SIGSEGV, NULL, &old);
	printf(" %s\n", name(old.sa_handler));
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	show_mask("blocked");
	pthread_create(&th, NULL, in_thread, NULL);
	pthread_join(th, NULL);
	raise(SIGSEGV);
	sigpending(&set);
	printf("pending %d\n", sigismember(&set, SIGSEGV));
	struct timespec now = { 0, 0 };
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	printf("fetched %d\n", sigtimedwait(&set, NULL, &now));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	show_mask("unblocked");
	sigaltstack(NULL, &os);
	printf("alternate stack: %d %d %zu\n", os.ss_flags, os.ss_sp != NULL, os.ss_size);
	ss.ss_sp = malloc(65536);
	ss.ss_size = 65536;
	printf("set %d", sigaltstack(&ss, &os));
	printf(" %d", os.ss_flags);
	sigaltstack(NULL, &os);
	printf(" %d", os.ss_sp == ss.ss_sp);
	ss.ss_flags = SS_DISABLE;
	printf(" off %d", sigaltstack(&ss, NULL));
	sigaltstack(NULL, &os);
	printf(" %d\n", os.ss_flags);
	sem_init(&sem, 0, 0);
	signal(SIGUSR1, on_usr1);
	for (int i = 0; i < 1000; i++) {
		raise(SIGUSR1);
		sem_wait(&sem);
	}
	printf("handled %d\n", count);
	errno = 0;
	printf("bad signal %d", sigaction(99, NULL, &old));
	printf(" errno %d\n", errno);
	return 0;
}
