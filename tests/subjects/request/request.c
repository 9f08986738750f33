/*
 * A request's parameters, parsed when somebody first asks for one (Apache Tomcat, Request).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name, *value;
static int parsed;
static size_t length;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void parse(void)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	if (!parsed) {
		parsed = 1; /* @flag */
		name = "user";
		value = "guest"; /* @value */
	}
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
}

static void *ask(void *arg)
{
	parse();
	const char *v = value; /* @read */
	size_t n = strlen(v); /* @use */

	__atomic_fetch_add(&length, n, __ATOMIC_SEQ_CST);
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, ask, NULL);
	pthread_create(&b, NULL, ask, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%s: %zu\n", name, length);
	return 0;
}
