/* SPDX-License-Identifier: GPL-2.0-or-later */
/* crash_handled WHAT [FLAGS]: a bad pointer, and what the program's own handler makes of it. FLAGS: a alternate stack, r reset
 * the handler, n do not block the signal, R the pointer is bad only in some orders of two threads. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

struct conf {
	int n;
};
static struct conf good = { 1 }, *volatile conf;
static const char *how;
static int volatile sum, handled;
static sigjmp_buf back, probed;

static void probe(int sig)
{
	(void)sig;
	siglongjmp(probed, 1);
}

static int readable(volatile char *p)
{
	if (sigsetjmp(probed, 1))
		return 0;
	(void)*p;
	return 1;
}

static void look_around(const ucontext_t *uc)
{
	struct sigaction a = { .sa_handler = probe, .sa_flags = SA_NODEFER };
	int n = 0;

	sigaction(SIGSEGV, &a, NULL);
	for (long i = 0; i < 16; i++)
		n += readable((char *)(i * 4096));
	printf("readable %d\n", n + readable((char *)uc->uc_mcontext.gregs[REG_RSP]));
	fflush(stdout);
}

static void handler(int sig, siginfo_t *si, void *context)
{
	int is_last = ++handled >= 40;

	(void)si;
	if (!strcmp(how, "longjmp") || !strcmp(how, "twice") || (!strcmp(how, "often") && !is_last))
		siglongjmp(back, 1);
	if (!strcmp(how, "map")) {
		mmap((void *)0x10000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		return;
	}
	if (!strcmp(how, "exit0"))
		_exit(0);
	if (!strcmp(how, "exit") || !strcmp(how, "often"))
		exit(3);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "again"))
		*(volatile int *)8 = 1;
	if (!strcmp(how, "exec"))
		execl("/bin/true", "true", (char *)NULL);
	if (!strcmp(how, "probe"))
		look_around(context);
	signal(sig, SIG_DFL);
	if (!strcmp(how, "tgkill"))
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), sig);
	else if (strcmp(how, "return"))
		raise(sig);
}

static void *reads(void *arg)
{
	for (int i = 0; i < 200; i++)
		if (conf)
			sum += conf->n;
	return arg;
}

static void *changes(void *arg)
{
	for (int i = 0; i < 100; i++) {
		conf = NULL;
		sum--;
		conf = &good;
	}
	return arg;
}

static int race(void)
{
	pthread_t t[2];

	conf = &good;
	pthread_create(&t[0], NULL, reads, NULL);
	pthread_create(&t[1], NULL, changes, NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	static char alternate[65536];
	stack_t ss = { .ss_sp = alternate, .ss_size = sizeof alternate };
	const char *flags = argc > 2 ? argv[2] : "";
	struct sigaction a = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	how = argv[1];
	a.sa_flags |= (strchr(flags, 'a') ? SA_ONSTACK : 0) | (strchr(flags, 'r') ? (int)SA_RESETHAND : 0) |
		      (strchr(flags, 'n') ? SA_NODEFER : 0);
	sigaltstack(&ss, NULL);
	sigaction(SIGSEGV, &a, NULL);
	if (strchr(flags, 'R'))
		return race();
	sigsetjmp(back, 1);
	if (!handled || !strcmp(how, "often"))
		sum += ((struct conf *)0x10000)->n;
	printf("goes on, handled %d\n", handled);
	fflush(stdout);
	if (!strcmp(how, "twice")) { /* the second one is not handled */
		signal(SIGSEGV, SIG_DFL);
		sum += ((struct conf *)0x20000)->n;
	}
	return 0;
}
