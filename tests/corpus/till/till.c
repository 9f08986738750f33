/*
 * A cashier adds up what is in the till with a lock, the guest pays with one; but the cashier forgets it
 * where a bill takes long. Beside the sum, in the same word, lies the counter of the cashier's loop:
 * it changes thousands of times, and nobody else ever looks at it.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define BILLS 6

static volatile struct {
	int step; /* the cashier's alone */
	int paid; /* everybody's */
} till;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int price(int bill)
{
	int sum = 0;

	for (till.step = 0; till.step < 2000; till.step++)
		sum += till.step * bill & 1;
	return sum ? 2 : 1;
}

static void *cashier(void *arg)
{
	for (int i = 1; i <= BILLS; i++) {
		int before = till.paid;		/* @read */

		till.paid = before + price(i);	/* @write */
	}
	return arg;
}

static void *guest(void *arg)
{
	for (int i = 0; i < BILLS; i++) {
		pthread_mutex_lock(&lock);
		till.paid += 3;			/* @pay */
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, cashier, NULL);
	pthread_create(&b, NULL, guest, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d\n", till.paid);
	assert(till.paid == BILLS * 3 + BILLS / 2 * 3); /* @audit */
	return 0;
}
