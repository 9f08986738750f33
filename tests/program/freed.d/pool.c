/* pool: objects of a pool whose block is given back while one of them is in use. */
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
struct item { struct item *next; long value; };
struct pool { struct item items[40]; struct item *free; };
static struct pool *pool;
static volatile long spun;
static void *worker(void *arg)
{
	struct item *it = pool->free;
	for (int i = 0; i < 300 && it; i++) {
		for (int k = 0; k < 50; k++)
			spun += k;
		it->value += i;			/* use */
		if (it->next == NULL)
			abort();
		it = it->next;
	}
	return arg;
}
int main(void)
{
	pthread_t t;
	pool = calloc(1, sizeof *pool);
	for (int i = 0; i < 40; i++)
		pool->items[i].next = &pool->items[(i + 1) % 40];
	pool->free = &pool->items[0];
	pthread_create(&t, NULL, worker, NULL);
	for (int k = 0; k < 25000; k++)
		spun += k;
	for (int i = 0; i < 40; i++)
		pool->items[i].next = NULL;
	free(pool);				/* free */
	pthread_join(t, NULL);
	return 0;
}
