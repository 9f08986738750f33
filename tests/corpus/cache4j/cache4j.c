/*
 * An object cache with a cleaner thread: cache4j [ITERATIONS]
 *
 * Two clients store, fetch and update objects; the cleaner throws out expired
 * ones and sleeps in between. A client that changes the cleaning interval wakes
 * the cleaner when it sleeps, but looks at the sleeping flag before it takes the
 * lock: the cleaner may have woken up meanwhile, and waking one that does not
 * sleep breaks the cleaner's rule (in cache4j: an interrupt outside the try block).
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUCKETS 32
#define CAPACITY 24
#define CLIENTS 2
#define KEYS 40
#define UPDATES 12	/* per iteration and client */

struct object {
	struct object *next;		/* in its bucket */
	struct object *older, *newer;	/* in order of use */
	int key;
	unsigned expires;		/* in ticks of the cache */
	uint32_t hash;
	char value[48];
};

struct cache {
	pthread_mutex_t lock;
	struct object *buckets[BUCKETS];
	struct object *oldest, *newest;
	int size;
	unsigned ticks;
	long hits, misses, evicted, expired;
};

struct cleaner {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	struct cache *cache;
	long interval_us;
	bool sleeping;
	bool interrupted;
	bool stop;
	long rounds;
};

static uint32_t hash_key(int key)
{
	uint32_t h = 2166136261u;

	for (int i = 0; i < 4; i++) {
		h ^= (key >> (8 * i)) & 0xff;
		h *= 16777619u;
	}
	return h;
}

static void use_unlink(struct cache *c, struct object *o)
{
	if (o->older)
		o->older->newer = o->newer;
	else
		c->oldest = o->newer;
	if (o->newer)
		o->newer->older = o->older;
	else
		c->newest = o->older;
}

static void use_newest(struct cache *c, struct object *o)
{
	o->newer = NULL;
	o->older = c->newest;
	if (c->newest)
		c->newest->newer = o;
	else
		c->oldest = o;
	c->newest = o;
}

static struct object *lookup(struct cache *c, int key, uint32_t hash)
{
	struct object *o = c->buckets[hash % BUCKETS];

	while (o && o->key != key)
		o = o->next;
	return o;
}

static void discard(struct cache *c, struct object *o)
{
	struct object **at = &c->buckets[o->hash % BUCKETS];

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	use_unlink(c, o);
	c->size--;
	free(o);
}

static void cache_put(struct cache *c, int key, const char *value)
{
	uint32_t hash = hash_key(key);
	struct object *o;

	pthread_mutex_lock(&c->lock);
	c->ticks++;
	o = lookup(c, key, hash);
	if (o) {
		use_unlink(c, o);
	} else {
		if (c->size == CAPACITY) {
			discard(c, c->oldest);
			c->evicted++;
		}
		o = calloc(1, sizeof(*o));
		o->key = key;
		o->hash = hash;
		o->next = c->buckets[hash % BUCKETS];
		c->buckets[hash % BUCKETS] = o;
		c->size++;
	}
	use_newest(c, o);
	o->expires = c->ticks + 30 + key;
	snprintf(o->value, sizeof(o->value), "%s", value);
	pthread_mutex_unlock(&c->lock);
}

static bool cache_get(struct cache *c, int key, char *value, size_t room)
{
	struct object *o;

	pthread_mutex_lock(&c->lock);
	c->ticks++;
	o = lookup(c, key, hash_key(key));
	if (o) {
		use_unlink(c, o);
		use_newest(c, o);
		snprintf(value, room, "%s", o->value);
		c->hits++;
	} else {
		c->misses++;
	}
	pthread_mutex_unlock(&c->lock);
	return o;
}

static void cache_clean(struct cache *c)
{
	struct object *o, *newer;

	pthread_mutex_lock(&c->lock);
	for (o = c->oldest; o; o = newer) {
		newer = o->newer;
		if (o->expires < c->ticks) {
			discard(c, o);
			c->expired++;
		}
	}
	pthread_mutex_unlock(&c->lock);
}

static void cache_free(struct cache *c)
{
	while (c->oldest)
		discard(c, c->oldest);
	pthread_mutex_destroy(&c->lock);
}

/* Sleeps for the interval or until interrupted; false: the cleaner shall stop. */
static bool cleaner_sleep(struct cleaner *c)
{
	struct timespec until;
	bool go_on;

	pthread_mutex_lock(&c->lock);			/* @lock */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += c->interval_us * 1000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	c->sleeping = true;				/* @asleep */
	while (!c->interrupted && !c->stop)
		if (pthread_cond_timedwait(&c->wake, &c->lock, &until))	/* @lock */
			break;
	c->interrupted = false;
	c->sleeping = false;				/* @awake */
	go_on = !c->stop;
	pthread_mutex_unlock(&c->lock);			/* @unlock */
	return go_on;
}

static void *cleaner_run(void *arg)
{
	struct cleaner *c = arg;

	do {
		cache_clean(c->cache);
		c->rounds++;
	} while (cleaner_sleep(c));
	return NULL;
}

static void cleaner_interrupt(struct cleaner *c)
{
	pthread_mutex_lock(&c->lock);			/* @lock */
	assert(c->sleeping);				/* @use */
	c->interrupted = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);			/* @unlock */
}

static void cleaner_set_interval(struct cleaner *c, long us)
{
	c->interval_us = us;
	if (c->sleeping)				/* @check */
		cleaner_interrupt(c);
}

static void cleaner_stop(struct cleaner *c)
{
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
}

static struct cache cache = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct cleaner cleaner = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.wake = PTHREAD_COND_INITIALIZER,
	.cache = &cache,
	.interval_us = 5000,
};
static int iterations = 1;

static void update(int key)
{
	char value[48];

	if (!cache_get(&cache, key, value, sizeof(value)))
		snprintf(value, sizeof(value), "object %d", key);
	else if (strlen(value) < sizeof(value) - 2)
		strcat(value, "+");
	cache_put(&cache, key, value);
}

static void *client(void *arg)
{
	unsigned state = 17 + (unsigned)(long)arg;

	for (int i = 0; i < iterations; i++) {
		for (int n = 0; n < UPDATES; n++) {
			state = state * 1103515245u + 12345u;
			update((state >> 16) % KEYS);
		}
		cleaner_set_interval(&cleaner, 1000 + (state >> 16) % 4000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t clients[CLIENTS];

	if (argc > 1)
		iterations = atoi(argv[1]);
	pthread_create(&cleaner.thread, NULL, cleaner_run, &cleaner);
	for (long i = 0; i < CLIENTS; i++)
		pthread_create(&clients[i], NULL, client, (void *)i);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(clients[i], NULL);
	cleaner_stop(&cleaner);
	printf("hits %ld, misses %ld, evicted %ld\n", cache.hits, cache.misses, cache.evicted);
	cache_free(&cache);
	return 0;
}
