#include "k.h"
/* nested handlers, SA_ONSTACK with AUTODISARM, swap inside handlers, mask restore, changing context
 * in handler */
static char alt[2][65536];
static volatile int depth;
static volatile long regs;
static void inner(int s)
{
	stack_t st;
	sigaltstack(0, &st);
	SAY("inner flags %x", st.ss_flags);
}
static void outer(int s, siginfo_t *i, void *u)
{
	ucontext_t *c = u;
	sigset_t m;
	stack_t st, q = {alt[1], 0, sizeof alt[1]};
	sigprocmask(0, 0, &m);
	sigaltstack(0, &st);
	SAY("outer usr1 %d usr2 %d flags %x saved %x", sigismember(&m, SIGUSR1),
	    sigismember(&m, SIGUSR2), st.ss_flags, c->uc_stack.ss_flags);
	E_(sigaltstack(&q, 0));
	if (depth++ < 1)
		raise(SIGUSR2);
	sigaddset(&c->uc_sigmask, SIGTERM);
	c->uc_mcontext.gregs[REG_R12] = 42;
}
int main(void)
{
	stack_t st = {alt[0], 1u << 31, sizeof alt[0]};
	E_(sigaltstack(&st, 0));
	struct sigaction a = {.sa_sigaction = outer, .sa_flags = SA_SIGINFO | SA_ONSTACK},
			 b = {.sa_handler = inner, .sa_flags = SA_ONSTACK};
	sigaction(SIGUSR1, &a, 0);
	sigaction(SIGUSR2, &b, 0);
	raise(SIGUSR1);
	sigset_t m;
	sigprocmask(0, 0, &m);
	SAY("term %d", sigismember(&m, SIGTERM));
	sigaltstack(0, &st);
	SAY("%x %d", st.ss_flags, st.ss_sp == alt[0]);
	st.ss_flags = 0;
	st.ss_sp = alt[0];
	E_(sigaltstack(&st, 0));
	raise(SIGUSR1);
	st.ss_size = 100;
	E_(sigaltstack(&st, 0));
	st.ss_flags = 7;
	E_(sigaltstack(&st, 0));
	st.ss_flags = SS_DISABLE;
	E_(sigaltstack(&st, 0));
	long v;
	__asm__ volatile("mov $1, %%r12\n mov $39, %%eax\n syscall\n mov %%r12, %0"
			 : "=r"(v)::"rax", "rcx", "r11", "r12");
	SAY("%ld", v);
	return 0;
}
