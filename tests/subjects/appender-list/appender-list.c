/*
 * A list of appenders is asked for one while another thread removes them all
 * (Log4j, AppenderAttachableImpl).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list {
	int size;
	int items[2];
};

static struct list *volatile appenders;
static int found;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_attached(int appender)
{
	int is = 0;

#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	if (appenders) { /* @check */
		int n = appenders->size; /* @size */

		for (int i = 0; i < n && !is; i++)
			is = appenders->items[i] == appender; /* @item */
	}
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
	return is;
}

static void remove_all(void)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	if (appenders) {
		int n = appenders->size;

		for (int i = 0; i < n; i++)
			appenders->items[i] = 0;
		appenders->size = 0;
		appenders = NULL; /* @remove */
	}
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
}

static void *asks(void *arg)
{
	found = is_attached(5);
	return arg;
}

static void *removes(void *arg)
{
	remove_all();
	return arg;
}

int main(void)
{
	pthread_t a, b;

	static struct list l = { 1, { 5 } };

	appenders = &l;
	pthread_create(&a, NULL, asks, NULL);
	pthread_create(&b, NULL, removes, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("found %d\n", found);
	return 0;
}
