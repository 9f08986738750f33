/*
 * A ledger that locks itself. Whoever writes an entry holds the lock, and an entry that fills the page has the page
 * closed by a function that takes the same lock: it waits for itself, whatever the other thread does.
 */
#include <pthread.h>
#include <stdio.h>

#define PAGE 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int entries, pages;

static void close_page(void)
{
	pthread_mutex_lock(&lock);	/* @again */
	pages++;
	entries = 0;
	pthread_mutex_unlock(&lock);
}

static void enter(int amount)
{
	pthread_mutex_lock(&lock);	/* @first */
	entries += amount > 0;
	if (entries == PAGE)
		close_page();
	pthread_mutex_unlock(&lock);
}

static void *clerk(void *arg)
{
	for (int i = 0; i < PAGE; i++)
		enter(i + 1);
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, clerk, NULL);
	pthread_create(&b, NULL, clerk, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d pages, %d entries\n", pages, entries);
	return 0;
}
