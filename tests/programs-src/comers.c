/* Threads that come and go, one after the other; prints whether the process's mappings have become many. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *brief(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 2000, lines = 0;

	for (int i = 0; i < n; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, brief, NULL) || pthread_join(t, NULL))
			return 1;
	}
	FILE *f = fopen("/proc/self/maps", "r");

	for (int c; f && (c = getc(f)) != EOF;)
		lines += c == '\n';
	puts(lines < n / 4 ? "few mappings" : "many mappings");
	return 0;
}
