#include "k.h"
static void h(int s, siginfo_t *i, void *u)
{
	ucontext_t *c = u;
	unsigned char *p = (void *)c->uc_mcontext.gregs[REG_RIP];
	SAY("sig %d code %d err %lx trap %ld at %02x addr==rip %d", s, i->si_code,
	    (long)c->uc_mcontext.gregs[REG_ERR], (long)c->uc_mcontext.gregs[REG_TRAPNO], p[0],
	    i->si_addr == p);
	if (s == SIGSEGV || s == SIGILL || *p == 0xf1)
		c->uc_mcontext.gregs[REG_RIP] += (*p == 0x0f || *p == 0xcd) ? 2 : 1;
}
int main()
{
	setbuf(stdout, 0);
	struct sigaction sa = {.sa_sigaction = h, .sa_flags = SA_SIGINFO};
	sigaction(SIGTRAP, &sa, 0);
	sigaction(SIGSEGV, &sa, 0);
	sigaction(SIGILL, &sa, 0);
	sigaction(SIGFPE, &sa, 0);
	__asm__ volatile("int3;nop");
	__asm__ volatile("int $3;nop");
	__asm__ volatile("int $4;nop");
	__asm__ volatile("int $0x2d;nop");
	__asm__ volatile("int $0x10;nop");
	__asm__ volatile("int $1;nop");
	__asm__ volatile("int $0xff;nop");
	__asm__ volatile("int $0;nop");
	__asm__ volatile("int $14;nop");
	__asm__ volatile(".byte 0x06;nop");
	__asm__ volatile(".byte 0xce;nop");
	__asm__ volatile(".byte 0x3f;nop");
	__asm__ volatile("ud2;nop");
	__asm__ volatile("ud2;nop");
	__asm__ volatile("in $0x10,%%al;" ::: "rax");
	__asm__ volatile("nop");
	__asm__ volatile("hlt;nop");
	__asm__ volatile("mov %%cr0,%%rax;nop" ::: "rax");
	for (int k = 0; k < 9; k++) {
		pid_t p = fork();
		if (!p) {
			for (int s = 1; s < 32; s++)
				signal(s, SIG_DFL);
			struct rlimit z = {0, 0};
			setrlimit(RLIMIT_CORE, &z);
			switch (k) {
			case 0:
				__asm__ volatile("int3");
				break;
			case 1:
				__asm__ volatile("int $3");
				break;
			case 2:
				__asm__ volatile("int $4");
				break;
			case 3:
				break;
			case 4:
				break;
			case 5:
				__asm__ volatile("int $0x20");
				break;
			case 6:
				__builtin_trap();
			case 7: {
				volatile int a = 1, b = 0;
				a /= b;
			} break;
			case 8:
				break;
			}
			_exit(1);
		}
		int st;
		waitpid(p, &st, 0);
		SAY("%d: %x", k, st);
	}
	return 0;
}
