/* A program that forbids itself system calls, by allow-list or strictly: seccomp_lists WHAT
 * [THREADS]. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <signal.h>
#include <semaphore.h>
#include <sys/wait.h>
#define ALLOW(nr)                                                                                  \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile long sum;
static pthread_barrier_t b;
static sem_t sem;
static volatile int stop;
static void *work(void *a)
{
	for (int i = 0; i < 2000; i++) {
		pthread_mutex_lock(&m);
		sum++;
		pthread_mutex_unlock(&m);
	}
	pthread_barrier_wait(&b);
	if ((long)a % 2)
		while (!stop)
			;
	else
		sem_wait(&sem);
	for (int i = 0; i < 2000; i++) {
		pthread_mutex_lock(&m);
		sum++;
		pthread_mutex_unlock(&m);
	}
	return 0;
}
int main(int c, char **v)
{
	const char *what = v[1];
	int n = c > 2 ? atoi(v[2]) : 0;
	pthread_t t[16];
	int kill_ = !strstr(what, "errno");
	int tsync = !!strstr(what, "tsync");
	int st;
	if (!strcmp(what, "child")) {
		if (!fork()) {
			execl("/proc/self/exe", v[0], "filter", c > 2 ? v[2] : "0", NULL);
		}
		wait(&st);
		printf("child %x\n", st);
		return 0;
	}
	if (!strcmp(what, "fork")) {
		if (!fork()) {
			what = "filter";
		} else {
			wait(&st);
			printf("child %x\n", st);
			return 0;
		}
	}
	printf("begin\n");
	fflush(stdout);
	pthread_barrier_init(&b, 0, n + 1);
	sem_init(&sem, 0, 0);
	for (long i = 0; i < n; i++)
		pthread_create(&t[i], 0, work, (void *)i);
	if (n)
		pthread_barrier_wait(&b);
	if (!strcmp(what, "strict")) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			perror("prctl");
		if (n) {
			stop = 1;
		}
		char s[] = "strict\n";
		write(1, s, 7);
		syscall(SYS_exit, 7);
	}
	struct sock_filter f[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    ALLOW(SYS_write),
	    ALLOW(SYS_exit_group),
	    ALLOW(SYS_exit),
	    ALLOW(SYS_futex),
	    ALLOW(SYS_rt_sigreturn),
	    ALLOW(SYS_brk),
	    ALLOW(SYS_newfstatat),
	    ALLOW(SYS_munmap),
	    ALLOW(SYS_madvise),
	    ALLOW(SYS_rt_sigprocmask),
	    BPF_STMT(BPF_RET | BPF_K,
		     kill_ ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | ENOSYS)};
	struct sock_fprog p = {sizeof f / sizeof *f, f};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	long r = tsync
		     ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &p)
		 : !strcmp(what, "prctl") ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)
					  : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p);
	printf("filter %ld\n", r);
	fflush(stdout);
	stop = 1;
	for (int i = 0; i < n; i++)
		sem_post(&sem);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], 0);
	printf("sum %ld\n", sum);
	fflush(stdout);
	if (strstr(what, "bad")) {
		getppid();
		printf("still here\n");
	}
	if (strstr(what, "segv"))
		*(volatile int *)0 = 1;
	return 3;
}
