/* Check, then act, on two plain variables: no pthread call between the two. */
#include <assert.h>
#include <pthread.h>

static volatile int open_ = 1, users, late;

static void *user(void *arg)
{
	(void)arg;
	if (open_) {
		users++;
		if (!open_)
			late = 1;
		users--;
	}
	return NULL;
}

static void *closer(void *arg)
{
	(void)arg;
	open_ = 0;
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, 0, user, 0);
	pthread_create(&b, 0, closer, 0);
	pthread_join(a, 0);
	pthread_join(b, 0);
	assert(!late);
	return 0;
}
