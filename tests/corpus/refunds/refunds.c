/*
 * Accounts, each with a lock. A payment locks the two by number, as it ought to be; a refund goes the way the money goes,
 * from the payee back to the payer.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#define ACCOUNTS 5
#define ORDERS 8

struct account {
	pthread_mutex_t lock;
	long cents;
};

struct order {
	int payer, payee;
	long cents;
	bool paid;
};

static struct account accounts[ACCOUNTS];
static struct order orders[ORDERS];
static long refused;

static void lock_both(struct account *a, struct account *b)
{
	struct account *low = a < b ? a : b, *high = a < b ? b : a;

	pthread_mutex_lock(&low->lock);		/* @low */
	pthread_mutex_lock(&high->lock);	/* @high */
}

static void unlock_both(struct account *a, struct account *b)
{
	pthread_mutex_unlock(&a->lock);
	pthread_mutex_unlock(&b->lock);
}

static bool pay(struct order *o)
{
	struct account *from = &accounts[o->payer], *to = &accounts[o->payee];

	lock_both(from, to);			/* @both */
	bool enough = from->cents >= o->cents;
	if (enough) {
		from->cents -= o->cents;
		to->cents += o->cents;
	}
	unlock_both(from, to);
	return enough;
}

static bool refund(const struct order *o)
{
	struct account *from = &accounts[o->payee], *to = &accounts[o->payer];
	bool enough;

	pthread_mutex_lock(&from->lock);	/* @payee */
	enough = from->cents >= o->cents;
	if (enough) {
		from->cents -= o->cents;
		pthread_mutex_lock(&to->lock);	/* @payer */
		to->cents += o->cents;
		pthread_mutex_unlock(&to->lock);
	}
	pthread_mutex_unlock(&from->lock);
	return enough;
}

static void *cashier(void *arg)
{
	(void)arg;
	for (int i = 0; i < ORDERS; i++) {
		orders[i].paid = pay(&orders[i]);	/* @pays */
		if (!orders[i].paid)
			__atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *complaints(void *arg)
{
	static const struct order returned[] = { { 1, 3, 20, true }, { 0, 2, 30, true }, { 4, 1, 10, true } };

	(void)arg;
	for (size_t i = 0; i < sizeof returned / sizeof returned[0]; i++)
		if (!refund(&returned[i]))	/* @refunds */
			__atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(void)
{
	pthread_t t[2];
	long total = 0;

	for (int i = 0; i < ACCOUNTS; i++) {
		pthread_mutex_init(&accounts[i].lock, NULL);
		accounts[i].cents = 1000;
	}
	for (int i = 0; i < ORDERS; i++)
		orders[i] = (struct order){ i % ACCOUNTS, (i * 2 + 1) % ACCOUNTS, 50 + i, false };
	orders[4].payee = 2;	/* nobody pays to himself */
	pthread_create(&t[0], NULL, cashier, NULL);
	pthread_create(&t[1], NULL, complaints, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < ACCOUNTS; i++)
		total += accounts[i].cents;
	printf("%ld in all, %ld refused\n", total, refused);
	return total != ACCOUNTS * 1000;
}
