#include "k.h"
static ucontext_t m, c[3];
static int turn;
static char st[3][65536];
static volatile double acc;
static void co(int id, int n)
{
	for (int i = 0; i < n; i++) {
		SAY("co %d step %d", id, i);
		acc += id * 0.5;
		swapcontext(&c[id], &c[(id + 1) % 3]);
	}
	SAY("end %d", id);
}
static jmp_buf jb;
static sigjmp_buf sj;
static volatile int hits;
static void h(int s)
{
	hits++;
	siglongjmp(sj, hits);
}
static void h2(int s)
{
	hits++;
	longjmp(jb, hits);
}
static ucontext_t sc;
static volatile int sw;
static void hs(int s, siginfo_t *i, void *u)
{
	sw++;
	setcontext(&sc);
}
int main(void)
{
	for (int i = 0; i < 3; i++) {
		getcontext(&c[i]);
		c[i].uc_stack.ss_sp = st[i];
		c[i].uc_stack.ss_size = sizeof st[i];
		c[i].uc_link = &m;
		makecontext(&c[i], (void (*)(void))co, 2, i, 2 + i % 2);
	}
	swapcontext(&m, &c[0]);
	SAY("back %f", acc);
	signal(SIGUSR1, h);
	for (int k = 0; k < 3; k++) {
		int v = sigsetjmp(sj, 1);
		if (!v)
			raise(SIGUSR1);
		SAY("siglongjmp %d", v);
	}
	signal(SIGUSR2, h2);
	struct sigaction sa = {.sa_handler = h2, .sa_flags = SA_NODEFER};
	sigaction(SIGUSR2, &sa, 0);
	int v = setjmp(jb);
	if (v < 6)
		raise(SIGUSR2);
	SAY("longjmp %d", v);
	sigset_t q;
	sigprocmask(0, 0, &q);
	SAY("%d", sigismember(&q, SIGUSR2));
	sa.sa_sigaction = hs;
	sa.sa_flags = SA_SIGINFO;
	sigaction(SIGTERM, &sa, 0);
	getcontext(&sc);
	if (sw < 3)
		raise(SIGTERM);
	SAY("%d", sw);
	return 0;
}
