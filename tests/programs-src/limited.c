/* Memory and N threads (8 by default) under whatever limit there is: says what it got. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/mman.h>
static void *f(void *a)
{
	char b[1000];
	memset(b, 1, 1000);
	return (void *)((long)a * 2 + b[5]);
}
int main(int c, char **v)
{
	int n = c > 1 ? atoi(v[1]) : 0;
	long s = 0;
	pthread_t t[64];
	int made = 0;
	pthread_attr_t at;
	pthread_attr_init(&at);
	pthread_attr_setstacksize(&at, 64 << 10);
	char *p = malloc(1 << 20);
	if (p)
		memset(p, 1, 1 << 20);
	printf("malloc %d\n", p != 0);
	for (int i = 0; i < n; i++) {
		int e = pthread_create(&t[made], &at, f, (void *)(long)i);
		if (e)
			printf("create %d: %s\n", i, strerror(e));
		else
			made++;
	}
	for (int i = 0; i < made; i++) {
		void *r;
		pthread_join(t[i], &r);
		s += (long)r;
	}
	printf("sum %ld made %d\n", s, made);
	return 4;
}
