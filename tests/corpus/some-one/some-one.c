/*
 * One place too few. Each guest takes the next seat, under the lock as it ought to be, and there are more guests than
 * seats: always some one has none. Who that is depends on the order.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define GUESTS 4
#define SEATS 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int next_seat;
static pthread_t seats[SEATS];

static void *guest(void *arg)
{
	int seat;

	pthread_mutex_lock(&lock);
	seat = next_seat++;
	pthread_mutex_unlock(&lock);
	assert(seat < SEATS);	/* @full */
	seats[seat] = pthread_self();
	return arg;
}

int main(void)
{
	pthread_t t[GUESTS];

	for (int i = 0; i < GUESTS; i++)
		pthread_create(&t[i], NULL, guest, NULL);
	for (int i = 0; i < GUESTS; i++)
		pthread_join(t[i], NULL);
	printf("%d seats taken\n", next_seat);
	return 0;
}
