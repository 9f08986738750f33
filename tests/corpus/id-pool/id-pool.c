/*
 * A pool of numbers as a bitmap. A free bit is looked for and then set, without a lock: two sessions get the same number,
 * and each finds the other's name at its place.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define SESSIONS 3
#define ROUNDS 10
#define IDS 16

static unsigned used;	/* a bit per number */
static int owner[IDS];

static int get_id(void)
{
	for (int i = 0; i < IDS; i++)
		if (!(used & 1u << i)) {	/* @test */
			used |= 1u << i;	/* @set */
			return i;
		}
	return -1;
}

static void put_id(int id)
{
	__atomic_fetch_and(&used, ~(1u << id), __ATOMIC_SEQ_CST);	/* @put */
}

static void *session(void *arg)
{
	int me = *(int *)arg;

	for (int i = 0; i < ROUNDS; i++) {
		int id = get_id();

		if (id < 0)
			continue;
		owner[id] = me;		/* @mine */
		assert(owner[id] == me);	/* @assert */
		put_id(id);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[SESSIONS];
	int who[SESSIONS];

	for (int i = 0; i < SESSIONS; i++) {
		who[i] = i + 1;
		pthread_create(&t[i], NULL, session, &who[i]);
	}
	for (int i = 0; i < SESSIONS; i++)
		pthread_join(t[i], NULL);
	printf("%x\n", used);
	return 0;
}
