/*
 * A logger that goes through its handlers while one is removed (JDK, Logger).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct handler {
	int records;
};

static struct handler first, second;
static struct handler *handlers[2] = { &first, &second };
static int nhandlers = 2;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int count(void)
{
	pthread_mutex_lock(&lock);
	int n = nhandlers; /* @count */
	pthread_mutex_unlock(&lock);
	return n;
}

static struct handler *handler(int i)
{
	pthread_mutex_lock(&lock);
	struct handler *h = handlers[i]; /* @get */
	pthread_mutex_unlock(&lock);
	return h;
}

static void *log_record(void *arg)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
	for (int i = 0; i < nhandlers; i++)
		handlers[i]->records++;
	pthread_mutex_unlock(&lock);
	(void)count;
	(void)handler;
#else
	int n = count();

	for (int i = 0; i < n; i++)
		handler(i)->records++; /* @use */
#endif
	return arg;
}

static void *remove_handler(void *arg)
{
	pthread_mutex_lock(&lock);
	handlers[--nhandlers] = NULL; /* @remove */
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, log_record, NULL);
	pthread_create(&b, NULL, remove_handler, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d records\n", first.records + second.records);
	return 0;
}
