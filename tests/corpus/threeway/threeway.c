/*
 * Three-way deadlock. No two of these functions lock in opposite order; the
 * three together do: catalogue -> journal -> cache -> catalogue.
 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t catalogue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static int catalogued, journalled, cached;

static void *insert(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&catalogue_lock);	/* @hold1 */
		catalogued++;
		pthread_mutex_lock(&journal_lock);	/* @want1 */
		journalled++;
		pthread_mutex_unlock(&journal_lock);
		pthread_mutex_unlock(&catalogue_lock);
	}
	return NULL;
}

static void *checkpoint(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&journal_lock);	/* @hold2 */
		journalled++;
		pthread_mutex_lock(&cache_lock);	/* @want2 */
		cached++;
		pthread_mutex_unlock(&cache_lock);
		pthread_mutex_unlock(&journal_lock);
	}
	return NULL;
}

static void *evict(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&cache_lock);	/* @hold3 */
		cached--;
		pthread_mutex_lock(&catalogue_lock);	/* @want3 */
		catalogued--;
		pthread_mutex_unlock(&catalogue_lock);
		pthread_mutex_unlock(&cache_lock);
	}
	return NULL;
}

int main(void)
{
	void *(*const jobs[])(void *) = {insert, checkpoint, evict};
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, jobs[i], NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("catalogued %d, journalled %d, cached %d\n", catalogued, journalled, cached);
	return 0;
}
