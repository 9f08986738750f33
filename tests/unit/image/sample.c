/* What image tests look at: data of every shape, and stops (int3) inside functions. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum colour { RED, GREEN = 5, BLUE };
enum flags { F_READ = 1, F_WRITE = 2, F_EXEC = 4 };

struct point {
	int x, y;
};

struct node {
	struct node *next;
	int value;
};

struct fifo {
	pthread_mutex_t lock;
	int count;
	struct point corner[3];
	struct node *head;
	union {
		uint64_t whole;
		struct {
			uint32_t low, high;
		};
	} u;
	unsigned ready : 1, busy : 3, level : 12;
	char tail[];
};

int counter = -3;
short matrix[4][5];
struct fifo pool = { .count = 7 };
struct fifo *the_fifo;
enum colour colour = GREEN;
enum flags flags = F_READ | F_EXEC;
char letter = 'a';
bool yes = true;
double ratio = 0.1;
float third = 1.5f;
void (*callback)(void);
__thread int per_thread = 42;
int *per_thread_at;
void *calls_at;
struct point points[8];
pthread_mutex_t locks[4];
volatile int sink;

#define STOP() __asm__ volatile("int3" ::: "memory")

static inline __attribute__((always_inline)) int twice(int v)
{
	STOP(); /* line of twice */
	return v * 2 + counter;
}

static inline __attribute__((always_inline)) int quad(int v)
{
	return twice(v) + twice(v + 1); /* line of quad */
}

__attribute__((noinline)) int deep(int n, struct fifo *f)
{
	static int calls;
	int local[4] = { n, n, n, n };
	struct point here = { 1, 2 };

	calls++;
	calls_at = &calls;
	f->count += n;
	if (n == 0) {
		sink = (int)((intptr_t)local + (intptr_t)&here);
		STOP(); /* line of deep */
		return local[2] + here.y + quad(f->count);
	}
	return deep(n - 1, f) + local[n & 3] + here.x; /* line of the call */
}

static void *xmalloc(size_t n)
{
	void *p = malloc(n);

	if (!p)
		abort();
	return p;
}

__attribute__((noinline)) void lists(struct fifo *f)
{
	struct node *n = xmalloc(sizeof *n);

	n->value = 9;
	n->next = NULL;
	f->head = n;
	sink = n->value;
	STOP();
	sink = f->head->value + n->value;
}

int main(void)
{
	struct fifo *f = xmalloc(sizeof *f + 16);

	memset(f, 0, sizeof *f);
	f->count = 1;
	the_fifo = f;
	callback = (void (*)(void))main;
	matrix[2][3] = 1;
	points[4].y = 1;
	per_thread_at = &per_thread;
	sink = deep(3, f);
	lists(f);
	pthread_mutex_lock(&pool.lock);
	return sink & 1;
}
