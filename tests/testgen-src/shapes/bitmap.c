/* A bitmap allocator over a table of functions: two takers get the same bit, and the second to give it back is told off. */
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>

struct bitmap_ops {
	void *(*get)(size_t n);
	void (*put)(void *p);
	int version;
};

struct bitmap {
	const struct bitmap_ops *ops;
	pthread_mutex_t lock;
	unsigned bits, used;
	unsigned char *map;
};

/* ops: NULL is malloc() and free(). */
struct bitmap *bitmap_make(const struct bitmap_ops *ops, unsigned bits)
{
	struct bitmap *m;

	if (bits == 0 || bits > 4096)
		return NULL;
	m = ops && ops->get ? ops->get(sizeof *m) : malloc(sizeof *m);
	if (!m)
		return NULL;
	m->ops = ops;
	m->bits = bits;
	m->used = 0;
	m->map = calloc(bits, 1);
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

int bitmap_take(struct bitmap *m)
{
	unsigned i;

#ifdef FIXED
	pthread_mutex_lock(&m->lock);
#endif
	for (i = 0; i < m->bits && m->map[i]; i++)
		;
#ifndef FIXED
	pthread_mutex_lock(&m->lock);
#endif
	if (i < m->bits) {
		m->map[i] = 1;
		m->used++;
	}
	pthread_mutex_unlock(&m->lock);
	return i < m->bits ? (int)i : -1;
}

int bitmap_give(struct bitmap *m, unsigned bit)
{
	int status = -1;

	pthread_mutex_lock(&m->lock);
	if (bit < m->bits && m->map[bit]) {
		m->map[bit] = 0;
		m->used--;
		status = 0;
	}
	pthread_mutex_unlock(&m->lock);
	return status;
}

/* Aborts when the books do not balance. */
void bitmap_audit(struct bitmap *m)
{
	unsigned n = 0;

	pthread_mutex_lock(&m->lock);
	for (unsigned i = 0; i < m->bits; i++)
		n += m->map[i];
	if (n != m->used) {
		fprintf(stderr, "bitmap: %u bits are set, %u should be\n", n, m->used);
		abort();
	}
	pthread_mutex_unlock(&m->lock);
}

void bitmap_release(struct bitmap *m)
{
	free(m->map);
	if (m->ops && m->ops->put)
		m->ops->put(m);
	else
		free(m);
}
