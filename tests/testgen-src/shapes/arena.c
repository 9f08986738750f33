/* An arena behind a constructor that returns an error code; a reset takes its chunks away under the feet of an allocation. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct chunk {
	struct chunk *next;
	size_t used, size;
	unsigned char bytes[];
};

typedef struct arena {
	pthread_mutex_t lock;
	struct chunk *first;
	size_t chunk_size;
} arena_t;

struct arena_stats {
	size_t chunks, bytes;
};

int arena_create(arena_t **out, size_t chunk_size)
{
	if (!out || chunk_size < 16)
		return EINVAL;
	arena_t *a = calloc(1, sizeof *a);

	if (!a)
		return ENOMEM;
	pthread_mutex_init(&a->lock, NULL);
	a->chunk_size = chunk_size;
	*out = a;
	return 0;
}

static struct chunk *grow(arena_t *a)
{
	struct chunk *c = malloc(sizeof *c + a->chunk_size);

	c->next = a->first;
	c->used = 0;
	c->size = a->chunk_size;
	a->first = c;
	return c;
}

void *arena_alloc(arena_t *a, size_t n)
{
	unsigned char *p = NULL;

	if (n > a->chunk_size)
		return NULL;
	pthread_mutex_lock(&a->lock);
	struct chunk *c = a->first;
	if (!c || c->used + n > c->size)
		c = grow(a);
#ifndef FIXED
	pthread_mutex_unlock(&a->lock);
#endif
	c = a->first;
	p = c->bytes + c->used;
	c->used += n;
	memset(p, 0, n);
#ifdef FIXED
	pthread_mutex_unlock(&a->lock);
#endif
	return p;
}

void arena_reset(arena_t *a)
{
	pthread_mutex_lock(&a->lock);
	struct chunk *c = a->first;
	a->first = NULL;
	pthread_mutex_unlock(&a->lock);
	while (c) {
		struct chunk *next = c->next;

		free(c);
		c = next;
	}
}

int arena_stats(const arena_t *a, struct arena_stats *out)
{
	if (!out)
		return EINVAL;
	pthread_mutex_lock((pthread_mutex_t *)&a->lock);
	*out = (struct arena_stats){ 0 };
	for (struct chunk *c = a->first; c; c = c->next) {
		out->chunks++;
		out->bytes += c->used;
	}
	pthread_mutex_unlock((pthread_mutex_t *)&a->lock);
	return 0;
}

void arena_destroy(arena_t *a)
{
	if (!a)
		return;
	arena_reset(a);
	free(a);
}
