/* Three neighbours and three forks: a deadlock takes all three. */
#include <pthread.h>
#include <stdlib.h>

struct table {
	pthread_mutex_t fork[3];
	int meals[3];
};

struct table *table_new(void)
{
	struct table *t = calloc(1, sizeof *t);

	for (int i = 0; i < 3; i++)
		pthread_mutex_init(&t->fork[i], NULL);
	return t;
}

static void eat(struct table *t, int a, int b)
{
#ifdef FIXED
	if (a > b) {
		int c = a;

		a = b;
		b = c;
	}
#endif
	pthread_mutex_lock(&t->fork[a]);
	pthread_mutex_lock(&t->fork[b]);
	t->meals[a]++;
	pthread_mutex_unlock(&t->fork[b]);
	pthread_mutex_unlock(&t->fork[a]);
}

void table_first(struct table *t) { eat(t, 0, 1); }
void table_second(struct table *t) { eat(t, 1, 2); }
void table_third(struct table *t) { eat(t, 2, 0); }
void table_free(struct table *t) { free(t); }
