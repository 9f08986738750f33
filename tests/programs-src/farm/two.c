/* Two bugs: an update that is lost, and a check that another thread outdates. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
static volatile int count, checks;
static int *volatile shared;
static int value;
static void *add(void *a) { for (int i = 0; i < 3; i++) count++; return a; }
static void *use(void *a) { for (int i = 0; i < 3; i++) if (shared) checks += *shared; return a; }
static void *drop(void *a) { shared = NULL; return a; }
int main(void)
{
	pthread_t t[4];
	shared = &value;
	pthread_create(&t[0], NULL, add, NULL);
	pthread_create(&t[1], NULL, add, NULL);
	pthread_create(&t[2], NULL, use, NULL);
	pthread_create(&t[3], NULL, drop, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert(count == 6);
	return 0;
}
