// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bad KIND MILLISECONDS: what a flight recorder must survive unnoticed, while two threads work. What is printed does not depend on time.
 *   notices  looks for children, signals and times of children that it does not have
 *   drops    gives up its rights (as root)
 *   roots    makes an empty directory its root (as root)
 *   gigs     maps, touches and unmaps gigabytes
 *   forks    forks all the time, and children fail to exec
 *   stops    is stopped and continued by a child
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int over;
static volatile sig_atomic_t childs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long turns;
static volatile unsigned other;

static void check(int good, const char *what)
{
	if (good)
		return;
	printf("wrong: %s (%s)\n", what, strerror(errno));
	fflush(stdout);
	_exit(3);
}

static void *works(void *arg)
{
	unsigned h = 1;

	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 3000; i++)
			h = h * 1664525 + 1013904223;
		other = h;
		pthread_mutex_lock(&lock);
		turns++;
		pthread_mutex_unlock(&lock);
		usleep(300);
	}
	return arg;
}

static void on_child(int sig)
{
	childs += sig == SIGCHLD;
}

static unsigned tasks(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static void notices(void)
{
	struct rusage r;
	struct tms t;
	siginfo_t si;

	usleep(2000);
	check(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child");
	check(waitid(P_ALL, 0, &si, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD, "another child");
	check(!childs, "SIGCHLD");
	check(tasks() == 3, "tasks");
	check(!getrusage(RUSAGE_CHILDREN, &r), "getrusage");
	check(!r.ru_utime.tv_sec && !r.ru_utime.tv_usec && !r.ru_stime.tv_sec && !r.ru_stime.tv_usec, "time of children");
	check(!r.ru_minflt && !r.ru_majflt && !r.ru_nvcsw && !r.ru_nivcsw && !r.ru_maxrss, "what children used");
	check(times(&t) != (clock_t)-1 && !t.tms_cutime && !t.tms_cstime, "times of children");
}

static void gigs(void)
{
	size_t n = 1ul << 30;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	check(p != MAP_FAILED, "a gigabyte");
	for (size_t i = 0; i < n; i += 16 << 20)
		p[i] = 1;
	check(!munmap(p, n), "unmapping");
}

static void forks(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		execl("/nowhere/at/all", "nowhere", NULL);
		_exit(errno == ENOENT ? 5 : 6);
	}
	check(pid > 0, "a fork");
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5, "a child's status");
}

static void stops(void)
{
	pid_t pid = fork(), me = getppid();

	if (!pid) {
		kill(me = getppid(), SIGSTOP);
		usleep(3000);
		kill(me, SIGCONT);
		_exit(0);
	}
	check(pid > 0 && waitpid(pid, NULL, 0) == pid && me > 0, "who stops");
}

static void lose_rights(const char *kind)
{
	if (!strcmp(kind, "drops"))
		check(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534), "rights");
	if (!strcmp(kind, "roots"))
		check(!chroot("/proc/self/fdinfo") || !chroot("/sys") || !chroot("/dev"), "a root");
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "notices";
	long long until = now() + (argc > 2 ? atol(argv[2]) : 300), half = now() + (until - now()) / 2;
	void (*each)(void) = !strcmp(kind, "notices") ? notices : !strcmp(kind, "gigs") ? gigs : !strcmp(kind, "forks") ? forks :
			     !strcmp(kind, "stops") ? stops : NULL;
	struct sigaction sa = { .sa_handler = on_child, .sa_flags = SA_RESTART };
	pthread_t t[2];
	int lost = 0;

	sigaction(SIGCHLD, &sa, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, works, NULL);
	while (now() < until) {
		if (each)
			each();
		if (now() >= half && !lost++)
			lose_rights(kind);
		usleep(1000);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%s is done\n", kind);
	return 0;
}
