/*
 * More targets of indirect branches than the small table of table.c has buckets, each function with
 * a return of its own. With an argument a second thread begins while there are few. What was
 * called before the table grew is called again afterwards.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define F(n) static unsigned f##n(unsigned x) { return x * 3u + n##u; }
#define F10(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
#define F100(n) F10(n##0) F10(n##1) F10(n##2) F10(n##3) F10(n##4) F10(n##5) F10(n##6) F10(n##7) \
	F10(n##8) F10(n##9)
F100(1) F100(2) F100(3) F100(4) F100(5) F100(6) F100(7)

#define P(n) f##n,
#define P10(n) P(n##0) P(n##1) P(n##2) P(n##3) P(n##4) P(n##5) P(n##6) P(n##7) P(n##8) P(n##9)
#define P100(n) P10(n##0) P10(n##1) P10(n##2) P10(n##3) P10(n##4) P10(n##5) P10(n##6) P10(n##7) \
	P10(n##8) P10(n##9)
static unsigned (*const functions[])(unsigned) = {
	P100(1) P100(2) P100(3) P100(4) P100(5) P100(6) P100(7)
};
#define COUNT (sizeof functions / sizeof *functions)

static unsigned call(unsigned from, unsigned to, unsigned x)
{
	for (unsigned i = from; i < to; i++)
		x = functions[i](x);
	return x;
}

static void *all(void *p)
{
	*(unsigned *)p = call(0, COUNT, *(unsigned *)p);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned x = call(0, 50, 1), y = 2;
	pthread_t t;

	(void)argv;
	if (argc > 1 && pthread_create(&t, NULL, all, &y))
		return 1;
	for (int round = 0; round < 3; round++)
		x = call(0, COUNT, x);
	x = call(0, 50, x);
	if (argc > 1)
		pthread_join(t, NULL);
	printf("%u %u\n", x, y);
	return 0;
}
