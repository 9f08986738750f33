/*
 * Fails by order of nothing; with the file `slow' beside it, it first starts a child of its own (argv[1])
 * and stands still.
 */
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static int x;

static void *writer(void *unused)
{
	x = 1;
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t t;

	pthread_create(&t, NULL, writer, NULL);
	pthread_join(t, NULL);
	if (argc > 1 && !access("slow", F_OK)) {
		if (!fork()) {
			execl(argv[1], argv[1], "1000", (char *)NULL);
			_exit(1);
		}
		sleep(1000);
	}
	assert(!x);
	return 0;
}
