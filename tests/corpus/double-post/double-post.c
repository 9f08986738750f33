/*
 * A semaphore as a lock, given back twice. Who finds the account short leaves early and posts; the common exit posts
 * again. From then on two may be inside, and one of two bookings is lost.
 */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#define CLERKS 2
#define BOOKINGS 6

static sem_t lock;
static long booked, refused;

static void book(int amount)
{
	sem_wait(&lock);	/* @wait */
	if (amount > 3) {
		refused++;	/* @refused */
		sem_post(&lock);	/* @early */
		goto out;
	}
	booked++;	/* @booked */
out:
	sem_post(&lock);	/* @post */
}

static void *clerk(void *arg)
{
	for (int i = 0; i < BOOKINGS; i++)
		book(i % 5);
	return arg;
}

int main(void)
{
	pthread_t t[CLERKS];

	sem_init(&lock, 0, 1);
	for (int i = 0; i < CLERKS; i++)
		pthread_create(&t[i], NULL, clerk, NULL);
	for (int i = 0; i < CLERKS; i++)
		pthread_join(t[i], NULL);
	assert(booked + refused == CLERKS * BOOKINGS);	/* @audit */
	printf("%ld booked, %ld refused\n", booked, refused);
	return 0;
}
