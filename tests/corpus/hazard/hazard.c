/*
 * Hazard pointers without the second look: a reader announces which route it uses, but the route may have been replaced,
 * and nobody seen to use it, before the announcement.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READERS 2
#define LOOKUPS 16
#define UPDATES 8

struct route {
	char *host;
	int port;
};

static _Atomic(struct route *) current;
static _Atomic(struct route *) hazards[READERS];
static struct route *retired[UPDATES];
static int waiting;

static struct route *route_new(int n)
{
	struct route *r = malloc(sizeof *r);
	char name[32];

	snprintf(name, sizeof name, "host-%d.example", n);
	r->host = strdup(name);
	r->port = 8000 + n;
	return r;
}

static void route_free(struct route *r)
{
	free(r->host);
	r->host = NULL;			/* @clear */
	free(r);			/* @free */
}

static void retire(struct route *r)
{
	for (int i = 0; i < READERS; i++)
		if (atomic_load(&hazards[i]) == r) {	/* @scan */
			retired[waiting++] = r;
			return;
		}
	route_free(r);			/* @unused */
}

static unsigned hash(const char *s)
{
	unsigned h = 5381;

	while (*s)			/* @use */
		h = h * 33 + (unsigned char)*s++;
	return h;
}

static void *reader(void *arg)
{
	int me = *(int *)arg;
	unsigned h = 0;

	for (int i = 0; i < LOOKUPS; i++) {
		struct route *r = atomic_load(&current);	/* @load */
		atomic_store(&hazards[me], r);		/* @announce */
		h += hash(r->host) + r->port;		/* @host */
		atomic_store(&hazards[me], NULL);
	}
	return (void *)(unsigned long)h;
}

static void *updater(void *arg)
{
	(void)arg;
	for (int i = 1; i <= UPDATES; i++)
		retire(atomic_exchange(&current, route_new(i)));	/* @swap */
	return NULL;
}

int main(void)
{
	pthread_t t[READERS], u;
	int name[READERS];

	atomic_store(&current, route_new(0));
	for (int i = 0; i < READERS; i++) {
		name[i] = i;
		pthread_create(&t[i], NULL, reader, &name[i]);
	}
	pthread_create(&u, NULL, updater, NULL);
	for (int i = 0; i < READERS; i++)
		pthread_join(t[i], NULL);
	pthread_join(u, NULL);
	for (int i = 0; i < waiting; i++)
		route_free(retired[i]);
	printf("%d were in use when they were replaced\n", waiting);
	route_free(atomic_load(&current));
	return 0;
}
