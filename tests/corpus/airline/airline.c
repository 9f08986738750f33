/*
 * Overselling. Each seller looks whether a seat is left, writes the ticket and
 * counts the seat as sold; the count is locked, look and count together are not.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define SELLERS 7
#define SEATS 6

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sold;
static char tickets[SELLERS][32];

static void *seller(void *arg)
{
	long me = (long)arg;

	if (sold >= SEATS)			/* @check */
		return NULL;
	snprintf(tickets[me], sizeof(tickets[me]), "ticket of seller %ld", me);
	pthread_mutex_lock(&lock);		/* @lock */
	sold++;					/* @sell */
	pthread_mutex_unlock(&lock);		/* @unlock */
	return NULL;
}

int main(void)
{
	pthread_t sellers[SELLERS];
	int printed = 0;

	for (long i = 0; i < SELLERS; i++)
		pthread_create(&sellers[i], NULL, seller, (void *)i);
	for (int i = 0; i < SELLERS; i++) {
		pthread_join(sellers[i], NULL);
		printed += tickets[i][0] != 0;
	}
	printf("sold %d, printed %d\n", sold, printed);
	fflush(stdout);
	assert(sold <= SEATS);			/* @audit */
	return 0;
}
