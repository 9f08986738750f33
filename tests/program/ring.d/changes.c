// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * changes ROUNDS: much memory of which little changes, in all the ways in which a page can become something else: written, given back,
 * unmapped and mapped again, closed for a while, a file's again, somebody else's kind of mapping. What is read is looked at, so
 * who follows the run with a page of another moment takes another branch.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul
#define ZEROS (40ul << 20)
#define DATA (8ul << 20)
#define PAGES 16ul /* of each kind of area */

static int over;
static volatile unsigned other;

static void check(int good, const char *what, unsigned round)
{
	if (good)
		return;
	printf("wrong: %s in round %u\n", what, round);
	fflush(stdout);
	_exit(3);
}

static char *area(void)
{
	char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(p != MAP_FAILED, "a mapping", 0);
	return p;
}

static void again(char *p, int flags)
{
	check(mmap(p, PAGES * PAGE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0) == p, "a mapping", 1);
}

static void fill(char *p, unsigned round)
{
	for (unsigned i = 0; i < PAGES; i++)
		memset(p + i * PAGE, (int)(round + i) | 1, PAGE);
}

static int holds(const char *p, unsigned round)
{
	for (unsigned i = 0; i < PAGES; i++)
		if (p[i * PAGE + round % PAGE] != (char)((round + i) | 1))
			return 0;
	return 1;
}

static int is_zero(const char *p)
{
	for (unsigned i = 0; i < PAGES; i++)
		if (p[i * PAGE] || p[i * PAGE + PAGE - 1])
			return 0;
	return 1;
}

static void *computes(void *arg)
{
	unsigned h = 1;

	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 500; i++)
			h = h * 1664525 + 1013904223;
		other = h;
		usleep(200);
	}
	return arg;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atol(argv[1]) : 100, h = 7;
	char *zeros = malloc(ZEROS), *data = malloc(DATA), *given = area(), *closed = area(), *moved = area(), *kind = area();
	FILE *f = tmpfile();
	pthread_t t;

	memset(zeros, 0, ZEROS);
	for (size_t i = 0; i < DATA; i += 4)
		*(uint32_t *)(data + i) = h = h * 1664525 + 1013904223;
	for (unsigned i = 0; i < PAGES * PAGE; i++)
		fputc('f', f);
	fflush(f);
	char *file = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(f), 0);

	check(file != MAP_FAILED, "a file", 0);
	pthread_create(&t, NULL, computes, NULL);
	for (unsigned r = 0; r < rounds; r++) {
		size_t at = (h = h * 1664525 + 1013904223) % (DATA / 4) * 4;

		*(uint32_t *)(data + at) = r;
		fill(given, r);
		fill(closed, r);
		fill(moved, r);
		fill(kind, r);
		file[r % (PAGES * PAGE)] = 'x';
		mprotect(closed, PAGES * PAGE, PROT_NONE);
		usleep(3000);
		check(holds(given, r) && holds(moved, r) && holds(kind, r), "what was written", r);
		check(*(uint32_t *)(data + at) == r && !zeros[(size_t)h % ZEROS], "old memory", r);
		check(file[r % (PAGES * PAGE)] == 'x', "a changed file", r);
		madvise(given, PAGES * PAGE, MADV_DONTNEED);
		madvise(file, PAGES * PAGE, MADV_DONTNEED);
		munmap(moved, PAGES * PAGE);
		again(kind, r % 2 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_ANONYMOUS);
		usleep(3000);
		mprotect(closed, PAGES * PAGE, PROT_READ | PROT_WRITE);
		check(holds(closed, r), "what was closed", r);
		again(moved, MAP_PRIVATE | MAP_ANONYMOUS);
		usleep(3000);
		check(is_zero(given) && is_zero(moved) && is_zero(kind), "what was given back", r);
		check(file[r % (PAGES * PAGE)] == 'f' && file[0] == 'f', "a file's own bytes", r);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	printf("as it should be\n");
	return 0;
}
