/*
 * Read lock upgraded. A name is looked up under the read lock; when it is not
 * there, the read lock is given up, the write lock taken and the name entered,
 * without looking again: two threads can both enter it.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define THREADS 3
#define ROOM 16

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static const char *names[ROOM];
static int count;
static const char *const wanted[] = {"red", "green", "blue", "green"};

static int lookup(const char *name)
{
	for (int i = 0; i < count; i++)		/* @check */
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

static int intern(const char *name)
{
	int id;

	pthread_rwlock_rdlock(&lock);		/* @lock */
	id = lookup(name);
	pthread_rwlock_unlock(&lock);		/* @unlock */
	if (id >= 0)
		return id;
	pthread_rwlock_wrlock(&lock);		/* @lock */
	id = count;				/* @read */
	names[id] = name;			/* @enter */
	count = id + 1;				/* @count */
	pthread_rwlock_unlock(&lock);		/* @unlock */
	return id;
}

static void *user(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		intern(wanted[i]);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, user, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("names %d\n", count);
	fflush(stdout);
	assert(count == 3);			/* @audit */
	return 0;
}
