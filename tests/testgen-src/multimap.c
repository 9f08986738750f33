/* A multimap whose view walks the entries without the map's lock. */
#include <pthread.h>
#include <stdlib.h>

struct entry {
	struct entry *next;
	int key, value;
};

typedef struct {
	pthread_rwlock_t lock;
	struct entry *first;
	int n;
} multimap_t;

multimap_t *multimap_new(void)
{
	multimap_t *m = calloc(1, sizeof *m);

	pthread_rwlock_init(&m->lock, NULL);
	return m;
}

void multimap_put(multimap_t *m, int key, int value)
{
	struct entry *e = malloc(sizeof *e);

	e->key = key;
	e->value = value;
	pthread_rwlock_wrlock(&m->lock);
	e->next = m->first;
	m->first = e;
	m->n++;
	pthread_rwlock_unlock(&m->lock);
}

int multimap_remove_all(multimap_t *m, int key)
{
	int removed = 0;

	pthread_rwlock_wrlock(&m->lock);
	for (struct entry **p = &m->first; *p;) {
		struct entry *e = *p;

		if (e->key != key) {
			p = &e->next;
			continue;
		}
		*p = e->next;
		free(e);
		removed++;
	}
	m->n -= removed;
	pthread_rwlock_unlock(&m->lock);
	return removed;
}

/* The view of a key's values. */
int multimap_sum(multimap_t *m, int key)
{
	int sum = 0;

#ifdef FIXED
	pthread_rwlock_rdlock(&m->lock);
#endif
	for (struct entry *e = m->first; e; e = e->next)
		if (e->key == key)
			sum += e->value;
#ifdef FIXED
	pthread_rwlock_unlock(&m->lock);
#endif
	return sum;
}

void multimap_free(multimap_t *m)
{
	while (m->first) {
		struct entry *e = m->first;

		m->first = e->next;
		free(e);
	}
	free(m);
}
