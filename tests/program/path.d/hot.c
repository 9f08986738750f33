/* Long enough for fragments to be made anew along what is hot, with the ways changing after that. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long state = 1;

static unsigned roll(unsigned long *s)
{
	*s = *s * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(*s >> 40);
}

static __attribute__((noinline)) long add(long a) { return a + 1; }
static __attribute__((noinline)) long twice(long a) { return a & 1 ? a * 2 : a; }
static __attribute__((noinline)) long deep(long a, int n) { return n ? deep(a, n - 1) + 1 : a; }

/* Calls, returns to two places, calls through a pointer, branches that mostly go one way. */
static __attribute__((noinline)) long work(unsigned long *s, unsigned often, long (*way)(long))
{
	long sum = 0;

	for (int i = 0; i < 400000; i++) {
		unsigned r = roll(s) % 100;

		if (r < often)
			sum += way(sum);
		else
			sum ^= twice(i);
		if (r == 7)
			sum += deep(i, 5);
		if (r % 50 == often % 50)
			sum -= twice(sum);
	}
	return sum;
}

/* Many targets, of which a few are usual: one way, then another. Those in libc are far away. */
static __attribute__((noinline)) long less(long a) { return a - 3; }
static __attribute__((noinline)) long half(long a) { return a / 2; }
static __attribute__((noinline)) long flip(long a) { return ~a; }
static __attribute__((noinline)) long five(long a) { return a | 5; }
static long (*const ways[])(long) = { add, add, add, add, labs, less, less, half, half, flip, five, twice, labs, labs, labs, five };

static __attribute__((noinline)) long choose(unsigned long *s, unsigned from, unsigned n, int times)
{
	long sum = 0;

	for (int i = 0; i < times; i++)
		switch ((sum = ways[from + roll(s) % n](sum)) & 7) {
		case 0: sum += 9; break;
		case 1: sum ^= 0x55; break;
		case 2: sum -= i; break;
		case 3: sum += twice(i); break;
		case 5: sum *= 3; break;
		case 6: sum += add(sum); break;
		}
	return sum;
}

static void *other(void *p)
{
	unsigned long s = 99;

	*(long *)p = (work(&s, 50, add) + choose(&s, 0, 16, 300000)) & 0xffff;
	return NULL;
}

static void tick(int sig) { (void)sig; }

int main(void)
{
	pthread_t t;
	long theirs, sum = 0;

	signal(SIGUSR1, tick);
	sum += choose(&state, 1, 5, 1000000);
	if (pthread_create(&t, NULL, other, &theirs))
		return 1;
	sum += work(&state, 97, add);
	raise(SIGUSR1);
	sum += work(&state, 97, twice);
	sum += work(&state, 3, add);
	sum += choose(&state, 0, 8, 100000);
	sum += choose(&state, 1, 5, 100000);
	sum += choose(&state, 9, 7, 100000);
	if (pthread_join(t, NULL))
		return 1;
	printf("%ld %ld\n", sum, theirs);
	return 0;
}
