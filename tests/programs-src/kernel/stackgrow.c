#include "k.h"
static sigjmp_buf j;
static volatile int deepest;
static char alt[65536];
static void h(int s, siginfo_t *i, void *u)
{
	siglongjmp(j, s);
}
static int __attribute__((noinline)) deep(int n)
{
	volatile char b[4000];
	b[0] = n;
	deepest = n;
	return deep(n + 1) + b[0];
}
static int __attribute__((noinline)) bounded(int n)
{
	volatile char b[5000];
	b[0] = n;
	b[4999] = 1;
	return n ? bounded(n - 1) + b[0] + b[4999] : 0;
}
int main(void)
{
	stack_t st = {alt, 0, sizeof alt};
	sigaltstack(&st, 0);
	struct sigaction sa = {.sa_sigaction = h, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigaction(SIGSEGV, &sa, 0);
	struct rlimit l;
	getrlimit(RLIMIT_STACK, &l);
	l.rlim_cur = 1 << 20;
	SAY("%d", setrlimit(RLIMIT_STACK, &l));
	if (!sigsetjmp(j, 1))
		deep(0);
	SAY("%d", deepest > 200 && deepest < 300);
	l.rlim_cur = 4 << 20;
	setrlimit(RLIMIT_STACK, &l);
	if (!sigsetjmp(j, 1))
		deep(0);
	SAY("%d", deepest > 900 && deepest < 1100);
	SAY("%d", bounded(500));
	l.rlim_cur = 2 << 20;
	setrlimit(RLIMIT_STACK, &l);
	SAY("%d", bounded(300));
	if (!sigsetjmp(j, 1))
		deep(0);
	SAY("%d", deepest > 900 && deepest < 1100);
	return 0;
}
