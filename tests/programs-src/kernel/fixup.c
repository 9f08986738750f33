#include "k.h"
#include <fenv.h>
static volatile int n;
static char *pg;
static void seg(int s, siginfo_t *i, void *u)
{
	n++;
	if (i->si_code == SEGV_ACCERR || i->si_code == SEGV_MAPERR) {
		char *a = (char *)((uintptr_t)i->si_addr & ~4095ul);
		SAY("code %d off %ld err %llx", i->si_code, (long)((char *)i->si_addr - pg),
		    ((ucontext_t *)u)->uc_mcontext.gregs[REG_ERR]);
		mmap(a, 4096, 3, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	} else {
		SAY("code %d addr %p", i->si_code, i->si_addr);
		((ucontext_t *)u)->uc_mcontext.gregs[REG_RAX] = (long)pg;
	}
}
static void fpe(int s, siginfo_t *i, void *u)
{
	ucontext_t *c = u;
	SAY("fpe %d", i->si_code);
	if (i->si_code == FPE_INTDIV || i->si_code == FPE_INTOVF)
		c->uc_mcontext.gregs[REG_RCX] = 3, c->uc_mcontext.gregs[REG_RDX] = 0;
	else {
		c->uc_mcontext.fpregs->mxcsr |= 0x1f80;
		c->uc_mcontext.fpregs->mxcsr &= ~0x3f;
		c->uc_mcontext.fpregs->cwd |= 0x3f;
		c->uc_mcontext.fpregs->swd &= ~0x80ff;
	}
}
static void bus(int s, siginfo_t *i, void *u)
{
	SAY("bus %d off %ld", i->si_code, (long)((char *)i->si_addr - pg));
	((ucontext_t *)u)->uc_mcontext.gregs[REG_RAX] = (long)&n;
}
int main()
{
	setbuf(stdout, 0);
	struct sigaction sa = {.sa_sigaction = seg, .sa_flags = SA_SIGINFO};
	sigaction(SIGSEGV, &sa, 0);
	sa.sa_sigaction = fpe;
	sigaction(SIGFPE, &sa, 0);
	sa.sa_sigaction = bus;
	sigaction(SIGBUS, &sa, 0);
	pg = mmap(0, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pg[100] = 1;
	pg[4096 * 2 - 2] = 0;
	*(volatile long *)(pg + 4096 * 3 - 4) = 5;
	SAY("%d", n);
	memset(pg + 4096 * 4, 7, 4096 * 2 + 10);
	SAY("%d %d", n, pg[4096 * 6 + 9]);
	char b[300];
	memcpy(b, pg + 4096 * 8 - 100, 300);
	SAY("n %d", n);
	munmap(pg + 4096 * 10, 4096);
	pg[4096 * 10]++;
	mprotect(pg, 4096, PROT_READ);
	pg[5] = 3;
	SAY("%d", n);
	volatile long q = 0x8000000000000000;
	__asm__ volatile("mov (%%rax),%%ecx" ::"a"(q) : "rcx");
	__asm__ volatile("movaps (%%rax),%%xmm0" ::"a"(pg + 1) : "xmm0");
	R(read(0, mmap(0, 4096, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1));
	int a = 10, d = 0;
	__asm__ volatile("mov %1,%%eax; xor %%edx,%%edx; mov %2,%%ecx; idiv %%ecx; mov %%eax,%0"
			 : "=r"(a)
			 : "r"(a), "r"(d)
			 : "rax", "rcx", "rdx");
	SAY("div %d", a);
	__asm__ volatile("mov $0x80000000,%%eax; cdq; mov $-1,%%ecx; idiv %%ecx; mov %%eax,%0"
			 : "=r"(a)::"rax", "rcx", "rdx");
	SAY("ovf %d", a);
	feenableexcept(FE_DIVBYZERO);
	volatile double z = 0, o = 1;
	z = o / z;
	SAY("%g", z);
	feclearexcept(FE_ALL_EXCEPT);
	feenableexcept(FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT);
	z = o / 3;
	SAY("%.3f", z);
	feenableexcept(FE_OVERFLOW);
	feclearexcept(FE_ALL_EXCEPT);
	volatile double big = 1e308;
	z = big * 10;
	SAY("%g", z);
	feclearexcept(FE_ALL_EXCEPT);
	feenableexcept(FE_INVALID);
	volatile long double l = 0;
	l = l / l;
	__asm__ volatile("fwait");
	SAY("x87 %d", l != l);
	SAY("exc %x", fetestexcept(FE_ALL_EXCEPT) != 0);
	int f = open("bf", O_RDWR | O_CREAT | O_TRUNC, 0600);
	ftruncate(f, 4096);
	char *m = mmap(0, 8192, 3, MAP_SHARED, f, 0);
	pg = m;
	__asm__ volatile("movb $1,(%%rax)" ::"a"(m + 5000) : "memory");
	ftruncate(f, 0);
	__asm__ volatile("movb (%%rax),%%cl" ::"a"(m + 10) : "rcx", "memory");
	SAY("%d", n);
	return 0;
}
