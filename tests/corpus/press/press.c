/* Read, convert, print: the converter counts an item before it is there. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define ITEMS 12
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int raw[ITEMS], cooked[ITEMS];
static int nraw, ncooked;

static int wait_for(int *count, int i)
{
	pthread_mutex_lock(&m);
	while (*count <= i)
		pthread_cond_wait(&more, &m);
	pthread_mutex_unlock(&m);
	return i;
}

static void count(int *counter)
{
	pthread_mutex_lock(&m);
	++*counter;	/* @count */
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&m);
}

static void *reader(void *arg)
{
	for (int i = 0; i < ITEMS; i++) {
		raw[i] = i + 100;
		count(&nraw);
	}
	return arg;
}

static void *converter(void *arg)
{
	for (int i = 0; i < ITEMS; i++) {
		int x = raw[wait_for(&nraw, i)];
		count(&ncooked);	/* @early */
		cooked[i] = x * 2;	/* @cook */
	}
	return arg;
}

static void *printer(void *arg)
{
	for (int i = 0; i < ITEMS; i++) {
		int x = cooked[wait_for(&ncooked, i)];	/* @print */
		assert(x == (i + 100) * 2);	/* @assert */
	}
	return arg;
}

int main(void)
{
	void *(*stage[3])(void *) = { reader, converter, printer };
	pthread_t t[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, stage[i], NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return 0;
}
