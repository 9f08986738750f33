/*
 * System calls without libc, and the few memory helpers the shim needs.
 *
 * Everything below preload/ that runs natively inside somebody else's program
 * uses these: libc's wrappers may be interposed, set errno, or be cancellation
 * points. A result in [-4095, -1] is a negated errno.
 *
 * memcpy, memset, memmove, memcmp and strlen are the shim's own hidden copies
 * (mem.c): plain byte/word loops with general registers only.
 */
#ifndef CSCHED_PRELOAD_RAW_H
#define CSCHED_PRELOAD_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#define RAW_PAGE 4096ul

/* Arrays of which most programs use little or nothing: apart, so that what they do use shares few pages. */
#define RAW_LARGE __attribute__((section(".bss.large")))

/* build/faulty/libcsched.so only: tests/lib/raw_fault.c. Not for what is called for the program, by a number of its own. */
#ifdef RAW_TEST_FAULTS
long raw_fault(long nr, long second, long *third);
#define RAW_INLINE static inline __attribute__((always_inline))
#define RAW_MAY_FAIL(nr, second, third)                                             \
	do {                                                                \
		long fault_ = __builtin_constant_p(nr) ? raw_fault(nr, second, third) : 0; \
		if (fault_)                                                 \
			return fault_;                                      \
	} while (0)
#else
#define RAW_INLINE static inline
#define RAW_MAY_FAIL(nr, second, third) ((void)0)
#endif

RAW_INLINE long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
	RAW_MAY_FAIL(nr, b, &c);
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

RAW_INLINE long raw3(long nr, long a, long b, long c)
{
	RAW_MAY_FAIL(nr, b, &c);
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

RAW_INLINE long raw4(long nr, long a, long b, long c, long d)
{
	RAW_MAY_FAIL(nr, b, &c);
	long ret;
	register long r10 __asm__("r10") = d;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

#define RAW_CHOOSE(_0, _1, _2, _3, _4, _5, _6, name, ...) name
#define RAW_A(x) ((long)(x))
#define RAW_CALL0(n) raw3((n), 0, 0, 0)
#define RAW_CALL1(n, a) raw3((n), RAW_A(a), 0, 0)
#define RAW_CALL2(n, a, b) raw3((n), RAW_A(a), RAW_A(b), 0)
#define RAW_CALL3(n, a, b, c) raw3((n), RAW_A(a), RAW_A(b), RAW_A(c))
#define RAW_CALL4(n, a, b, c, d) raw4((n), RAW_A(a), RAW_A(b), RAW_A(c), RAW_A(d))
#define RAW_CALL5(n, a, b, c, d, e) \
	raw6((n), RAW_A(a), RAW_A(b), RAW_A(c), RAW_A(d), RAW_A(e), 0)
#define RAW_CALL6(n, a, b, c, d, e, f) \
	raw6((n), RAW_A(a), RAW_A(b), RAW_A(c), RAW_A(d), RAW_A(e), RAW_A(f))

/* raw(SYS_openat, AT_FDCWD, path, flags): zero to six arguments of any scalar type. */
#define raw(...)                                                                           \
	RAW_CHOOSE(__VA_ARGS__, RAW_CALL6, RAW_CALL5, RAW_CALL4, RAW_CALL3, RAW_CALL2,     \
		   RAW_CALL1, RAW_CALL0)(__VA_ARGS__)

static inline bool raw_failed(long ret)
{
	return (unsigned long)ret >= -4095ul;
}

/*
 * Where to ask for memory of ours: far from where the kernel puts the program's mappings, so that what it unmaps stays
 * unmapped, and what it maps next lies where it would without us. A hint: 0, or what is in use, leaves it to the kernel.
 */
uint64_t raw_place(size_t len);

/* NULL when the kernel refuses. */
static inline void *raw_map(size_t len, int prot, int flags, int fd, uint64_t offset)
{
	long p = raw6(SYS_mmap, (long)raw_place(len), (long)len, prot, flags, fd, (long)offset);

	return raw_failed(p) ? NULL : (void *)p;
}

/* Private zeroed memory, readable and writable. */
void *raw_alloc(size_t len);

static inline void raw_free(void *p, size_t len)
{
	raw3(SYS_munmap, (long)p, (long)len, 0);
}

/* Private anonymous pages of ours are zero from now on, and cost nothing if that can be had. */
void raw_empty(void *p, size_t len);

static inline uint64_t raw_tsc(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

uint64_t raw_nsec(int clock); /* CLOCK_* */

/*
 * Copies from memory that may be unmapped at any moment. Returns the number of
 * bytes that could be read, from the front.
 */
size_t raw_peek(void *to, uint64_t from, size_t len);

/* Whole small file into buf (NUL-terminated, truncated to size - 1); -1: unreadable. */
long raw_open(long dir, const char *path, long flags, long mode); /* openat, even where the program has no descriptor left */
long raw_slurp(const char *path, char *buf, size_t size);

/* Decimal/hex/text assembly into a fixed buffer; always NUL-terminated. */
struct raw_text {
	char *s;
	size_t n, cap;
};
void text_str(struct raw_text *t, const char *s);
void text_strn(struct raw_text *t, const char *s, size_t n);
void text_num(struct raw_text *t, int64_t v);
void text_hex(struct raw_text *t, uint64_t v);
#define TEXT(name, size)                       \
	char name##_buf_[size];                \
	struct raw_text name = { name##_buf_, 0, size }

#endif
