/* Ways to reach memory: through callers, library code, arrays on the heap, opaque types. */
#include <stdlib.h>
#include <string.h>

#define STOP() __asm__ volatile("int3" ::: "memory")

struct cell {
	int key;
	long value;
};

struct shared {
	int count;
	struct cell *cells;
	struct cell **index;
	struct secret *secret;
};

void *shared_at, *cells_at, *numbers_at; /* for the test, and of no type */
volatile long sink;

extern struct secret *make_secret(void);
extern void touch_secret(struct secret *s);

__attribute__((noinline)) void use(void *p)
{
	sink += (long)p;
}

static int compare(const void *a, const void *b)
{
	if (sink++ == 0)
		STOP(); /* 1: the structure belongs to a caller beyond libc */
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) void sort(struct shared *owner)
{
	int v[2] = { 2, 1 };

	sink = 0;
	qsort(v, 2, sizeof *v, compare);
	use(v);
	use(owner);
}

__attribute__((noinline)) void forgotten(struct shared *parameter)
{
	parameter->count++;
	use(NULL);
	use(NULL);
	STOP(); /* 2: at -O2 the parameter is only known from the caller */
	sink++;
}

__attribute__((noinline)) void arrays(struct shared *s, int *numbers)
{
	STOP(); /* 3 */
	use(s);
	use(numbers);
}

int main(void)
{
	struct shared *s = calloc(1, sizeof *s);
	int *numbers = calloc(100, sizeof *numbers);

	s->cells = calloc(10, sizeof *s->cells);
	s->index = calloc(10, sizeof *s->index);
	s->index[3] = calloc(1, sizeof **s->index);
	s->secret = make_secret();
	cells_at = s->cells;
	numbers_at = numbers;
	sort(s);
	forgotten(s);
	shared_at = s;
	arrays(s, numbers);
	touch_secret(s->secret);
	STOP(); /* 4 */
	use(s);
	return 0;
}
