/*
 * Three threads wait for one condition, having come in this order: a, b, c. Then there are three
 * signals, each when the one before it has been heard; who hears one writes its name. With an argument the
 * signals come all at once.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int waiting, tokens;
static char order[8];
static int n;

/* As std::condition_variable::wait does it: one pointer to both, and a jump at the end instead of a call. */
struct both {
	pthread_mutex_t *lock;
	pthread_cond_t *ready;
};

static __attribute__((noinline)) int wait_for(const struct both *b)
{
	return pthread_cond_wait(b->ready, b->lock);
}

static void *waiter(void *name)
{
	const struct both both = { &lock, &ready };

	pthread_mutex_lock(&lock);
	waiting++;
	while (!tokens)
		wait_for(&both);
	tokens--;
	order[n++] = *(const char *)name;
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void until(const int *what, int value)
{
	for (int there = 0; !there; sched_yield()) {
		pthread_mutex_lock(&lock);
		there = *what == value;
		pthread_mutex_unlock(&lock);
	}
}

int main(int argc, char **argv)
{
	pthread_t t[3];
	static char names[] = "abc";

	(void)argv;
	for (int i = 0; i < 3; i++) {
		pthread_create(&t[i], NULL, waiter, &names[i]);
		until(&waiting, i + 1);
	}
	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&lock);
		tokens++;
		pthread_cond_signal(&ready);
		pthread_mutex_unlock(&lock);
		if (argc == 1)
			until(&n, i + 1);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	puts(order);
	return 0;
}
