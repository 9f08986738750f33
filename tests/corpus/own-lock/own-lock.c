/*
 * Locks of the program's own making: a mutex out of a futex and a spin lock. Both are right. Buyers look into the
 * stock under the mutex and take from it under the mutex, but let it go in between; who was served is counted
 * under the spin lock.
 */
#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUYERS 3

struct mutex {
	atomic_int state; /* 0 free, 1 taken, 2 taken and somebody may wait */
};

static void mutex_lock(struct mutex *m)
{
	int was = 0;

	if (atomic_compare_exchange_strong(&m->state, &was, 1))
		return;
	if (was != 2)
		was = atomic_exchange(&m->state, 2);
	while (was) {
		syscall(SYS_futex, &m->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
		was = atomic_exchange(&m->state, 2);
	}
}

static void mutex_unlock(struct mutex *m)
{
	if (atomic_fetch_sub(&m->state, 1) == 1)	/* @release */
		return;
	atomic_store(&m->state, 0);
	syscall(SYS_futex, &m->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void spin_lock(atomic_flag *f)
{
	while (atomic_flag_test_and_set(f))
		sched_yield();
}

static void spin_unlock(atomic_flag *f)
{
	atomic_flag_clear(f);
}

static struct mutex shelf;
static atomic_flag till = ATOMIC_FLAG_INIT;
int stock = 2, served, visits;

static int in_stock(void)
{
	int n;

	mutex_lock(&shelf);
	n = stock;			/* @look */
	mutex_unlock(&shelf);
	return n;
}

static void take(void)
{
	mutex_lock(&shelf);
	stock--;			/* @take */
	mutex_unlock(&shelf);
}

static void count(int *what)
{
	spin_lock(&till);
	++*what;
	spin_unlock(&till);
}

static void *buyer(void *arg)
{
	count(&visits);
	if (in_stock() > 0) {			/* @asks */
		count(&served);
		take();				/* @takes */
	}
	return arg;
}

int main(void)
{
	pthread_t buyers[BUYERS];

	for (int i = 0; i < BUYERS; i++)
		pthread_create(&buyers[i], NULL, buyer, NULL);
	for (int i = 0; i < BUYERS; i++)
		pthread_join(buyers[i], NULL);
	assert(stock >= 0);		/* @audit */
	return 0;
}
