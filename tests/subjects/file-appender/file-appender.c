/*
 * A record is appended while the file is closed (Log4j, FileAppender).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct writer {
	int lines;
};

static struct writer *writer;
static int is_open = 1, lost;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *append(void *arg)
{
	pthread_mutex_lock(&lock);
	int go = is_open; /* @check */
#ifndef CORRECT
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&lock);
#endif
	if (go)
		writer->lines++; /* @use */
	else
		lost++;
	pthread_mutex_unlock(&lock);
	return arg;
}

static void *close_file(void *arg)
{
	pthread_mutex_lock(&lock);
	is_open = 0;
	writer = NULL; /* @close */
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(void)
{
	pthread_t a, b;

	static struct writer w;

	writer = &w;
	pthread_create(&a, NULL, append, NULL);
	pthread_create(&b, NULL, close_file, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("lost %d\n", lost);
	return 0;
}
