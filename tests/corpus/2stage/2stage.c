/*
 * Two stages, two locks. An update writes the first value under the first lock
 * and the dependent one under the second; a reader that comes between the two
 * stages sees values that never belonged together.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define UPDATES 4
#define LOOKS 4
#define READERS 2

static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second_lock = PTHREAD_MUTEX_INITIALIZER;
static int first = 1, second = 2;
static int looks[READERS];

static void *updater(void *arg)
{
	(void)arg;
	for (int i = 0; i < UPDATES; i++) {
		int value = i * 10 + 11;

		pthread_mutex_lock(&first_lock);	/* @lock */
		first = value;				/* @stage1 */
		pthread_mutex_unlock(&first_lock);	/* @unlock */

		pthread_mutex_lock(&second_lock);	/* @lock */
		second = value + 1;			/* @stage2 */
		pthread_mutex_unlock(&second_lock);	/* @unlock */
	}
	return NULL;
}

static void *reader(void *arg)
{
	long me = (long)arg;

	for (int i = 0; i < LOOKS; i++) {
		int a, b;

		pthread_mutex_lock(&first_lock);	/* @lock */
		a = first;				/* @look1 */
		pthread_mutex_unlock(&first_lock);	/* @unlock */

		pthread_mutex_lock(&second_lock);	/* @lock */
		b = second;				/* @look2 */
		pthread_mutex_unlock(&second_lock);	/* @unlock */
		assert(b >= a + 1);			/* @use */
		looks[me]++;
	}
	return NULL;
}

int main(void)
{
	pthread_t update, readers[READERS];

	for (long i = 0; i < READERS; i++)
		pthread_create(&readers[i], NULL, reader, (void *)i);
	pthread_create(&update, NULL, updater, NULL);
	pthread_join(update, NULL);
	for (int i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	printf("first %d, second %d, looks %d\n", first, second, looks[0] + looks[1]);
	return 0;
}
