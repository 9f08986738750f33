/* An intrusive list whose nodes belong to the caller; it is initialised in place. Popping looks before it locks. */
#include <pthread.h>
#include <stddef.h>

struct ilist_node {
	struct ilist_node *next, *prev;
	int key;
};

struct ilist {
	struct ilist_node head;
	pthread_mutex_t lock;
	size_t length;
};

void ilist_node_init(struct ilist_node *n, int key)
{
	n->next = n->prev = NULL;
	n->key = key;
}

void ilist_init(struct ilist *l)
{
	l->head.next = l->head.prev = &l->head;
	l->length = 0;
	pthread_mutex_init(&l->lock, NULL);
}

/* -1: it is in a list. */
int ilist_add(struct ilist *l, struct ilist_node *n)
{
	int status = -1;

	pthread_mutex_lock(&l->lock);
	if (!n->next) {
		n->next = &l->head;
		n->prev = l->head.prev;
		n->prev->next = n;
		l->head.prev = n;
		l->length++;
		status = 0;
	}
	pthread_mutex_unlock(&l->lock);
	return status;
}

int ilist_remove(struct ilist *l, struct ilist_node *n)
{
#ifndef FIXED
	if (!n->next)
		return -1;
#endif
	pthread_mutex_lock(&l->lock);
#ifdef FIXED
	if (!n->next) {
		pthread_mutex_unlock(&l->lock);
		return -1;
	}
#endif
	n->next->prev = n->prev;
	n->prev->next = n->next;
	n->next = n->prev = NULL;
	l->length--;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

size_t ilist_length(struct ilist *l)
{
	pthread_mutex_lock(&l->lock);
	size_t n = l->length;
	pthread_mutex_unlock(&l->lock);
	return n;
}
