#include "k.h"
#include <sys/rseq.h>
int main(void)
{
	unsigned c, n;
	R(syscall(SYS_getcpu, &c, &n, 0));
	SAY("%d", c < 4096);
	R(sched_getcpu() >= 0);
	R(syscall(SYS_getcpu, 0, 0, 0));
	R(syscall(SYS_getcpu, 8, 0, 0));
	void *h;
	size_t l;
	R(syscall(SYS_get_robust_list, 0, &h, &l));
	SAY("%zu %d", l, h != 0);
	R(syscall(SYS_set_robust_list, h, 5));
	int *cl = 0;
	R(syscall(SYS_set_tid_address, &c) == gettid());
	unsigned long fs;
	R(syscall(SYS_arch_prctl, 0x1003, &fs));
	SAY("%d", fs == (unsigned long)pthread_self());
	R(syscall(SYS_arch_prctl, 0x1004, &fs));
	SAY("%lx", fs);
	R(syscall(SYS_arch_prctl, 0x9999, 0));
	struct timespec ts;
	for (int i = 0; i < 12; i++) {
		int r = clock_getres(i, &ts);
		SAY("%d %d", i, r);
	}
	R(clock_gettime(99, &ts));
	clockid_t ck;
	R(clock_getcpuclockid(0, &ck));
	R(clock_gettime(ck, &ts));
	pthread_getcpuclockid(pthread_self(), &ck);
	R(clock_gettime(ck, &ts));
	struct rusage ru;
	R(getrusage(RUSAGE_SELF, &ru));
	R(getrusage(RUSAGE_THREAD, &ru));
	R(getrusage(99, &ru));
	struct rlimit rl;
	for (int i = 0; i < 17; i++) {
		int r = getrlimit(i, &rl);
		SAY("%d %d", i, r);
	}
	rl.rlim_cur = 5;
	rl.rlim_max = 4;
	R(setrlimit(RLIMIT_NOFILE, &rl));
	R(prlimit(getpid(), RLIMIT_STACK, 0, &rl));
	R(prlimit(0, RLIMIT_DATA, 0, &rl));
	SAY("%d", rl.rlim_cur == RLIM_INFINITY);
	rl.rlim_cur = 1ul << 33;
	R(setrlimit(RLIMIT_AS, &rl));
	getrlimit(RLIMIT_AS, &rl);
	SAY("%lu", (unsigned long)rl.rlim_cur);
	R(mmap(0, 1ul << 34, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	unsigned char e[16];
	getentropy(e, 16);
	R(syscall(SYS_getrandom, e, 16, 99));
	R(syscall(SYS_futex, &n, 1, 5));
	n = 3;
	R(syscall(SYS_futex, &n, 0, 4, 0));
	R(syscall(SYS_futex, &n, 0, 3, &(struct timespec){0, 1000}));
	R(syscall(SYS_futex, &n, 5, 1, 1, &c, (4 << 28) | (0 << 24) | (3 << 12) | 3));
	R(syscall(SYS_futex, (char *)&n + 1, 0, 0, 0));
	R(syscall(SYS_futex, &n, 77, 0));
	R(sysconf(_SC_NPROCESSORS_ONLN) > 0);
	struct timeval tv;
	R(gettimeofday(&tv, 0));
	R(settimeofday(0, (void *)8));
	return 0;
}
