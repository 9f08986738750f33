/* SPDX-License-Identifier: GPL-2.0-or-later */
/* made once; with BUG by a flag of its own */
#include <assert.h>
#include <pthread.h>
static pthread_once_t o = PTHREAD_ONCE_INIT;
static volatile int inited, val;
static void init(void)
{
	val = 9;
}
static void *w(void *a)
{
#ifdef BUG
	if (!inited) {
		inited = 1;
		val = 9;
	}
#else
	pthread_once(&o, init);
#endif
	assert(val == 9);
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
