/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a cache under a rwlock; with BUG not looked at again under the writer's lock */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static int *entry;
static int made;
static void *lookup(void *a)
{
	pthread_rwlock_rdlock(&l);
	int *e = entry;
	pthread_rwlock_unlock(&l);
	if (!e) {
		pthread_rwlock_wrlock(&l);
#ifndef BUG
		if (!entry)
#endif
		{
			entry = malloc(4);
			*entry = 7;
			made++;
		}
		e = entry;
		pthread_rwlock_unlock(&l);
	}
	assert(*e == 7);
	return a;
}
int main(void)
{
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, lookup, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	assert(made == 1);
	return 0;
}
