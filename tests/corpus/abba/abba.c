/*
 * ABBA deadlock. A transfer locks the giving account, then the receiving one;
 * two transfers in opposite directions can each hold what the other wants.
 */
#include <pthread.h>
#include <stdio.h>

struct account {
	pthread_mutex_t lock;
	long balance;
};

static struct account alice = {PTHREAD_MUTEX_INITIALIZER, 1000};
static struct account bob = {PTHREAD_MUTEX_INITIALIZER, 1000};

static void transfer(struct account *from, struct account *to, long amount)
{
	pthread_mutex_lock(&from->lock);	/* @first */
	if (from->balance >= amount) {
		pthread_mutex_lock(&to->lock);	/* @second */
		from->balance -= amount;
		to->balance += amount;
		pthread_mutex_unlock(&to->lock);
	}
	pthread_mutex_unlock(&from->lock);
}

static void *pay_rent(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		transfer(&alice, &bob, 100);
	return NULL;
}

static void *pay_back(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		transfer(&bob, &alice, 50);
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, pay_rent, NULL);
	pthread_create(&b, NULL, pay_back, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("alice %ld, bob %ld\n", alice.balance, bob.balance);
	return 0;
}
