/* A vector that reads its length before it holds its lock. */
#include <pthread.h>
#include <stdlib.h>

struct vector {
	pthread_mutex_t lock;
	int *items;
	unsigned n, cap;
};

struct vector *vector_create(unsigned reserve)
{
	struct vector *v = calloc(1, sizeof *v);

	pthread_mutex_init(&v->lock, NULL);
	v->cap = reserve > 64 ? 64 : reserve + 1;
	v->items = calloc(v->cap, sizeof *v->items);
	return v;
}

void vector_add(struct vector *v, int x)
{
	pthread_mutex_lock(&v->lock);
	if (v->n == v->cap) {
		v->cap *= 2;
		v->items = realloc(v->items, v->cap * sizeof *v->items);
	}
	v->items[v->n++] = x;
	pthread_mutex_unlock(&v->lock);
}

void vector_clear(struct vector *v)
{
	pthread_mutex_lock(&v->lock);
	v->n = 0;
	pthread_mutex_unlock(&v->lock);
}

static int find_from(struct vector *v, int x, unsigned n)
{
	if (n > v->n)
		abort(); /* index out of range */
	while (n-- > 0)
		if (v->items[n] == x)
			return (int)n;
	return -1;
}

int vector_last_index_of(struct vector *v, int x)
{
#ifndef FIXED
	unsigned n = v->n;
#endif
	pthread_mutex_lock(&v->lock);
#ifdef FIXED
	unsigned n = v->n;
#endif
	int at = find_from(v, x, n);
	pthread_mutex_unlock(&v->lock);
	return at;
}

unsigned vector_length(struct vector *v)
{
	pthread_mutex_lock(&v->lock);
	unsigned n = v->n;
	pthread_mutex_unlock(&v->lock);
	return n;
}

void vector_destroy(struct vector *v)
{
	free(v->items);
	free(v);
}
