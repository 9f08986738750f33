/* Three bugs: a deadlock of two locks taken in two orders, a pointer published before what it points to, a lost update. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static volatile int moved, hits;
struct box { int full; };
static struct box *volatile published;
static void *forth(void *a)
{
	pthread_mutex_lock(&left);
	pthread_mutex_lock(&right);
	moved++;
	pthread_mutex_unlock(&right);
	pthread_mutex_unlock(&left);
	return a;
}
static void *back(void *a)
{
	pthread_mutex_lock(&right);
	pthread_mutex_lock(&left);
	moved--;
	pthread_mutex_unlock(&left);
	pthread_mutex_unlock(&right);
	return a;
}
static void *publish(void *a)
{
	struct box *b = calloc(1, sizeof *b);
	published = b;
	b->full = 1;
	return a;
}
static void *look(void *a)
{
	struct box *b = published;
	if (b && !b->full)
		abort();
	return a;
}
static void *hit(void *a) { hits++; return a; }
int main(void)
{
	void *(*const work[])(void *) = { forth, back, publish, look, hit, hit };
	pthread_t t[6];
	for (int i = 0; i < 6; i++)
		pthread_create(&t[i], NULL, work[i], NULL);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	assert(hits == 2);
	return 0;
}
