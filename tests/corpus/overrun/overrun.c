/*
 * Room is looked for outside any lock: two threads that see the last free slot both take one, and
 * the second writes over what lies behind the slots. Found out long after, by a comparison in libc.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 8
#define THREADS 3
#define EACH 4

struct list {
	unsigned used;
	char *slot[SLOTS];
	char *end;
};

static struct list *list;

static void *add(void *name)
{
	for (int i = 0; i < EACH; i++) {
		if (list->used < SLOTS) {		/* @room */
			char *s = malloc(24);

			snprintf(s, 24, "%s-%d", (const char *)name, i);
			list->slot[list->used] = s;	/* @enter */
			list->used++;			/* @count */
		}
	}
	return NULL;
}

int main(void)
{
	static char names[THREADS][8] = { "red", "green", "blue" };
	pthread_t threads[THREADS];
	size_t length = 0;

	list = calloc(1, sizeof(*list));
	list->end = strdup("end of list");
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, add, names[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < list->used && i < SLOTS; i++)
		length += strlen(list->slot[i]);	/* @read */
	if (strcmp(list->end, "end of list") != 0)	/* @end */
		abort();				/* @bad */
	printf("length %zu\n", length);
	return 0;
}
