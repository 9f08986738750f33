/* SPDX-License-Identifier: GPL-2.0-or-later */
/* who does not get the lock gives up; with BUG it goes on */
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int in, skipped;
static void *w(void *a)
{
	int ok = !pthread_mutex_trylock(&m);
#ifndef BUG
	if (!ok) {
		__atomic_add_fetch(&skipped, 1, __ATOMIC_SEQ_CST);
		return a;
	}
#endif
	int v = __atomic_add_fetch(&in, 1, __ATOMIC_SEQ_CST);
	assert(v == 1);
	__atomic_sub_fetch(&in, 1, __ATOMIC_SEQ_CST);
	if (ok)
		pthread_mutex_unlock(&m);
	return a;
}
int main(void)
{
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, w, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	return 0;
}
