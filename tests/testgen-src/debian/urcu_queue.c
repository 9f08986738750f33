/* liburcu's wait-free queue, which is inline: enqueues need nothing, dequeues the lock that comes with it. */
#define _LGPL_SOURCE
#include <stdlib.h>
#include <urcu/wfcqueue.h>

struct item {
	struct cds_wfcq_node node;
	long value;
};

struct wait_free {
	struct cds_wfcq_head head;
	struct cds_wfcq_tail tail;
};

struct wait_free *wait_free_new(void)
{
	struct wait_free *q = calloc(1, sizeof *q);

	cds_wfcq_init(&q->head, &q->tail);
	return q;
}

void wait_free_put(struct wait_free *q, long value)
{
	struct item *i = malloc(sizeof *i);

	cds_wfcq_node_init(&i->node);
	i->value = value;
	cds_wfcq_enqueue(&q->head, &q->tail, &i->node);
}

long wait_free_get(struct wait_free *q)
{
	struct cds_wfcq_node *n = cds_wfcq_dequeue_blocking(&q->head, &q->tail);
	long value = n ? caa_container_of(n, struct item, node)->value : -1;

	free(n ? caa_container_of(n, struct item, node) : NULL);
	return value;
}

int wait_free_empty(struct wait_free *q)
{
	return cds_wfcq_empty(&q->head, &q->tail);
}
