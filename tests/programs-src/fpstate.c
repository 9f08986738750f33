/*
 * Floating-point state around signal handlers: the kernel gives a handler a fresh one and the interrupted code its own
 * back. Prints what a handler finds and computes, for handlers that interrupt anything: a loop, a system call, a
 * fault, another handler; and what is there afterwards.
 */
#include <fenv.h>
#include <immintrin.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int nested, seen;
static sigjmp_buf out;

static unsigned mxcsr(void)
{
	return _mm_getcsr();
}

static unsigned control(void)
{
	uint16_t cw;

	__asm__ volatile("fnstcw %0" : "=m"(cw));
	return cw;
}

/* Registers in use on the x87 stack, from the full tag word. */
static int depth(void)
{
	struct { uint32_t w[7]; } env;
	int n = 0;

	__asm__ volatile("fnstenv %0\n\tfldenv %0" : "+m"(env));
	for (int i = 0; i < 8; i++)
		n += (env.w[2] >> 2 * i & 3) != 3;
	return n;
}

static uint64_t vectors(void)
{
	uint64_t x[32], sum = 0;

#define PUT(i) __asm__ volatile("movdqu %%xmm" #i ", %0" : "=m"(x[2 * i]), "=m"(x[2 * i + 1]));
	PUT(0) PUT(1) PUT(2) PUT(3) PUT(4) PUT(5) PUT(6) PUT(7)
	PUT(8) PUT(9) PUT(10) PUT(11) PUT(12) PUT(13) PUT(14) PUT(15)
	for (int i = 0; i < 32; i++)
		sum += x[i];
	return sum;
}

static volatile double third = 3, one = 1;
static volatile long double lthird = 3, lone = 1;

static void say(const char *where)
{
	double d = one / third;
	long double l = lone / lthird;
	uint64_t bits;
	uint64_t lbits;

	memcpy(&bits, &d, 8);
	memcpy(&lbits, &l, 8);
	printf("%s: mxcsr %#x control %#x depth %d 1/3 %#lx %#lx rint %ld\n", where, mxcsr() & ~0x3fu, control(),
	       depth(), (long)bits, (long)lbits, (long)__builtin_rint(2.5 * one));
}

static void handler(int sig, siginfo_t *info, void *context)
{
	uint64_t v = vectors();
	char where[40];

	(void)info, (void)context;
	snprintf(where, sizeof where, "in handler of %d, vectors %ld", sig, (long)v);
	say(where);
	_mm_setcsr(_mm_getcsr() | 0x8000); /* must not leak out */
	fesetround(FE_UPWARD);
	if (sig == SIGUSR1 && nested++ == 0) {
		raise(SIGUSR2);
		say("after the nested one");
	}
	seen++;
	if (sig == SIGSEGV)
		siglongjmp(out, 1);
}

static void changes(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig, (void)info;
	uc->uc_mcontext.fpregs->mxcsr = 0x1f80 | 0x6000;
	uc->uc_mcontext.fpregs->cwd = 0x0c7f;
	uc->uc_mcontext.fpregs->_xmm[7].element[0] = 12345;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGALRM, &sa, NULL);
	fesetround(FE_DOWNWARD);
	say("before");
	__asm__ volatile("fld1\n\tfldpi\n\tfldz");
	_mm_setcsr(_mm_getcsr() | 0x8040);
	say("with three on the stack");
	raise(SIGUSR1);
	say("after a call");
	struct itimerval soon = { .it_value.tv_usec = 2000 };
	setitimer(ITIMER_REAL, &soon, NULL);
	for (uint64_t i = 0; seen < 3; i++)
		__asm__ volatile("pcmpeqd %%xmm3, %%xmm3\n\tpcmpeqd %%xmm15, %%xmm15" : : : "xmm3", "xmm15");
	say("after a loop");
	if (!sigsetjmp(out, 1))
		*(volatile int *)0 = 1;
	printf("after a fault: mxcsr %#x control %#x\n", mxcsr() & ~0x3fu, control());
	sa.sa_sigaction = changes;
	sigaction(SIGUSR1, &sa, NULL);
	kill(getpid(), SIGUSR1);
	printf("a handler changed it: mxcsr %#x control %#x\n", mxcsr() & ~0x3fu, control());
	return 0;
}
