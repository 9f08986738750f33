/*
 * Does one thing many times: what it costs must grow with the number, and no faster.
 *   growth threads N    N threads alive at a time
 *   growth passing N    N threads, one after the other
 *   growth mprotects N  one page of data, N times; growth maps N: mapped and unmapped
 *   growth mappings N   N pages, every second one with other rights: N mappings alive
 *   growth forks N      N children, one after the other
 *   growth signals N    N signals to itself
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t all;
static int n;
static volatile int count;

static void *wait_for_all(void *arg)
{
	pthread_barrier_wait(&all);
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static void threads(void)
{
	pthread_t *t = malloc(n * sizeof *t);
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_barrier_init(&all, NULL, n + 1);
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], &attr, wait_for_all, NULL)) {
			printf("thread %d: not made\n", i);
			exit(1);
		}
	pthread_barrier_wait(&all);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

static void passing(void)
{
	pthread_t t;

	for (int i = 0; i < n; i++) {
		pthread_create(&t, NULL, nothing, NULL);
		pthread_join(t, NULL);
	}
}

static char *pages(int many)
{
	return mmap(NULL, many * 4096l, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void mprotects(void)
{
	char *p = pages(1);

	for (int i = 0; i < n; i++)
		mprotect(p, 4096, i % 2 ? PROT_READ | PROT_WRITE : PROT_READ);
}

static void maps(void)
{
	for (int i = 0; i < n; i++)
		munmap(pages(1), 4096);
}

static void mappings(void)
{
	char *p = pages(n);

	for (int i = 0; i < n; i += 2)
		mprotect(p + i * 4096l, 4096, PROT_READ);
}

static void forks(void)
{
	for (int i = 0; i < n; i++) {
		pid_t child = fork();

		if (!child)
			_exit(i & 1);
		int status;
		waitpid(child, &status, 0);
		count += WEXITSTATUS(status);
	}
	printf("%d\n", count);
}

static void on_signal(int sig)
{
	count += sig > 0;
}

static void signals(void)
{
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < n; i++)
		raise(SIGUSR1);
	printf("%d\n", count);
}

static const struct {
	const char *name;
	void (*run)(void);
} what[] = {
	{ "threads", threads }, { "passing", passing }, { "mprotects", mprotects },
	{ "maps", maps }, { "mappings", mappings }, { "forks", forks }, { "signals", signals },
};

int main(int argc, char **argv)
{
	n = argc > 2 ? atoi(argv[2]) : 0;
	for (unsigned i = 0; n > 0 && i < sizeof what / sizeof what[0]; i++)
		if (!strcmp(argv[1], what[i].name)) {
			what[i].run();
			puts("done");
			return 0;
		}
	return 2;
}
