/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Atomics only, and still wrong: "am I the last one?" and "one less" are two steps, so two holders both let go and neither frees,
 * or the last two both free. */
#include <stdatomic.h>
#include "work.h"

static atomic_int holders = 2, freed;

static void *holder(void *arg)
{
	work((uintptr_t)arg, 200000 + 300000 * (unsigned)(uintptr_t)arg);
	if (atomic_load(&holders) == 1)
		atomic_fetch_add(&freed, 1);
	else
		atomic_fetch_sub(&holders, 1);
	return NULL;
}

int main(void)
{
	THREADS(2, holder, holder);
	assert(freed == 1);
	return 0;
}
