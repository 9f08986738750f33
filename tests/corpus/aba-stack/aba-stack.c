/*
 * ABA. A lock-free stack of free cells (C11 atomics). pop reads the head and its
 * next and swaps them; between the reads and the swap others may pop that head
 * and one more and push the head back, so the swap succeeds with a stale next:
 * a cell in use is handed out again.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define CELLS 4
#define THREADS 3
#define ROUNDS 6

struct cell {
	struct cell *_Atomic next;
	atomic_int used;
	int owner;
};

static struct cell cells[CELLS];
static struct cell *_Atomic head;
static int empty[THREADS];

static void push(struct cell *cell)
{
	struct cell *old = atomic_load(&head);				/* @push */

	do
		atomic_store(&cell->next, old);				/* @link */
	while (!atomic_compare_exchange_weak(&head, &old, cell));	/* @push */
}

static struct cell *pop(void)
{
	struct cell *old = atomic_load(&head);			/* @head */
	struct cell *next;

	do {
		if (!old)
			return NULL;
		next = atomic_load(&old->next);			/* @next */
	} while (!atomic_compare_exchange_weak(&head, &old, next));	/* @swap */
	return old;
}

static struct cell *claim(int me)
{
	struct cell *cell = pop();

	if (!cell)
		return NULL;
	assert(atomic_fetch_add(&cell->used, 1) == 0);		/* @use */
	cell->owner = me;
	return cell;
}

static void release(struct cell *cell)
{
	cell->owner = -1;
	atomic_fetch_sub(&cell->used, 1);			/* @release */
	push(cell);
}

static void *worker(void *arg)
{
	int me = (int)(long)arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct cell *a = claim(me);
		struct cell *b = claim(me);

		if (a)
			release(a);
		else
			empty[me]++;
		if (b)
			release(b);
		else
			empty[me]++;
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	int left = 0;

	for (int i = 0; i < CELLS; i++)
		push(&cells[i]);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, worker, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (left <= CELLS && pop())
		left++;
	printf("cells left %d\n", left);
	fflush(stdout);
	assert(left == CELLS);					/* @audit */
	return 0;
}
