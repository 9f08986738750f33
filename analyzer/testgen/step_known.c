/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of the C and C++ libraries whose effects are known from their arguments: not stepped through. */
#include "analyzer/testgen/heap.h"
#include "analyzer/testgen/step.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static struct known {
	const char *name;
	enum step_effect effect;
	uint64_t at;
} known[] = {
	{ "pthread_mutex_lock", STEP_LOCKS, 0 }, { "pthread_mutex_trylock", STEP_TRIES, 0 },
	{ "pthread_mutex_timedlock", STEP_TRIES, 0 }, { "pthread_mutex_unlock", STEP_UNLOCKS, 0 },
	{ "pthread_spin_lock", STEP_LOCKS, 0 }, { "pthread_spin_trylock", STEP_TRIES, 0 },
	{ "pthread_spin_unlock", STEP_UNLOCKS, 0 }, { "pthread_rwlock_wrlock", STEP_LOCKS, 0 },
	{ "pthread_rwlock_trywrlock", STEP_TRIES, 0 }, { "pthread_rwlock_rdlock", STEP_SHARES, 0 },
	{ "pthread_rwlock_tryrdlock", STEP_TRIES, 0 }, { "pthread_rwlock_unlock", STEP_UNLOCKS, 0 },
	{ "mtx_lock", STEP_LOCKS, 0 }, { "mtx_unlock", STEP_UNLOCKS, 0 }, { "flockfile", STEP_LOCKS, 0 },
	{ "funlockfile", STEP_UNLOCKS, 0 }, { "pthread_cond_wait", STEP_WAITS, 0 },
	{ "malloc", STEP_ALLOCATES, 0 }, { "calloc", STEP_ALLOCATES, 0 }, { "strdup", STEP_ALLOCATES, 0 },
	{ "strndup", STEP_ALLOCATES, 0 }, { "_Znwm", STEP_ALLOCATES, 0 }, { "_Znam", STEP_ALLOCATES, 0 },
	{ "free", STEP_FREES, 0 }, { "__libc_free", STEP_FREES, 0 }, { "_ZdlPv", STEP_FREES, 0 }, { "_ZdlPvm", STEP_FREES, 0 },
	{ "_ZdaPv", STEP_FREES, 0 }, { "_ZdaPvm", STEP_FREES, 0 }, { "realloc", STEP_REALLOCATES, 0 },
	{ "memcpy", STEP_COPIES, 0 }, { "memmove", STEP_COPIES, 0 }, { "mempcpy", STEP_COPIES, 0 },
	{ "__memcpy_chk", STEP_COPIES, 0 }, { "__memmove_chk", STEP_COPIES, 0 }, { "memset", STEP_FILLS, 0 },
	{ "strlen", STEP_READS, 0 }, { "strdup", STEP_READS, 0 }, { "strchr", STEP_READS, 0 },
	{ "atoi", STEP_READS, 0 }, { "memchr", STEP_READS, 0 }, { "strcmp", STEP_COMPARES, 0 },
	{ "strncmp", STEP_COMPARES, 0 }, { "memcmp", STEP_COMPARES, 0 }, { "strcasecmp", STEP_COMPARES, 0 },
	{ "strcpy", STEP_COPIES_TEXT, 0 }, { "strncpy", STEP_COPIES_TEXT, 0 }, { "strcat", STEP_COPIES_TEXT, 0 },
	{ "stpcpy", STEP_COPIES_TEXT, 0 },
};
#define NKNOWN (sizeof known / sizeof *known)

void step_known_init(void)
{
	for (size_t i = 0; i < NKNOWN; i++)
		known[i].at = heap_ours(known[i].name) ? heap_ours(known[i].name) : (uint64_t)dlsym(RTLD_DEFAULT, known[i].name);
}

enum step_effect step_effect_of(uint64_t pc)
{
	for (size_t i = 0; i < NKNOWN; i++)
		if (known[i].at == pc)
			return known[i].effect;
	return STEP_NOTHING;
}
