/*
 * Lost update seen much later. Each teller books into its own accounts and into
 * the bank's total; the total is read and written back without a lock, and only
 * the audit after closing time notices.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define TELLERS 2
#define ACCOUNTS 4
#define BOOKINGS 12

struct account {
	pthread_mutex_t lock;
	long balance;
};

static struct account accounts[TELLERS * ACCOUNTS];
static long bank_total;
static long journal[TELLERS][BOOKINGS];

static void book(int teller, int n, struct account *account, long amount)
{
	long before;

	pthread_mutex_lock(&account->lock);
	account->balance += amount;
	pthread_mutex_unlock(&account->lock);
	before = bank_total;			/* @read */
	journal[teller][n] = before;
	bank_total = before + amount;		/* @write */
}

static void *teller(void *arg)
{
	int me = (int)(long)arg;

	for (int n = 0; n < BOOKINGS; n++)
		book(me, n, &accounts[me * ACCOUNTS + n % ACCOUNTS], 10 + n);
	return NULL;
}

static void audit(void)
{
	long sum = 0, largest = 0;

	for (int i = 0; i < TELLERS * ACCOUNTS; i++) {
		sum += accounts[i].balance;
		if (accounts[i].balance > largest)
			largest = accounts[i].balance;
	}
	printf("accounts %ld, largest %ld, total %ld, before the last %ld\n", sum, largest, bank_total,
	       journal[0][BOOKINGS - 1]);
	fflush(stdout);
	assert(sum == bank_total);		/* @audit */
}

int main(void)
{
	pthread_t tellers[TELLERS];

	for (int i = 0; i < TELLERS * ACCOUNTS; i++)
		pthread_mutex_init(&accounts[i].lock, NULL);
	for (long i = 0; i < TELLERS; i++)
		pthread_create(&tellers[i], NULL, teller, (void *)i);
	for (int i = 0; i < TELLERS; i++)
		pthread_join(tellers[i], NULL);
	audit();
	return 0;
}
