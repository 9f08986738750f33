/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For build/faulty/libcsched.so, which is never installed: system calls of the shim's own that fail (program/safe-faults).
 *
 * The file that $CSCHED_TEST_FAULTS names is shared by a program and its children. Each place in the shim that makes a system
 * call has a row there, with how often it came by; the place that the test has chosen fails from its n-th time to its m-th. Calls
 * whose number is known only at run time are the program's own, made for it: they are left alone.
 */
#include "preload/raw.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>

#define MOST_PLACES 2048u
#define NAME "CSCHED_TEST_FAULTS="
#define SHORT 10000 /* not an error: half is written, or the first part */

static struct area {
	uint32_t place, from, to; /* offset in the library; which times */
	int32_t error;
	uint32_t failed; /* how often it did */
	uint32_t used;
	struct {
		uint32_t place, nr, count;
	} row[MOST_PLACES];
} *area, nobody;

extern const char __ehdr_start __attribute__((visibility("hidden")));

static long call(long nr, long a, long b, long c, long d, long e)
{
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = 0;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* The value in our environment as it was at the start; NULL: none. */
static const char *path_of(char *buf, long size)
{
	long fd = call(SYS_openat, AT_FDCWD, (long)"/proc/self/environ", O_RDONLY | O_CLOEXEC, 0, 0), n = 0, got = 1;

	while (fd >= 0 && got > 0 && n < size - 1) {
		got = call(SYS_read, fd, (long)buf + n, size - 1 - n, 0, 0);
		n += got > 0 ? got : 0;
	}
	if (fd >= 0)
		call(SYS_close, fd, 0, 0, 0, 0);
	buf[n] = 0;
	for (long i = 0; i < n; i += (long)strlen(buf + i) + 1)
		if (!memcmp(buf + i, NAME, sizeof NAME - 1))
			return buf + i + sizeof NAME - 1;
	return NULL;
}

static struct area *find(void)
{
	static char buf[64 << 10];
	const char *path = path_of(buf, sizeof buf);
	long fd = path ? call(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0) : -1, at = -1;
	struct area *a = &nobody;

	if (fd >= 0) {
		/* call() has five arguments: the sixth, the offset, is zero. */
		at = call(SYS_mmap, 0, sizeof *a, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
		call(SYS_close, fd, 0, 0, 0, 0);
	}
	if (!raw_failed(at))
		a = (struct area *)at;
	__atomic_store_n(&area, a, __ATOMIC_RELEASE);
	return a;
}

/* The row of a place; a new one for a new place. NULL: there is no room. */
static uint32_t *count_at(struct area *a, uint32_t place, uint32_t nr)
{
	for (uint32_t i = 0; i < MOST_PLACES; i++) {
		uint32_t at = (place * 2654435761u + i) % MOST_PLACES, none = 0;

		if (__atomic_compare_exchange_n(&a->row[at].place, &none, place, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
			a->row[at].nr = nr;
			__atomic_add_fetch(&a->used, 1, __ATOMIC_SEQ_CST);
			none = place;
		}
		if (none == place)
			return &a->row[at].count;
	}
	return NULL;
}

__attribute__((noinline)) long raw_fault(long nr, long second, long *third)
{
	struct area *a = __atomic_load_n(&area, __ATOMIC_ACQUIRE);
	uint32_t place = (uint32_t)((const char *)__builtin_return_address(0) - &__ehdr_start);

	a = a ? a : find();
	/* Who wakes others cannot fail. */
	if (a == &nobody || (nr == SYS_futex && (second & FUTEX_CMD_MASK) == FUTEX_WAKE))
		return 0;
	uint32_t *count = count_at(a, place, (uint32_t)nr);
	uint32_t n = count ? __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST) : 0;

	if (a->place != place || n < a->from || n > a->to)
		return 0;
	__atomic_add_fetch(&a->failed, 1, __ATOMIC_SEQ_CST);
	if (a->error != SHORT)
		return -a->error;
	*third = *third > 1 ? *third / 2 : *third;
	return 0;
}
