#include "k.h"
#include <fenv.h>
#include <math.h>
#pragma STDC FENV_ACCESS ON
static sigjmp_buf j;
static volatile double z = 0, one = 1, three = 3;
static void fpe(int s, siginfo_t *i, void *u)
{
	SAY("fpe code %d", i->si_code);
	siglongjmp(j, 1);
}
static void round_(int s, siginfo_t *i, void *u)
{
	ucontext_t *c = u;
	SAY("in handler %d %a mxcsr %x", fegetround(), one / three,
	    c->uc_mcontext.fpregs->mxcsr & 0x7f80);
	fesetround(FE_UPWARD);
	c->uc_mcontext.fpregs->mxcsr ^= 0x4000;
	c->uc_mcontext.fpregs->_xmm[15].element[0] ^= 1;
}
int main(void)
{
	struct sigaction a = {.sa_sigaction = fpe, .sa_flags = SA_SIGINFO | SA_NODEFER};
	sigaction(SIGFPE, &a, 0);
	a.sa_sigaction = round_;
	sigaction(SIGUSR1, &a, 0);
	feenableexcept(FE_DIVBYZERO);
	if (!sigsetjmp(j, 1))
		SAY("%f", one / z);
	feclearexcept(FE_ALL_EXCEPT);
	fedisableexcept(FE_ALL_EXCEPT);
	SAY("%f %x", one / z, fetestexcept(FE_ALL_EXCEPT));
	volatile int iz = 0;
	if (!sigsetjmp(j, 1))
		SAY("%d", 3 / iz);
	volatile int mn = -2147483647 - 1, m1 = -1;
	if (!sigsetjmp(j, 1))
		SAY("%d", mn / m1);
	fesetround(FE_DOWNWARD);
	SAY("%a", one / three);
	raise(SIGUSR1);
	SAY("%d %a", fegetround(), one / three);
	fesetround(FE_TONEAREST);
	unsigned q[4] = {1, 2, 3, 4}, o[4];
	long pid = getpid(), tid = gettid();
	__asm__ volatile("movdqu %1, %%xmm15\n mov $234, %%eax\n mov %2, %%rdi\n mov %3, %%rsi\n "
			 "mov $10, %%edx\n syscall\n movdqu %%xmm15, %0"
			 : "=m"(o)
			 : "m"(q), "r"(pid), "r"(tid)
			 : "rax", "rcx", "r11", "rdi", "rsi", "rdx", "xmm15", "memory");
	SAY("%u %u %u %u", o[0], o[1], o[2], o[3]);
	feenableexcept(FE_INVALID);
	if (!sigsetjmp(j, 1))
		SAY("%f", sqrt(-one));
	feenableexcept(FE_OVERFLOW);
	fedisableexcept(FE_INVALID);
	long double L = 1e4000L;
	volatile double d;
	if (!sigsetjmp(j, 1)) {
		volatile double big = 1e308;
		d = big * 10;
		SAY("%f", d);
	}
	fesetenv(FE_DFL_ENV);
	SAY("%La", L / 3);
	return 0;
}
