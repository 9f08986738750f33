/* A hash table that grows under its lock and is searched without it. */
#include <pthread.h>
#include <stdlib.h>

struct node {
	struct node *next;
	unsigned key;
	int value;
};

struct table {
	pthread_mutex_t lock;
	struct node **buckets;
	unsigned size, n;
};

struct table *table_new(void)
{
	struct table *t = calloc(1, sizeof *t);

	pthread_mutex_init(&t->lock, NULL);
	t->size = 1;
	t->buckets = calloc(t->size, sizeof *t->buckets);
	return t;
}

static void grow(struct table *t)
{
	unsigned size = t->size * 2;
	struct node **buckets = calloc(size, sizeof *buckets), **old = t->buckets;

	for (unsigned i = 0; i < t->size; i++)
		for (struct node *n = old[i], *next; n; n = next) {
			next = n->next;
			n->next = buckets[n->key % size];
			buckets[n->key % size] = n;
		}
	t->buckets = buckets;
	t->size = size;
	free(old);
}

void table_put(struct table *t, unsigned key, int value)
{
	struct node *n = malloc(sizeof *n);

	n->key = key;
	n->value = value;
	pthread_mutex_lock(&t->lock);
	if (t->n >= t->size)
		grow(t);
	n->next = t->buckets[key % t->size];
	t->buckets[key % t->size] = n;
	t->n++;
	pthread_mutex_unlock(&t->lock);
}

int table_get(struct table *t, unsigned key)
{
	int value = -1;

#ifdef FIXED
	pthread_mutex_lock(&t->lock);
#endif
	struct node **buckets = t->buckets;
	for (struct node *n = buckets[key % t->size]; n; n = n->next)
		if (n->key == key)
			value = n->value;
#ifdef FIXED
	pthread_mutex_unlock(&t->lock);
#endif
	return value;
}

void table_free(struct table *t)
{
	free(t->buckets);
	free(t);
}
