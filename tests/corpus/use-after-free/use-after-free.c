/*
 * Use after free. A worker fetches a session from the table under the lock and
 * goes on using it without a reference; the logout removes and frees it.
 * The allocator's own link overwrites the first field, a pointer.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SESSIONS 4

struct user {
	const char *name;
	int quota;
};

struct session {
	struct user *user;
	int id;
	int requests;
};

static struct user users[SESSIONS] = {{"ann", 5}, {"ben", 6}, {"cid", 7}, {"dee", 8}};
static struct session *table[SESSIONS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static int served, refused;

static struct session *find(int id)
{
	struct session *s;

	pthread_mutex_lock(&table_lock);	/* @lock */
	s = table[id];				/* @find */
	pthread_mutex_unlock(&table_lock);	/* @unlock */
	return s;
}

static void *worker(void *arg)
{
	(void)arg;
	for (int i = 0; i < SESSIONS; i++) {
		struct session *s = find(i);

		if (s && s->user->quota > 0)	/* @use */
			served++;
		else
			refused++;
	}
	return NULL;
}

static void logout(int id)
{
	struct session *s;

	pthread_mutex_lock(&table_lock);	/* @lock */
	s = table[id];
	table[id] = NULL;			/* @remove */
	pthread_mutex_unlock(&table_lock);	/* @unlock */
	free(s);				/* @free */
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < SESSIONS; i++) {
		table[i] = malloc(sizeof(*table[i]));
		table[i]->user = &users[i];
		table[i]->id = i;
		table[i]->requests = 0;
	}
	pthread_create(&thread, NULL, worker, NULL);
	for (int i = SESSIONS - 1; i >= 0; i--)
		logout(i);
	pthread_join(thread, NULL);
	printf("served %d, refused %d\n", served, refused);
	return 0;
}
