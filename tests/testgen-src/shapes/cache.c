/* A cache of counted objects: an entry that is found is counted only after the lock was let go. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct entry {
	struct entry *next;
	int key;
	atomic_int references;
	long *payload;
};

struct cache {
	pthread_mutex_t lock;
	struct entry *first;
	unsigned n;
};

struct cache *cache_open(void)
{
	struct cache *c = calloc(1, sizeof *c);

	pthread_mutex_init(&c->lock, NULL);
	return c;
}

static void release(struct entry *e)
{
	if (atomic_fetch_sub(&e->references, 1) == 1) {
		free(e->payload);
		e->payload = NULL;
		free(e);
	}
}

int cache_insert(struct cache *c, int key, long value)
{
	struct entry *e = calloc(1, sizeof *e);

	e->key = key;
	e->references = 1;
	e->payload = malloc(sizeof *e->payload);
	*e->payload = value;
	pthread_mutex_lock(&c->lock);
	e->next = c->first;
	c->first = e;
	c->n++;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

static struct entry *find(struct cache *c, int key)
{
	struct entry *e;

	pthread_mutex_lock(&c->lock);
	for (e = c->first; e && e->key != key; e = e->next)
		;
#ifdef FIXED
	if (e)
		atomic_fetch_add(&e->references, 1);
#endif
	pthread_mutex_unlock(&c->lock);
#ifndef FIXED
	if (e)
		atomic_fetch_add(&e->references, 1);
#endif
	return e;
}

int cache_read(struct cache *c, int key, long *value)
{
	struct entry *e = find(c, key);

	if (!e)
		return -1;
	*value = *e->payload;
	release(e);
	return 0;
}

int cache_evict(struct cache *c, int key)
{
	struct entry *found = NULL;

	pthread_mutex_lock(&c->lock);
	for (struct entry **p = &c->first; *p; p = &(*p)->next)
		if ((*p)->key == key) {
			found = *p;
			*p = found->next;
			c->n--;
			break;
		}
	pthread_mutex_unlock(&c->lock);
	if (found)
		release(found);
	return found ? 0 : -1;
}

void cache_close(struct cache *c)
{
	free(c);
}
