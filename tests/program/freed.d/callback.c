/* callback: it is called with an argument that was freed when it was unregistered. */
#include <pthread.h>
#include <stdlib.h>
struct timer { void (*fire)(struct timer *); int left; char name[24]; };
static struct timer *registered;
static volatile long spun;
static void tick(struct timer *t)
{
	if (t->left-- <= 0)		/* use */
		abort();
}
static void *loop(void *arg)
{
	for (int i = 0; i < 300; i++) {
		struct timer *t = registered;
		for (int k = 0; k < 80; k++)
			spun += k;
		if (t)
			t->fire(t);		/* call */
	}
	return arg;
}
int main(void)
{
	pthread_t t;
	registered = malloc(sizeof *registered);
	registered->fire = tick;
	registered->left = 100000;
	pthread_create(&t, NULL, loop, NULL);
	for (int k = 0; k < 20000; k++)
		spun += k;
	struct timer *old = registered;
	registered = NULL;
	old->left = 0;
	free(old);			/* free */
	pthread_join(t, NULL);
	return 0;
}
