#include "k.h"
static volatile int n;
static void h(int s, siginfo_t *i, void *u)
{
	ucontext_t *c = u;
	n++;
	SAY("trap code %d rip byte %x", i->si_code,
	    ((unsigned char *)c->uc_mcontext.gregs[REG_RIP])[-1]);
}
static volatile int steps;
static void st(int s, siginfo_t *i, void *u)
{
	steps++;
	ucontext_t *c = u;
	if (steps >= 5)
		c->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}
static void ill(int s, siginfo_t *i, void *u)
{
	ucontext_t *c = u;
	SAY("ill code %d addr==rip %d", i->si_code,
	    i->si_addr == (void *)c->uc_mcontext.gregs[REG_RIP]);
	c->uc_mcontext.gregs[REG_RIP] += 2;
}
static void segv(int s, siginfo_t *i, void *u)
{
	ucontext_t *c = u;
	SAY("segv code %d", i->si_code);
	c->uc_mcontext.gregs[REG_RIP] += 1;
}
int main(void)
{
	struct sigaction sa = {.sa_sigaction = h, .sa_flags = SA_SIGINFO};
	sigaction(SIGTRAP, &sa, 0);
	__asm__ volatile("int3");
	__asm__ volatile(".byte 0xcd, 0x03");
	SAY("%d", n);
	sa.sa_sigaction = ill;
	sigaction(SIGILL, &sa, 0);
	__asm__ volatile("ud2");
	sa.sa_sigaction = segv;
	sigaction(SIGSEGV, &sa, 0);
	__asm__ volatile("hlt");
	__asm__ volatile("cli");
	sa.sa_sigaction = st;
	sigaction(SIGTRAP, &sa, 0);
	raise(SIGTRAP);
	SAY("%d", steps);
	long v = 0;
	__asm__ volatile("mov $100, %%ecx\n1: inc %0\n loop 1b" : "+r"(v)::"rcx");
	SAY("%ld", v);
	return 0;
}
