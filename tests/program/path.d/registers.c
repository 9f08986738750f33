/*
 * A fault shows every register as it was, also those that are dead: about to
 * be overwritten by the faulting instruction itself. Reached by fall-through, a
 * taken branch and an indirect jump; and the same at the return from the handler. Once there was a second thread, also
 * of locked instructions: around these the recorder uses registers that not all of them have.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

static volatile int wrong, faults;
static const int order[14] = { REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_R8,
			       REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

static void on_fault(int sig, siginfo_t *si, void *arg)
{
	ucontext_t *uc = arg;
	greg_t *g = uc->uc_mcontext.gregs;

	(void)sig, (void)si;
	faults++;
	for (int i = 0; i < 14; i++)
		if ((uint64_t)g[order[i]] != 0x1111111111111100ull + (uint64_t)i + 0x1000) {
			wrong++;
			printf("register %d is %llx\n", i, (unsigned long long)g[order[i]]);
		}
	/* Over mov (%r), %r' and all the others but cmpxchg: four bytes here. */
	g[REG_RIP] += memcmp((void *)g[REG_RIP], "\xf0\x0f\xb1", 3) ? 4 : 5;
}

#define FAULT(name, way, insn)                                                             \
	__attribute__((noinline)) static void name(void)                                   \
	{                                                                                  \
		__asm__ volatile("push %%rbp\n\t"                                          \
				 "sub $128, %%rsp\n\t"                                     \
				 "movabs $0x1111111111112101, %%rbx\n\t"                   \
				 "movabs $0x1111111111112102, %%rcx\n\t"                   \
				 "movabs $0x1111111111112103, %%rdx\n\t"                   \
				 "movabs $0x1111111111112104, %%rsi\n\t"                   \
				 "movabs $0x1111111111112105, %%rdi\n\t"                   \
				 "movabs $0x1111111111112106, %%r8\n\t"                    \
				 "movabs $0x1111111111112107, %%r9\n\t"                    \
				 "movabs $0x1111111111112108, %%r10\n\t"                   \
				 "movabs $0x1111111111112109, %%r11\n\t"                   \
				 "movabs $0x111111111111210a, %%r12\n\t"                   \
				 "movabs $0x111111111111210b, %%r13\n\t"                   \
				 "movabs $0x111111111111210c, %%r14\n\t"                   \
				 "movabs $0x111111111111210d, %%r15\n\t"                   \
				 "xor %%ebp, %%ebp\n\t"                                    \
				 "movabs $0x1111111111112100, %%rax\n\t" way               \
				 "7: " insn "\n\t"                                         \
				 "add $128, %%rsp\n\t"                                     \
				 "pop %%rbp"                                               \
				 :                                                         \
				 :                                                         \
				 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9",   \
				   "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc"); \
	}

#define TAKEN "cmp $0, %%ebp\n\tje 7f\n\tnop\n\t"
#define NOT_TAKEN "cmp $0, %%ebp\n\tjne 8f\n\tnop\n\t8:\n\t"
#define INDIRECT "push %%rax\n\tlea 7f(%%rip), %%rax\n\txchg %%rax, (%%rsp)\n\tret\n\t"

FAULT(taken_rax, TAKEN, "mov 0(%%rbp), %%rax; nop")
FAULT(taken_rcx, TAKEN, "mov 0(%%rbp), %%rcx; nop")
FAULT(taken_rdx, TAKEN, "mov 0(%%rbp), %%rdx; nop")
FAULT(fall_rax, NOT_TAKEN, "mov 0(%%rbp), %%rax; nop")
FAULT(fall_rsi, NOT_TAKEN, "mov 0(%%rbp), %%rsi; nop")
FAULT(back_rcx, INDIRECT, "mov 0(%%rbp), %%rcx; nop")
FAULT(back_rdx, INDIRECT, "mov 0(%%rbp), %%rdx; nop")
FAULT(back_store, INDIRECT, "mov %%rax, 0(%%rbp); nop")

FAULT(locked_none, NOT_TAKEN, "lock incl 0(%%rbp)")
FAULT(locked_rcx, NOT_TAKEN, "lock add %%ecx, 0(%%rbp)")
FAULT(locked_rdx, NOT_TAKEN, "lock add %%edx, 0(%%rbp)")
FAULT(swapped_rcx, TAKEN, "xchg %%rcx, 0(%%rbp)")
FAULT(swapped_rsi, TAKEN, "xchg %%rsi, 0(%%rbp)")
FAULT(compared, TAKEN, "lock cmpxchg %%edx, 0(%%rbp)")

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	pthread_t second;

	struct sigaction sa;

	memset(&sa, 0, sizeof sa);
	sa.sa_sigaction = on_fault;
	sa.sa_flags = SA_SIGINFO;
	sigaction(SIGSEGV, &sa, NULL);
	for (int i = 0; i < 5; i++) {
		taken_rax(), taken_rcx(), taken_rdx();
		fall_rax(), fall_rsi();
		back_rcx(), back_rdx(), back_store();
		locked_none(), locked_rcx(), locked_rdx();
		swapped_rcx(), swapped_rsi(), compared();
		if (i == 2 && (pthread_create(&second, NULL, nothing, NULL) || pthread_join(second, NULL)))
			return 1;
	}
	printf("%d faults, %d registers wrong\n", faults, wrong);
	return wrong;
}
