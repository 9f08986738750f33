/*
 * append() of a buffer that another thread shortens (JDK, StringBuffer).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct text {
	pthread_mutex_t lock;
	int length;
	char chars[8];
} other = { PTHREAD_MUTEX_INITIALIZER, 3, "abc" }, mine = { PTHREAD_MUTEX_INITIALIZER, 0, "" };

static int length(struct text *t)
{
	pthread_mutex_lock(&t->lock);
	int n = t->length; /* @length */
	pthread_mutex_unlock(&t->lock);
	return n;
}

static void get_chars(struct text *t, int n, char *to)
{
	pthread_mutex_lock(&t->lock);
	assert(n <= t->length); /* @get */
	for (int i = 0; i < n; i++)
		to[i] = t->chars[i];
	pthread_mutex_unlock(&t->lock);
}

static void *append(void *arg)
{
#ifdef CORRECT
	pthread_mutex_lock(&other.lock);
	for (int i = 0; i < other.length; i++)
		mine.chars[i] = other.chars[i];
	mine.length = other.length;
	pthread_mutex_unlock(&other.lock);
	(void)length;
	(void)get_chars;
#else
	int n = length(&other);

	get_chars(&other, n, mine.chars);
	mine.length = n;
#endif
	return arg;
}

static void *shorten(void *arg)
{
	pthread_mutex_lock(&other.lock);
	other.length = 0; /* @cut */
	pthread_mutex_unlock(&other.lock);
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, append, NULL);
	pthread_create(&b, NULL, shorten, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d characters\n", mine.length);
	return 0;
}
