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
int main(void)
{
	stack_t st = {alt, 0, sizeof alt};
	sigaltstack(&st, 0);
	struct sigaction sa = {.sa_sigaction = h, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigaction(SIGSEGV, &sa, 0);
	char *sp = __builtin_frame_address(0);
	char *at = (char *)(((uintptr_t)sp - (3 << 20)) & ~4095ul);
	void *m = mmap(at, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	SAY("%d", m == at);
	if (!sigsetjmp(j, 1))
		deep(0);
	SAY("%d", deepest > 400 && deepest < 700);
	munmap(at, 4096);
	if (!sigsetjmp(j, 1))
		deep(0);
	SAY("%d", deepest > 1500);
	return 0;
}
