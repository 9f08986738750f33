/*
 * A single instance that is made when it is first asked for (Log4j, NullAppender).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct appender {
	int threshold;
};

static struct appender *instance;
static int busy;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct appender *get_instance(void)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	if (!instance && !busy) { /* @check */
		busy = 1; /* @busy */
		struct appender *a = calloc(1, sizeof *a);

		a->threshold = 3;
		instance = a; /* @publish */
	}
	struct appender *found = instance; /* @read */
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
	return found;
}

static void *ask(void *arg)
{
	struct appender *a = get_instance();

	assert(a->threshold == 3); /* @use */
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, ask, NULL);
	pthread_create(&b, NULL, ask, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d\n", instance->threshold);
	return 0;
}
