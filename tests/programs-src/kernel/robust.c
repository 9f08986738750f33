#include "k.h"
static pthread_mutex_t m[3];
static int kinds[3] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
static void *dies(void *a)
{
	pthread_mutex_t *x = a;
	pthread_mutex_lock(x);
	return 0;
}
static void *waits(void *a)
{
	int r = pthread_mutex_lock(a);
	if (r == EOWNERDEAD) {
		pthread_mutex_consistent(a);
	}
	pthread_mutex_unlock(a);
	return (void *)(long)r;
}
int main(void)
{
	for (int pi = 0; pi < 2; pi++)
		for (int i = 0; i < 3; i++) {
			pthread_mutexattr_t at;
			pthread_mutexattr_init(&at);
			pthread_mutexattr_settype(&at, kinds[i]);
			pthread_mutexattr_setrobust(&at, PTHREAD_MUTEX_ROBUST);
			if (pi)
				pthread_mutexattr_setprotocol(&at, PTHREAD_PRIO_INHERIT);
			pthread_mutex_init(&m[i], &at);
			pthread_t t;
			pthread_create(&t, 0, dies, &m[i]);
			pthread_join(t, 0);
			int r = pthread_mutex_trylock(&m[i]);
			SAY("%d/%d trylock %s", pi, i, ername(r));
			r = pthread_mutex_consistent(&m[i]);
			SAY("consistent %s", ername(r));
			SAY("unlock %s", ername(pthread_mutex_unlock(&m[i])));
			pthread_create(&t, 0, dies, &m[i]);
			pthread_join(t, 0);
			void *v;
			pthread_create(&t, 0, waits, &m[i]);
			pthread_join(t, &v);
			SAY("waiter %s", ername((long)v));
			pthread_create(&t, 0, dies, &m[i]);
			pthread_join(t, 0);
			SAY("lock %s unlock %s lock %s", ername(pthread_mutex_lock(&m[i])),
			    ername(pthread_mutex_unlock(&m[i])), ername(pthread_mutex_lock(&m[i])));
		}
	return 0;
}
