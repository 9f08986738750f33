/*
 * A register of names whose functions lock as they should. Who registers asks first whether the name is there, in the
 * caller, and puts it in by another call: two may be told that it is not.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define NAMES 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int names[2 * NAMES], count;

static int has(int name)
{
	int found = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < count; i++)	/* @look */
		found |= names[i] == name;
	pthread_mutex_unlock(&lock);	/* @release */
	return found;
}

static void insert(int name)
{
	pthread_mutex_lock(&lock);
	names[count] = name;	/* @name */
	count++;	/* @insert */
	pthread_mutex_unlock(&lock);
}

static void *client(void *arg)
{
	for (int i = 0; i < NAMES; i++)
		if (!has(i))	/* @check */
			insert(i);	/* @act */
	return arg;
}

int main(void)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, client, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert(count == NAMES);	/* @audit */
	printf("%d names\n", count);
	return 0;
}
