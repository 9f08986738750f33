/* ConcurrencyKit's ring for many producers and consumers, which is inline. */
#include <ck_ring.h>
#include <stdlib.h>

struct ck_queue {
	ck_ring_t ring;
	ck_ring_buffer_t slots[4];
};

struct ck_queue *ck_queue_new(void)
{
	struct ck_queue *q = calloc(1, sizeof *q);

	ck_ring_init(&q->ring, 4);
	return q;
}

int ck_queue_put(struct ck_queue *q, long value)
{
	return ck_ring_enqueue_mpmc(&q->ring, q->slots, (void *)(value | 1));
}

long ck_queue_get(struct ck_queue *q)
{
	void *v = NULL;

	return ck_ring_dequeue_mpmc(&q->ring, q->slots, &v) ? (long)v : 0;
}

unsigned ck_queue_size(struct ck_queue *q)
{
	return ck_ring_size(&q->ring);
}
