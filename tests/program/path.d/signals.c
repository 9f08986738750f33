/*
 * Signals in every position: inside call-free loops, system calls, handlers;
 * alternate stacks, jumps out, changed contexts, masks. Prints only what does
 * not depend on timing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t ticks, nested, order[8], norder;
static volatile uint64_t sink;
static char *bad;

static void install(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof sa);
	sa.sa_sigaction = fn;
	sa.sa_flags = SA_SIGINFO | flags;
	sigaction(sig, &sa, NULL);
}

static int is_code_of_ours(uintptr_t pc)
{
	/* application addresses only: main's module, libc or the vdso, never a code cache */
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int found = 0;

	while (f && fgets(line, sizeof line, f)) {
		unsigned long a, b;
		char perm[8], path[400] = "";

		sscanf(line, "%lx-%lx %7s %*s %*s %*s %399s", &a, &b, perm, path);
		if (pc >= a && pc < b)
			found = path[0] == '/' || path[0] == '[';
	}
	if (f)
		fclose(f);
	return found;
}

static uintptr_t seen_pc[64];
static volatile int nseen;

static void on_alarm(int sig, siginfo_t *si, void *uc)
{
	(void)sig, (void)si;
	if (nseen < 64)
		seen_pc[nseen++] = (uintptr_t)((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP];
	ticks++;
}

static void spin_until(int n)
{
	uint64_t x = 88172645463325252ull;

	while (ticks < n) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	sink = x;
}

static void timers(void)
{
	struct itimerval it = { { 0, 1000 }, { 0, 1000 } }, off = { { 0, 0 }, { 0, 0 } };
	int good = 0, n;

	install(SIGALRM, on_alarm, SA_RESTART);
	setitimer(ITIMER_REAL, &it, NULL);
	spin_until(40);
	/* a sleeping read must be restarted */
	int fd[2];
	char c = 0;

	if (pipe(fd))
		exit(1);
	if (!fork()) {
		struct timespec ts = { 0, 30000000 };

		signal(SIGALRM, SIG_IGN);
		nanosleep(&ts, NULL);
		if (write(fd[1], "x", 1) != 1)
			_exit(1);
		_exit(0);
	}
	ssize_t r = read(fd[0], &c, 1);

	setitimer(ITIMER_REAL, &off, NULL);
	n = nseen;
	for (int i = 0; i < n; i++)
		good += is_code_of_ours(seen_pc[i]);
	printf("timer: read %zd '%c', pcs seen are code: %s\n", r, c, good == n ? "all" : "no");
}

static sigjmp_buf jump;

static void on_segv_jump(int sig, siginfo_t *si, void *uc)
{
	(void)sig, (void)uc;
	siglongjmp(jump, si->si_addr == bad ? 1 : 2);
}

/* The handler repairs the page and lets the instruction run again. */
static void on_segv_fix(int sig, siginfo_t *si, void *uc)
{
	(void)sig, (void)uc;
	mprotect((void *)((uintptr_t)si->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}

/* The handler moves rip over the two-byte ud2. */
static void on_ill(int sig, siginfo_t *si, void *uc)
{
	ucontext_t *u = uc;

	(void)sig;
	if ((uintptr_t)si->si_addr == (uintptr_t)u->uc_mcontext.gregs[REG_RIP])
		u->uc_mcontext.gregs[REG_RAX] = 42;
	u->uc_mcontext.gregs[REG_RIP] += 2;
}

static void faults(void)
{
	volatile int jumps = 0;

	bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	install(SIGSEGV, on_segv_jump, 0);
	for (int i = 0; i < 200; i++) {
		int v = sigsetjmp(jump, 1);

		if (!v)
			*(volatile char *)bad = 1;
		jumps += v == 1;
	}
	install(SIGSEGV, on_segv_fix, SA_ONSTACK);
	volatile int fixed = 0;
	for (int i = 0; i < 50; i++) {
		mprotect(bad, 4096, PROT_NONE);
		*(volatile char *)bad = (char)i;
		fixed += *(volatile char *)bad == (char)i;
	}
	install(SIGILL, on_ill, 0);
	long rax = 7;
	__asm__ volatile("ud2" : "+a"(rax));
	void (*null)(void) = NULL;
	volatile int called = 0;
	install(SIGSEGV, on_segv_jump, 0);
	bad = NULL;
	if (!sigsetjmp(jump, 1))
		null();
	else
		called = 1;
	printf("faults: %d jumps, %d repaired, rax %ld, null call %d\n", jumps, fixed, rax, called);
}

static void on_usr1(int sig, siginfo_t *si, void *uc)
{
	(void)sig, (void)si, (void)uc;
	order[norder++] = 1;
	raise(SIGUSR2);
	order[norder++] = 3;
}

static void on_usr2(int sig, siginfo_t *si, void *uc)
{
	(void)sig, (void)si, (void)uc;
	order[norder++] = 2;
	nested++;
}

static void on_stack(int sig, siginfo_t *si, void *uc)
{
	char here;
	stack_t st;

	(void)sig, (void)si, (void)uc;
	sigaltstack(NULL, &st);
	nested = (st.ss_flags & SS_ONSTACK) && &here >= (char *)st.ss_sp &&
		 &here < (char *)st.ss_sp + st.ss_size;
}

static void nesting(void)
{
	sigset_t set, old;
	stack_t st = { .ss_sp = malloc(65536), .ss_size = 65536 };

	install(SIGUSR1, on_usr1, 0);
	install(SIGUSR2, on_usr2, 0);
	raise(SIGUSR1);
	printf("nested: %d %d %d\n", order[0], order[1], order[2]);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &old);
	norder = 0;
	raise(SIGUSR1);
	int before = norder;
	sigset_t pend;
	sigpending(&pend);
	int is_pending = sigismember(&pend, SIGUSR1);
	sigsuspend(&old);
	int during = norder;
	sigprocmask(SIG_SETMASK, &old, NULL);
	printf("suspend: before %d pending %d after %d errno %s\n", before, is_pending, during,
	       errno == EINTR ? "EINTR" : "?");
	nested = 0;
	sigaltstack(&st, NULL);
	install(SIGUSR1, on_stack, SA_ONSTACK);
	raise(SIGUSR1);
	printf("alternate stack: %d\n", nested);
}

static atomic_int running = 1;
static atomic_long received;

static void on_hit(int sig, siginfo_t *si, void *uc)
{
	(void)sig, (void)si, (void)uc;
	atomic_fetch_add(&received, 1);
}

static void *worker(void *arg)
{
	uint64_t x = (uintptr_t)arg + 1;

	while (atomic_load(&running))
		for (int i = 0; i < 1000; i++)
			x = x * 6364136223846793005ull + 1442695040888963407ull;
	sink += x;
	return NULL;
}

static void threads(void)
{
	pthread_t t[3];

	install(SIGUSR2, on_hit, SA_RESTART);
	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, worker, (void *)i);
	for (int i = 0; i < 60; i++) {
		long want = atomic_load(&received) + 1;

		pthread_kill(t[i % 3], SIGUSR2);
		while (atomic_load(&received) < want)
			sched_yield();
	}
	atomic_store(&running, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	printf("threads: %ld signals\n", atomic_load(&received));
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	timers();
	faults();
	nesting();
	threads();
	sigset_t set;
	siginfo_t si;
	struct timespec ts = { 5, 0 };

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGUSR1);
	int got = sigtimedwait(&set, &si, &ts);
	printf("sigtimedwait: %d from self %d\n", got == SIGUSR1, si.si_pid == getpid());
	return 0;
}
