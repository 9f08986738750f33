#include "k.h"
static int p[2];
static void clean(void *a)
{
	SAY("cleanup %ld", (long)a);
}
static void *sleeper(void *a)
{
	pthread_cleanup_push(clean, (void *)1);
	pthread_cleanup_push(clean, (void *)2);
	char c;
	read(p[0], &c, 1);
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return 0;
}
static volatile int spin_ready;
static void *asyncer(void *a)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
	pthread_cleanup_push(clean, (void *)3);
	spin_ready = 1;
	for (;;)
		__asm__ volatile("" ::: "memory");
	pthread_cleanup_pop(0);
	return 0;
}
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waiting;
static void unlock(void *a)
{
	pthread_mutex_unlock(&m);
	SAY("unlocked");
}
static void *waiter(void *a)
{
	pthread_mutex_lock(&m);
	waiting = 1;
	pthread_cleanup_push(unlock, 0);
	for (;;)
		pthread_cond_wait(&c, &m);
	pthread_cleanup_pop(0);
	return 0;
}
static sem_t s;
static void *disabled(void *a)
{
	int o;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &o);
	sem_post(&s);
	while (sem_trywait((sem_t *)a))
		sched_yield();
	SAY("still here");
	pthread_setcancelstate(o, 0);
	pthread_testcancel();
	return (void *)5;
}
int main(void)
{
	pthread_t t;
	void *v;
	pipe(p);
	pthread_create(&t, 0, sleeper, 0);
	usleep(1000);
	pthread_cancel(t);
	pthread_join(t, &v);
	SAY("%d", v == PTHREAD_CANCELED);
	pthread_create(&t, 0, asyncer, 0);
	while (!spin_ready)
		sched_yield();
	pthread_cancel(t);
	pthread_join(t, &v);
	SAY("%d", v == PTHREAD_CANCELED);
	pthread_create(&t, 0, waiter, 0);
	for (int w = 0; !w;) {
		pthread_mutex_lock(&m);
		w = waiting;
		pthread_mutex_unlock(&m);
	}
	pthread_cancel(t);
	pthread_join(t, &v);
	SAY("%d lock %d", v == PTHREAD_CANCELED, pthread_mutex_trylock(&m));
	sem_t go;
	sem_init(&s, 0, 0);
	sem_init(&go, 0, 0);
	pthread_create(&t, 0, disabled, &go);
	sem_wait(&s);
	pthread_cancel(t);
	sem_post(&go);
	pthread_join(t, &v);
	SAY("%d", v == PTHREAD_CANCELED);
	return 0;
}
