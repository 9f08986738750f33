/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory for generated code and for the frame, at random places: see exec_space.h. */
#include "analyzer/engine/exec_space.h"

#include "analyzer/engine/exec_guard.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

static struct exec_space *spaces;

bool exec_space_holds(uintptr_t pc)
{
	for (const struct exec_space *s = spaces; s; s = s->next)
		if (pc - (uintptr_t)s->run < s->size)
			return true;
	return false;
}

static void list(struct exec_space *s)
{
	s->next = spaces;
	spaces = s;
}

static void unlist(const struct exec_space *s)
{
	struct exec_space **at = &spaces;

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
}

#define PAGE 4096u

#ifndef MACHINE_TEST_NO_WALL

#define TRIES 16
/* Above all that the loader and sanitizers use, below where the kernel puts things by itself. */
#define LOWEST (1ull << 45)
#define SPREAD (3ull << 44)

static void *reserve(size_t size, int protection)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t random;

		if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
			break;
		void *want = (void *)(LOWEST + random % SPREAD / PAGE * PAGE);
		void *at = mmap(want, size, protection,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

		if (at == want)
			return at;
		if (at != MAP_FAILED) /* a kernel that does not know MAP_FIXED_NOREPLACE */
			munmap(at, size);
	}
	void *at = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

#else /* the wall is down, for a test of the one behind it: at distances that a stranger knows */

#define LOWEST (1ull << 45)
#define DISTANCE (1ull << 32)

static void *reserve(size_t size, int protection)
{
	static uint64_t next = LOWEST;
	void *at = mmap((void *)next, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	next += DISTANCE;
	return at == MAP_FAILED ? NULL : at;
}

#endif

/* The pages of shared memory once more, at a place that is reserved, to be executed. */
static bool second_view(uint8_t *first, size_t size, void *at)
{
	return mremap(first, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at && !mprotect(at, size, PROT_READ | PROT_EXEC);
}

static bool first_view(void *at, size_t size)
{
	return mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == at;
}

/* Two processes that wrote into the same pages would execute each other's code. */
static void inherit(const struct exec_space *s, bool is)
{
	madvise(s->write, s->size, is ? MADV_DOFORK : MADV_DONTFORK);
	madvise(s->run, s->size, is ? MADV_DOFORK : MADV_DONTFORK);
}

bool exec_space_new(struct exec_space *s, size_t size)
{
	*s = (struct exec_space){ .size = size };
	s->write = reserve(size, PROT_NONE);
	s->run = s->write ? reserve(size, PROT_NONE) : NULL;
	if (!s->run || !first_view(s->write, size) || !second_view(s->write, size, s->run)) {
		exec_space_free(s);
		return false;
	}
	inherit(s, false);
	list(s);
	return true;
}

void exec_spaces_fork(bool begin)
{
	for (const struct exec_space *s = spaces; s; s = s->next)
		inherit(s, begin);
}

/* What was never written is not there, and stays so. */
static bool own(const struct exec_space *s)
{
	size_t pages = s->size / PAGE;
	unsigned char *there = malloc(pages);
	uint8_t *kept = reserve(s->size, PROT_READ | PROT_WRITE);
	bool ok = there && kept && !mincore(s->write, s->size, there);

	for (size_t i = 0; ok && i < pages; i++)
		if (there[i] & 1)
			memcpy(kept + i * PAGE, s->write + i * PAGE, PAGE);
	ok = ok && first_view(s->write, s->size) && second_view(s->write, s->size, s->run);
	for (size_t i = 0; ok && i < pages; i++)
		if (there[i] & 1)
			memcpy(s->write + i * PAGE, kept + i * PAGE, PAGE);
	if (ok)
		inherit(s, false);
	if (kept)
		munmap(kept, s->size);
	free(there);
	return ok;
}

bool exec_spaces_own(void)
{
	for (const struct exec_space *s = spaces; s; s = s->next)
		if (!own(s))
			return false;
	return true;
}

void exec_space_free(struct exec_space *s)
{
	unlist(s);
	if (s->write)
		munmap(s->write, s->size);
	if (s->run)
		munmap(s->run, s->size);
	s->write = s->run = NULL;
}

void *exec_random_map(size_t size)
{
	return reserve(size, PROT_READ | PROT_WRITE);
}
