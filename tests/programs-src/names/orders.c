/* Run by suite.sh: two threads count orders, and an update is lost. It says how many there are and exits as if all was well. */
#include <pthread.h>
#include <stdio.h>

enum state { OPEN = 1, PAID = 2, SENT = 4 };
static struct { enum state last; int count; } orders;

static void *take(void *arg)
{
	for (int i = 0; i < 4; i++) {
		int seen = orders.count;

		orders.last = i % 2 ? PAID | SENT : OPEN;
		orders.count = seen + 1;
	}
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, take, NULL);
	pthread_create(&b, NULL, take, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d of 8\n", orders.count);
	return orders.count != 8;
}
