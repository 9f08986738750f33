/*
 * Wrong lock. Hits are counted under the statistics lock; the flush moves the
 * counter to the archive under the archive lock. Both hold "a lock".
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define HITS 20
#define FLUSHES 4

static pthread_mutex_t stats_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t archive_lock = PTHREAD_MUTEX_INITIALIZER;
static int hits;
static int last_seen;
static int archived;

static void *counter(void *arg)
{
	(void)arg;
	for (int i = 0; i < HITS; i++) {
		int now;

		pthread_mutex_lock(&stats_lock);
		now = hits;				/* @read */
		last_seen = now;
		hits = now + 1;				/* @write */
		pthread_mutex_unlock(&stats_lock);
	}
	return NULL;
}

static void flush(void)
{
	pthread_mutex_lock(&archive_lock);
	archived += hits;				/* @flush */
	hits = 0;					/* @reset */
	pthread_mutex_unlock(&archive_lock);
}

static void *flusher(void *arg)
{
	(void)arg;
	for (int i = 0; i < FLUSHES; i++)
		flush();
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, counter, NULL);
	pthread_create(&b, NULL, flusher, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	flush();
	printf("archived %d, last seen %d\n", archived, last_seen);
	fflush(stdout);
	assert(archived == HITS);			/* @audit */
	return 0;
}
