/* A string buffer that can be inserted into itself: the length of the source is read before the lock is held. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sbuf {
	pthread_mutex_t lock;
	char chars[256];
	size_t n;
};

int sbuf_create(struct sbuf **out)
{
	pthread_mutexattr_t a;
	struct sbuf *b = calloc(1, sizeof *b);

	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&b->lock, &a);
	*out = b;
	return 0;
}

void sbuf_append(struct sbuf *b, const char *s)
{
	size_t n = strlen(s);

	pthread_mutex_lock(&b->lock);
	if (b->n + n <= sizeof b->chars) {
		memcpy(b->chars + b->n, s, n);
		b->n += n;
	}
	pthread_mutex_unlock(&b->lock);
}

void sbuf_delete_char(struct sbuf *b)
{
	pthread_mutex_lock(&b->lock);
	if (b->n)
		b->n--;
	pthread_mutex_unlock(&b->lock);
}

static void insert(struct sbuf *b, struct sbuf *from, size_t n)
{
	if (n > from->n) {
		fprintf(stderr, "sbuf: index %zu is out of range\n", n);
		abort();
	}
	if (b->n + n > sizeof b->chars)
		return;
	memmove(b->chars + b->n, from->chars, n);
	b->n += n;
}

void sbuf_append_buffer(struct sbuf *b, struct sbuf *from)
{
#ifdef FIXED
	pthread_mutex_lock(&b->lock);
	if (from == b)
		insert(b, from, from->n);
#else
	size_t n = from->n;

	pthread_mutex_lock(&b->lock);
	if (from == b)
		insert(b, from, n);
#endif
	pthread_mutex_unlock(&b->lock);
}

void sbuf_destroy(struct sbuf *b)
{
	free(b);
}
