/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory for generated code and for the frame, at random places: see exec_space.h. */
#include "analyzer/machine/exec_space.h"

#include "analyzer/machine/exec_guard.h"

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

#ifndef MACHINE_TEST_NO_WALL

#define PAGE 4096u
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

/* The pages of shared memory once more, at a place of their own, to be executed. */
static uint8_t *second_view(uint8_t *first, size_t size)
{
	void *at = reserve(size, PROT_NONE);

	if (!at)
		return NULL;
	if (mremap(first, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at ||
	    mprotect(at, size, PROT_READ | PROT_EXEC)) {
		munmap(at, size);
		return NULL;
	}
	return at;
}

bool exec_space_new(struct exec_space *s, size_t size)
{
	*s = (struct exec_space){ .size = size };
	void *at = reserve(size, PROT_NONE);

	if (!at)
		return false;
	s->write = mmap(at, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	if (s->write != at) {
		munmap(at, size);
		s->write = NULL;
		return false;
	}
	s->run = second_view(s->write, size);
	if (!s->run) {
		exec_space_free(s);
		return false;
	}
	/* Two processes that wrote into the same pages would execute each other's code. */
	madvise(s->write, size, MADV_DONTFORK);
	madvise(s->run, size, MADV_DONTFORK);
	list(s);
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
