/*
 * pairs THREADS PAIRS [FILE]: THREADS threads, each PAIRS times lock/unlock on one of eight mutexes.
 * FILE, eight bytes for each thread, counts the operations that returned; it survives SIGKILL.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX 1000
static pthread_mutex_t m[8];
static long pairs;
static volatile long nowhere[MAX], *done = nowhere;

static void *work(void *arg)
{
	pthread_mutex_t *mine = &m[(long)arg % 8];

	for (long i = 0; i < pairs; i++) {
		pthread_mutex_lock(mine);
		done[(long)arg]++;
		pthread_mutex_unlock(mine);
		done[(long)arg]++;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 2;
	pthread_t th[MAX];

	pairs = argc > 2 ? atol(argv[2]) : 1000;
	if (n > MAX)
		return 2;
	if (argc > 3) {
		int fd = open(argv[3], O_RDWR | O_CREAT | O_TRUNC, 0600);

		if (fd < 0 || ftruncate(fd, sizeof nowhere))
			return 2;
		done = mmap(NULL, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (done == MAP_FAILED)
			return 2;
	}
	for (long i = 0; i < n; i++)
		if (pthread_create(&th[i], NULL, work, (void *)i))
			return 1;
	for (long i = 0; i < n; i++)
		pthread_join(th[i], NULL);
	puts("done");
	return 0;
}
