/*
 * A cache of a few slots, the one that was used least lately makes room. A slot is found under the lock, and read when the
 * lock has been given back: another thread may have put another key there meanwhile.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define SLOTS 3
#define LOOKUPS 12

struct slot {
	int key, value;
	unsigned used;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot slots[SLOTS];
static unsigned now;

static struct slot *find(int key)
{
	struct slot *oldest = &slots[0], *s = NULL;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < SLOTS && !s; i++) {
		if (slots[i].key == key)
			s = &slots[i];
		else if (slots[i].used < oldest->used)
			oldest = &slots[i];
	}
	if (!s) {
		s = oldest;
		s->key = key;	/* @key */
		s->value = 10 * key;	/* @evict */
	}
	s->used = ++now;
	pthread_mutex_unlock(&lock);	/* @release */
	return s;
}

static void *client(void *arg)
{
	int first = *(int *)arg;

	for (int i = 0; i < LOOKUPS; i++) {
		int key = 1 + (first + i) % 7;
		struct slot *s = find(key);	/* @find */

		assert(s->value == 10 * key);	/* @use */
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];
	int first[2] = { 0, 4 };

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, client, &first[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%u lookups\n", now);
	return 0;
}
