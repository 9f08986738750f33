/*
 * A data source keeps one pool for each user, made when it is first asked for
 * (Apache DBCP, PerUserPoolDataSource).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pool {
	int active;
};

static struct pool *pools[2];
static int made;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct pool *pool_of(int user)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	if (!pools[user]) { /* @check */
		struct pool *p = calloc(1, sizeof *p);

		made++;
		pools[user] = p; /* @register */
	}
	struct pool *found = pools[user];
	__atomic_fetch_add(&found->active, 1, __ATOMIC_SEQ_CST);
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
	return found;
}

static void *borrow(void *arg)
{
	pool_of(0);
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, borrow, NULL);
	pthread_create(&b, NULL, borrow, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	assert(pools[0]->active == 2); /* @lost */
	printf("%d active\n", pools[0]->active);
	return 0;
}
