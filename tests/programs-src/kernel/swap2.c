#include "k.h"
static ucontext_t m, a, b, c;
static int n;
static char s1[65536], s2[65536];
static void f(int x, int y)
{
	for (int i = 0; i < 3; i++) {
		SAY("f %d %d %d", x, y, n++);
		swapcontext(&a, &b);
	}
}
static void g(int x)
{
	for (int i = 0; i < 3; i++) {
		SAY("g %d %d", x, n++);
		swapcontext(&b, &a);
	}
	setcontext(&m);
}
static jmp_buf jb;
static sigjmp_buf sj;
static volatile int hits;
static void h(int s)
{
	hits++;
	if (hits % 2)
		longjmp(jb, hits);
	else
		siglongjmp(sj, hits);
}
static void sw(int s, siginfo_t *i, void *u)
{
	ucontext_t *x = u;
	n = 0;
	SAY("switch");
	setcontext(&c);
}
static void reg(int s, siginfo_t *i, void *u)
{
	ucontext_t *x = u;
	x->uc_mcontext.gregs[REG_R12] = 777;
	x->uc_mcontext.gregs[REG_EFL] |= 1;
	double *d = (double *)x->uc_mcontext.fpregs->_xmm;
	d[0] = 2.5;
	sigaddset(&x->uc_sigmask, SIGUSR2);
}
int main()
{
	setbuf(stdout, 0);
	getcontext(&a);
	a.uc_stack.ss_sp = s1;
	a.uc_stack.ss_size = sizeof s1;
	a.uc_link = &m;
	makecontext(&a, (void *)f, 2, 5, 6);
	getcontext(&b);
	b.uc_stack.ss_sp = s2;
	b.uc_stack.ss_size = sizeof s2;
	b.uc_link = 0;
	makecontext(&b, (void *)g, 1, 9);
	SAY("%d", swapcontext(&m, &a));
	struct sigaction sa = {.sa_handler = h, .sa_flags = SA_NODEFER};
	sigaction(SIGUSR1, &sa, 0);
	int r;
	for (volatile int i = 0; i < 4; i++) {
		if (i % 2 == 0) {
			if (!(r = setjmp(jb)))
				raise(SIGUSR1);
			else
				SAY("lj %d", r);
		} else {
			if (!(r = sigsetjmp(sj, 1)))
				raise(SIGUSR1);
			else
				SAY("slj %d", r);
		}
	}
	volatile int once = 0;
	getcontext(&c);
	if (!once) {
		once = 1;
		struct sigaction x = {.sa_sigaction = sw, .sa_flags = SA_SIGINFO};
		sigaction(SIGUSR2, &x, 0);
		raise(SIGUSR2);
	}
	sigset_t q;
	sigprocmask(0, 0, &q);
	SAY("blocked %d", sigismember(&q, SIGUSR2));
	struct sigaction x = {.sa_sigaction = reg, .sa_flags = SA_SIGINFO};
	sigaction(SIGTRAP, &x, 0);
	register long v __asm__("r12") = 1;
	double dd = 1;
	__asm__ volatile("movsd %1,%%xmm0; int3; movsd %%xmm0,%1; setc %%al"
			 : "+r"(v), "+m"(dd)::"xmm0", "rax");
	SAY("%ld %g", v, dd);
	sigprocmask(0, 0, &q);
	SAY("blocked %d", sigismember(&q, SIGUSR2));
	return 0;
}
