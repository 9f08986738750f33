/* A pool and its factory: closing takes the locks in one order, evicting in the other. */
#include <pthread.h>
#include <stdlib.h>

struct factory {
	pthread_mutex_t lock;
	int made;
};

struct pool {
	pthread_mutex_t lock;
	struct factory *factory;
	int idle, closed;
};

struct pool *pool_open(void)
{
	struct pool *p = calloc(1, sizeof *p);

	p->factory = calloc(1, sizeof *p->factory);
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->factory->lock, NULL);
	return p;
}

int pool_borrow(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	int got = p->idle > 0;
	if (got)
		p->idle--;
	pthread_mutex_unlock(&p->lock);
	return got;
}

void pool_shutdown(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->closed = 1;
	pthread_mutex_lock(&p->factory->lock);
	p->factory->made -= p->idle;
	p->idle = 0;
	pthread_mutex_unlock(&p->factory->lock);
	pthread_mutex_unlock(&p->lock);
}

void pool_add(struct pool *p)
{
#ifdef FIXED
	pthread_mutex_lock(&p->lock);
	pthread_mutex_lock(&p->factory->lock);
#else
	pthread_mutex_lock(&p->factory->lock);
	pthread_mutex_lock(&p->lock);
#endif
	p->factory->made++;
	p->idle++;
	pthread_mutex_unlock(&p->lock);
	pthread_mutex_unlock(&p->factory->lock);
}

void pool_free(struct pool *p)
{
	free(p->factory);
	free(p);
}
