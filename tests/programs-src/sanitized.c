/* Threads, a lock, and memory used after it was freed when asked to ("uaf"): for sanitizers. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int g;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *f(void *a)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&m);
		g++;
		pthread_mutex_unlock(&m);
	}
	return 0;
}
int main(int c, char **v)
{
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, f, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	char *p = malloc(10);
	strcpy(p, "x");
	printf("g %d\n", g);
	fflush(stdout);
	if (c > 1 && !strcmp(v[1], "uaf")) {
		free(p);
		return p[0];
	}
	if (c > 1 && !strcmp(v[1], "race")) {
		pthread_create(&t[0], 0, f, 0);
		g++;
		pthread_join(t[0], 0);
	}
	free(p);
	return 6;
}
