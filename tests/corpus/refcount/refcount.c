/*
 * A reference count in the style of an old httpd cache: it is taken down atomically, and then looked at. Both who let go
 * may find it zero, and free the entry twice.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ENTRIES 20

struct entry {
	int refs;
	char *body;
};

static struct entry entries[ENTRIES];

static void let_go(struct entry *e)
{
	__atomic_fetch_sub(&e->refs, 1, __ATOMIC_SEQ_CST);	/* @down */
	if (e->refs == 0) {	/* @look */
		if (!e->body)	/* @gone */
			abort();	/* @abort */
		free(e->body);
		e->body = NULL;	/* @clear */
	}
}

static void *reader(void *arg)
{
	for (int i = 0; i < ENTRIES; i++)
		let_go(&entries[i]);
	return arg;
}

int main(void)
{
	pthread_t t[2];

	for (int i = 0; i < ENTRIES; i++) {
		entries[i].refs = 2;
		entries[i].body = malloc(32);
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, reader, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%d entries\n", ENTRIES);
	return 0;
}
