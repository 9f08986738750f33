/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Driven by what comes in: two readers of one pipe take the halves of a message each when they read at the same time. */
#include "work.h"

static int ends[2];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int torn;

/* A message is two bytes that are alike, read one by one. */
static void *reader(void *arg)
{
	unsigned char first, second;

	for (int i = 0; i < 20; i++) {
		work((uintptr_t)arg + (unsigned)i, 10000);
		if (read(ends[0], &first, 1) != 1 || read(ends[0], &second, 1) != 1)
			break;
		pthread_mutex_lock(&m);
		torn += first != second;
		pthread_mutex_unlock(&m);
	}
	return NULL;
}

int main(void)
{
	if (pipe(ends))
		return 2;
	for (int i = 0; i < 40; i++) {
		unsigned char message[2] = { (unsigned char)i, (unsigned char)i };

		if (write(ends[1], message, 2) != 2)
			return 2;
	}
	THREADS(2, reader, reader);
	assert(!torn);
	return 0;
}
