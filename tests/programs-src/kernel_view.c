/*
 * What the kernel says in unusual places, each item by name: jumps to where there is no code, what
 * an exec inherits, stacks that cannot take a frame, children that share memory and are killed,
 * sigaltstack, rseq, PR_SET_TSC, mmap with odd addresses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <linux/futex.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <dirent.h>
static sigjmp_buf out;
static void h(int s, siginfo_t *i, void *c)
{
	printf("sig %d code %d addr %s err %#llx trap %lld\n", s, i->si_code,
	       (long)i->si_addr > 0x100000 ? "somewhere"
	       : i->si_addr		   ? "low"
					   : "none",
	       (long long)((ucontext_t *)c)->uc_mcontext.gregs[REG_ERR],
	       (long long)((ucontext_t *)c)->uc_mcontext.gregs[REG_TRAPNO]);
	siglongjmp(out, 1);
}
static char stk[65536] __attribute__((aligned(64))), alt[65536],
    cs[65536] __attribute__((aligned(64)));
static volatile int word = 77;
static void install(int sig, int fl)
{
	struct sigaction a = {.sa_sigaction = h, .sa_flags = SA_SIGINFO | fl};
	sigaction(sig, &a, 0);
}
static int child_wait(void *a)
{
	(void)a;
	for (;;)
		syscall(SYS_pause);
}
static int child_exit(void *a)
{
	(void)a;
	syscall(SYS_exit, 5);
	return 0;
}
static int child_group(void *a)
{
	(void)a;
	syscall(SYS_exit_group, 6);
	return 0;
}
static void vsys_item(char **v)
{
	if (!sigsetjmp(out, 1)) {
		long (*g)(long *) = (void *)0xffffffffff600400;
		long x = g(0);
		printf("time %d\n", labs(x - time(0)) <= 2);
		int (*gt)(struct timeval *, void *) = (void *)0xffffffffff600000;
		struct timeval tv;
		printf("gtod %d\n", gt(&tv, 0) == 0 && labs(tv.tv_sec - time(0)) <= 2);
		unsigned cpu;
		long (*gc)(unsigned *, unsigned *, void *) = (void *)0xffffffffff600800;
		printf("getcpu %ld\n", gc(&cpu, 0, 0));
	}
	if (!sigsetjmp(out, 1)) {
		((void (*)(void))0xffffffffff600010)();
	}
	if (!sigsetjmp(out, 1)) {
		printf("%d\n", *(volatile char *)0xffffffffff600000 != 0);
	}
	if (!sigsetjmp(out, 1)) {
		int (*gt)(struct timeval *, void *) = (void *)0xffffffffff600000;
		printf("bad ptr %d\n", gt((void *)8, 0));
	}
}

static void none_item(char **v)
{
	char *p = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *q = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*q = 0xc3;
	void *w[] = {p, q, (void *)16, (void *)0x800000000000, (void *)-4096};
	for (int i = 0; i < 5; i++) {
		if (!sigsetjmp(out, 1))
			((void (*)(void))w[i])();
		else
			printf("was %d\n", i);
	}
}

static void exec_item(char **v)
{
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, SIGSEGV);
	sigaddset(&s, SIGILL);
	sigaddset(&s, SIGUSR1);
	sigaddset(&s, SIGFPE);
	sigprocmask(SIG_BLOCK, &s, 0);
	signal(SIGTRAP, SIG_IGN);
	signal(SIGBUS, SIG_IGN);
	execl(v[0], v[0], "mask", NULL);
}

static void mask_item(char **v)
{
	FILE *f = fopen("/proc/self/status", "r");
	char l[300];
	sigset_t s;
	sigprocmask(0, 0, &s);
	for (int i = 1; i < 65; i++)
		if (sigismember(&s, i))
			printf("blocked %d\n", i);
}

static void badsp_item(char **v)
{
	stack_t st = {.ss_sp = alt, .ss_size = sizeof alt};
	sigaltstack(&st, 0);
	install(SIGSEGV, SA_ONSTACK);
	struct sigaction u = {.sa_sigaction = h, .sa_flags = SA_SIGINFO};
	sigaction(SIGUSR1, &u, 0);
	if (!sigsetjmp(out, 1))
		__asm__ volatile("mov $0x10,%%rsp; mov %0,%%edi; mov %1,%%esi; mov $234,%%eax; mov "
				 "%2,%%edi; mov %3, %%edx; mov %4,%%esi; syscall" ::"i"(0),
				 "i"(0), "r"((int)getpid()), "i"(SIGUSR1), "r"((int)getpid())
				 : "rax", "rcx", "r11", "rdi", "rsi", "rdx", "memory");
	else
		puts("survived");
}

static void badsp2_item(char **v)
{
	struct sigaction u = {.sa_sigaction = h, .sa_flags = SA_SIGINFO};
	sigaction(SIGUSR1, &u, 0);
	signal(SIGSEGV, SIG_DFL);
	__asm__ volatile(
	    "mov $0x10,%%rsp; mov $234,%%eax; mov %0,%%edi; mov %1, %%edx; mov %2,%%esi; syscall" ::
		"r"((int)getpid()),
	    "i"(SIGUSR1), "r"((int)getpid())
	    : "rax", "rcx", "r11", "rdi", "rsi", "rdx", "memory");
}

static void cleartid_item(char **v)
{
	int st;
	pid_t k = clone(child_wait, cs + sizeof cs, CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD, 0, 0,
			0, &word);
	usleep(20000);
	kill(k, SIGKILL);
	struct timespec ts = {2, 0};
	while (word == 77) {
		long r = syscall(SYS_futex, &word, FUTEX_WAIT, 77, &ts, 0, 0);
		if (r && errno == ETIMEDOUT) {
			puts("timeout");
			break;
		}
	}
	printf("word %d\n", word);
	waitpid(k, &st, 0);
	printf("st %x\n", st);
	word = 78;
	k = clone(child_exit, cs + sizeof cs, CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD, 0, 0, 0,
		  &word);
	waitpid(k, &st, 0);
	printf("st %x word %d\n", st, word);
	word = 79;
	k = clone(child_group, cs + sizeof cs, CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD, 0, 0, 0,
		  &word);
	waitpid(k, &st, 0);
	printf("st %x word %d\n", st, word);
	word = 80;
	k = fork();
	if (!k)
		_exit(word);
	waitpid(k, &st, 0);
	printf("st %x word %d\n", st, word);
}

static void nulltls_item(char **v)
{
	int st;
	pid_t k = syscall(SYS_clone, CLONE_SETTLS | SIGCHLD, 0, 0, 0, 0);
	if (k == 0) {
		__asm__ volatile("syscall" ::"a"(SYS_write), "D"(1), "S"("child\n"), "d"(6)
				 : "rcx", "r11", "memory");
		__asm__ volatile("syscall" ::"a"(SYS_exit_group), "D"(9) : "rcx", "r11", "memory");
	}
	waitpid(k, &st, 0);
	printf("st %x\n", st);
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	long ret;
	__asm__ volatile(
	    "syscall\n\ttest %%eax,%%eax\n\tjnz 1f\n\tmov $60,%%eax\n\tmov $7,%%edi\n\tsyscall\n1:"
	    : "=a"(ret)
	    : "a"(SYS_clone), "D"(CLONE_VM | CLONE_SETTLS | SIGCHLD), "S"(cs + sizeof cs), "d"(0),
	      "r"(r10), "r"(r8)
	    : "rcx", "r11", "memory");
	waitpid(ret, &st, 0);
	printf("st %x\n", st);
}

static void tsc_item(char **v)
{
	int x;
	x = -1;
	prctl(PR_GET_TSC, &x);
	printf("%d\n", x);
	if (!sigsetjmp(out, 1)) {
		printf("%d\n", prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
		prctl(PR_GET_TSC, &x);
		printf("%d\n", x);
		__builtin_ia32_rdtsc();
		puts("no fault");
	}
	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	puts(__builtin_ia32_rdtsc() ? "tsc" : "0");
}

static void rseq_item(char **v)
{
	static char a[64] __attribute__((aligned(32)));
	extern const ptrdiff_t __rseq_offset;
	extern const unsigned __rseq_size;
	long r = syscall(SYS_rseq, a + 1, 32, 0, 0x53053053);
	printf("%ld %d\n", r, r ? errno : 0);
	r = syscall(SYS_rseq, a, 32, 0, 0x53053053);
	printf("%ld %d\n", r, r ? errno : 0);
	r = syscall(SYS_rseq, a, 16, 0, 1);
	printf("%ld %d\n", r, r ? errno : 0);
	r = syscall(SYS_rseq, a, 32, 5, 1);
	printf("%ld %d\n", r, r ? errno : 0);
	char *me = (char *)__builtin_thread_pointer() + __rseq_offset;
	printf("%u\n", __rseq_size);
	r = syscall(SYS_rseq, me, 32, 0, 0x53053053);
	printf("same %ld %d\n", r, r ? errno : 0);
	r = syscall(SYS_rseq, me, 32, 0, 1);
	printf("badsig %ld %d\n", r, r ? errno : 0);
	r = syscall(SYS_rseq, me, 32, 1, 1);
	printf("unreg badsig %ld %d\n", r, r ? errno : 0);
	printf("cpu %d\n", sched_getcpu() >= 0);
	r = syscall(SYS_rseq, me, 32, 1, 0x53053053);
	printf("unreg %ld %d\n", r, r ? errno : 0);
	r = syscall(SYS_rseq, me, 32, 1, 0x53053053);
	printf("unreg %ld %d\n", r, r ? errno : 0);
}

static void altflags_item(char **v)
{
	stack_t s = {.ss_sp = alt, .ss_size = sizeof alt, .ss_flags = 0x40}, o;
	printf("%d %d\n", sigaltstack(&s, 0), errno);
	s.ss_flags = 1;
	printf("onstack %d\n", sigaltstack(&s, 0));
	sigaltstack(0, &o);
	printf("%x %d %zu\n", o.ss_flags, o.ss_sp == alt, o.ss_size);
	s.ss_flags = 3;
	printf("%d %d\n", sigaltstack(&s, 0), errno);
	s.ss_flags = 1u << 31;
	printf("%d\n", sigaltstack(&s, 0));
	sigaltstack(0, &o);
	printf("%x\n", o.ss_flags);
	s.ss_size = 100;
	s.ss_flags = 0;
	errno = 0;
	printf("%d %d\n", sigaltstack(&s, 0), errno);
	s.ss_flags = 2;
	printf("%d\n", sigaltstack(&s, 0));
	sigaltstack(0, &o);
	printf("%x %p %zu\n", o.ss_flags, o.ss_sp, o.ss_size);
	s.ss_flags = (1u << 31) | 2;
	s.ss_size = 9999;
	printf("%d\n", sigaltstack(&s, 0));
	sigaltstack(0, &o);
	printf("%x %d %zu\n", o.ss_flags, o.ss_sp != 0, o.ss_size);
	errno = 0;
	printf("%d %d\n", sigaltstack((void *)8, 0), errno);
	printf("%d %d\n", sigaltstack(0, (void *)8), errno);
}

static void mapfixed_item(char **v)
{
	errno = 0;
	void *p = mmap((void *)0x12345001, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		       -1, 0);
	printf("%p %d\n", p, errno);
	p = mmap((void *)0x78000001, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0);
	printf("%p %d\n", p, errno);
	printf("%d %d\n", munmap((void *)0x12345001, 4096), errno);
	printf("%d %d\n", munmap((void *)0x12345000, 0), errno);
	printf("%d %d\n", mprotect((void *)0x12345001, 4096, 1), errno);
	printf("%d %d\n", mprotect((void *)0x12345000, 0, 1), errno);
	printf("%d %d\n", mprotect((void *)0x12345000, 4096, 1), errno);
	p = mremap((void *)0x12345001, 4096, 8192, 1);
	printf("%p %d\n", p, errno);
	p = mmap(0, 0, 1, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("%p %d\n", p, errno);
	p = mmap(0, -1ul, 1, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("%p %d\n", p, errno);
	p = mmap((void *)-4096, 4096, 1, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	printf("%p %d\n", p, errno);
	printf("%d %d\n", munmap((void *)0x10000, -4096ul), errno);
	p = mmap((void *)(1ul << 47) - 4096, 8192, 1, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0);
	printf("%p %d\n", p, errno);
}

static void fds_item(char **v)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			printf("fd %s\n", e->d_name);
	closedir(d);
	fflush(stdout);
	pid_t k = fork();
	if (!k) {
		d = opendir("/proc/self/fd");
		while ((e = readdir(d)))
			if (e->d_name[0] != '.')
				printf("child fd %s\n", e->d_name);
		fflush(stdout);
		execl("/bin/ls", "ls", "/proc/self/fd", NULL);
	}
	wait(0);
	if (!vfork())
		execl("/bin/ls", "ls", "/proc/self/fd", NULL);
	wait(0);
	system("ls /proc/self/fd");
	FILE *p = popen("ls /proc/self/fd", "r");
	char b[99];
	while (fgets(b, 99, p))
		fputs(b, stdout);
	pclose(p);
}

static const struct {
	const char *name;
	void (*run)(char **v);
} items[] = {{"vsys", vsys_item},
	     {"none", none_item},
	     {"exec", exec_item},
	     {"mask", mask_item},
	     {"badsp", badsp_item},
	     {"badsp2", badsp2_item},
	     {"cleartid", cleartid_item},
	     {"nulltls", nulltls_item},
	     {"tsc", tsc_item},
	     {"rseq", rseq_item},
	     {"altflags", altflags_item},
	     {"mapfixed", mapfixed_item},
	     {"fds", fds_item}};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	install(SIGSEGV, 0);
	install(SIGBUS, 0);
	install(SIGILL, 0);
	install(SIGTRAP, 0);
	for (unsigned i = 0; argc > 1 && i < sizeof items / sizeof items[0]; i++)
		if (!strcmp(argv[1], items[i].name))
			items[i].run(argv);
	return 0;
}
