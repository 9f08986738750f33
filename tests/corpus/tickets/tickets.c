/*
 * Numbers for clients, with C11 atomics: but taking the next one is a load and a store, so two may get
 * the same. It shows when both claim their place by it, with a compare-and-swap whose address is that number.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 8

static atomic_uint next_id;
static atomic_uint owner[2 * ROUNDS];

static unsigned new_id(void)
{
	unsigned id = atomic_load(&next_id);	/* @load */

	atomic_store(&next_id, id + 1);		/* @store */
	return id;
}

static void *client(void *arg)
{
	unsigned me = (unsigned)(long)arg + 1;

	for (int i = 0; i < ROUNDS; i++) {
		unsigned id = new_id(), none = 0;

		if (!atomic_compare_exchange_strong(&owner[id], &none, me)) { /* @claim */
			fprintf(stderr, "number %u of %u given to %u, too\n", id, none, me);
			abort();		/* @fail */
		}
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];

	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, client, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
