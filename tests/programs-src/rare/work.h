/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Work that takes time and shares nothing: where in it another thread is, is left to chance. */
#ifndef RARE_WORK_H
#define RARE_WORK_H

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static __attribute__((noinline)) uint64_t work(uint64_t x, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull + (x >> 29);
	/* Whether or not anybody wants to know. */
	__asm__ volatile("" : "+r"(x));
	return x;
}

#define THREADS(n, ...)                                                        \
	do {                                                                   \
		void *(*const f[])(void *) = { __VA_ARGS__ };                  \
		pthread_t t[n];                                                \
		for (intptr_t i = 0; i < (n); i++)                             \
			pthread_create(&t[i], NULL, f[i], (void *)(i + 1));    \
		for (int i = 0; i < (n); i++)                                  \
			pthread_join(t[i], NULL);                              \
	} while (0)

#endif
