/*
 * Limits that a program sets for itself count its own memory, and nobody else's: address space, data, locked memory.
 * Prints what getrlimit() says and how much can be had afterwards, roughly: by what is left, in steps of 4 MB.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MB (1l << 20)

static void show(const char *what, int resource)
{
	struct rlimit l, p;

	getrlimit(resource, &l);
	prlimit(0, resource, NULL, &p);
	printf("%s: %ld %ld, the same both ways: %d\n", what, (long)l.rlim_cur, (long)l.rlim_max,
	       !memcmp(&l, &p, sizeof l));
}

static void can_map(long megabytes)
{
	void *p = mmap(NULL, megabytes * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	printf("%ld MB: %s\n", megabytes, p == MAP_FAILED ? strerror(errno) : "mapped");
	if (p != MAP_FAILED)
		munmap(p, megabytes * MB);
}

static void *thread(void *arg)
{
	return arg;
}

static void limited(const char *name, int resource)
{
	struct rlimit l = { 200 * MB, 400 * MB }, too_much = { 500 * MB, 300 * MB };
	pthread_t t;

	printf("set: %d\n", setrlimit(resource, &l));
	show(name, resource);
	can_map(100);
	can_map(390);
	printf("thread: %d\n", pthread_create(&t, NULL, thread, NULL));
	pthread_join(t, NULL);
	printf("wrong: %d %d\n", setrlimit(resource, &too_much), errno);
	l.rlim_cur = 390 * MB;
	printf("raised: %d\n", setrlimit(resource, &l));
	show(name, resource);
	can_map(300);
	fflush(stdout);
	if (!fork()) {
		show("child", resource);
		can_map(100);
		fflush(stdout);
		execl("/bin/sh", "sh", "-c", resource == RLIMIT_AS ? "ulimit -Sv" : "ulimit -Sd", NULL);
	}
	wait(NULL);
}

static void locked(void)
{
	struct rusage u;

	printf("wrong: %d %d\n", mlockall(MCL_ONFAULT), errno);
	printf("none: %d %d\n", mlockall(0), errno);
	printf("locked: %d\n", mlockall(MCL_CURRENT));
	printf("locked: %d\n", mlockall(MCL_CURRENT | MCL_FUTURE));
	getrusage(RUSAGE_SELF, &u);
	printf("little memory: %d\n", u.ru_maxrss < 100 << 10);
	can_map(4);
	printf("unlocked: %d\n", munlockall());
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "space"))
		limited("address space", RLIMIT_AS);
	else if (argc > 1 && !strcmp(argv[1], "data"))
		limited("data", RLIMIT_DATA);
	else
		locked();
	return 5;
}
