/* The longer helpers of raw.h. */
#include "preload/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>

/* Weak: the translator leaves our memory out of its snapshots. */
void tr_own(void *p, size_t len) __attribute__((weak));

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

#define PLACE_BELOW (256ull << 30) /* bytes from this library down to the first ... */
#define PLACE_ROOM (64ull << 30)   /* ... and of such room; then it begins anew, in what is free again */

uint64_t raw_place(size_t len)
{
	static uint64_t used;
	uint64_t here = (uint64_t)__ehdr_start & ~(RAW_PAGE - 1);
	uint64_t n = (len + RAW_PAGE - 1) & ~(RAW_PAGE - 1);

	if (here < PLACE_BELOW + 2 * PLACE_ROOM || n > PLACE_ROOM)
		return 0;
	return here - PLACE_BELOW - (__atomic_add_fetch(&used, n, __ATOMIC_RELAXED) % PLACE_ROOM);
}

void *raw_alloc(size_t len)
{
	void *p = raw_map(len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p && tr_own)
		tr_own(p, len);
	return p;
}

/* The kernel refuses for pages that the program has locked (mlockall). */
void raw_empty(void *p, size_t len)
{
	if (raw(SYS_madvise, p, len, MADV_DONTNEED))
		memset(p, 0, len);
}

uint64_t raw_nsec(int clock)
{
	struct timespec ts = { 0, 0 };

	raw(SYS_clock_gettime, clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

size_t raw_peek(void *to, uint64_t from, size_t len)
{
	struct iovec local = { to, len };
	struct iovec remote = { (void *)from, len };
	long got = raw(SYS_process_vm_readv, raw(SYS_getpid), &local, 1, &remote, 1, 0);

	return raw_failed(got) ? 0 : (size_t)got;
}

#define SPARE 16u /* descriptors */
#define TURNS 1000u /* that another thread may take */

/*
 * The program has opened all it may: for this call it may have more, out of reach of its own calls but for those that another
 * thread makes in the same microsecond. One thread at a time, or one would take the other's limit for the program's.
 */
long raw_open(long dir, const char *path, long flags, long mode)
{
	static uint32_t busy;
	struct rlimit was, more;
	long fd = raw(SYS_openat, dir, path, flags, mode);
	unsigned turns = 0;

	if (fd != -EMFILE)
		return fd;
	while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		if (++turns > TURNS)
			return fd;
		else
			raw(SYS_sched_yield);
	if (!raw(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &was)) {
		more = was;
		more.rlim_cur += SPARE;
		if (more.rlim_max < more.rlim_cur)
			more.rlim_max = more.rlim_cur;
		if (!raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &more, NULL)) {
			fd = raw(SYS_openat, dir, path, flags, mode);
			raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &was, NULL);
		}
	}
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	return fd;
}

long raw_slurp(const char *path, char *buf, size_t size)
{
	long fd = raw_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	size_t n = 0;

	if (raw_failed(fd))
		return -1;
	while (n < size - 1) {
		long got = raw(SYS_read, fd, buf + n, size - 1 - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	raw(SYS_close, fd);
	buf[n] = 0;
	return (long)n;
}

void text_strn(struct raw_text *t, const char *s, size_t n)
{
	for (size_t i = 0; i < n && t->n + 1 < t->cap; i++)
		t->s[t->n++] = s[i];
	if (t->cap)
		t->s[t->n] = 0;
}

void text_str(struct raw_text *t, const char *s)
{
	text_strn(t, s, strlen(s));
}

void text_num(struct raw_text *t, int64_t v)
{
	char digits[24];
	size_t n = sizeof digits;
	uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;

	do
		digits[--n] = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0)
		digits[--n] = '-';
	text_strn(t, digits + n, sizeof digits - n);
}

void text_hex(struct raw_text *t, uint64_t v)
{
	char digits[18];
	size_t n = sizeof digits;

	do
		digits[--n] = "0123456789abcdef"[v & 15];
	while (v >>= 4);
	digits[--n] = 'x';
	digits[--n] = '0';
	text_strn(t, digits + n, sizeof digits - n);
}
