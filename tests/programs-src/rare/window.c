/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two threads make the same object, each once in its life, some hundred thousand steps after it began. */
#include "work.h"

static int *volatile object;
static int made;

static void *user(void *arg)
{
	uint64_t x = work((uintptr_t)arg, 300000 + 170000 * (unsigned)(uintptr_t)arg);

	if (!object) {
		int *o = malloc(sizeof *o);

		*o = (int)x;
		__atomic_fetch_add(&made, 1, __ATOMIC_SEQ_CST);
		object = o;
	}
	return NULL;
}

int main(void)
{
	THREADS(2, user, user);
	assert(made == 1);
	return 0;
}
