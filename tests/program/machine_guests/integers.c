/* Guest of the lockstep test: integer arithmetic of every width, branches, calls. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 88172645463325252ull;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static int compare(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static unsigned fib(unsigned n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

#define WIDTH(T, S)                                                             \
	static uint64_t mix_##T(uint64_t a, uint64_t b)                          \
	{                                                                        \
		T x = (T)a, y = (T)(b | 1);                                      \
		S s = (S)a, t = (S)((b & 0x3f) + 1);                             \
		unsigned k = b % (8 * sizeof(T));                                \
		uint64_t r = 0;                                                  \
                                                                                 \
		r += (T)(x + y) ^ (T)(x - y) ^ (T)(x * y);                       \
		r = r * 31 + (T)(x / y) + (T)(x % y);                            \
		r = r * 31 + (uint64_t)(s / t) + (uint64_t)(s % t);              \
		r = r * 31 + (T)(x << k) + (T)(x >> k) + (uint64_t)(s >> k);     \
		r = r * 31 + (T)(x << k | x >> ((8 * sizeof(T) - k) % (8 * sizeof(T)))); \
		r = r * 31 + (x < y) + 2 * (s < t) + 4 * (x == y) + 8 * (s >= t); \
		r ^= (T)~x & (T)-y;                                              \
		return r;                                                        \
	}

WIDTH(uint8_t, int8_t)
WIDTH(uint16_t, int16_t)
WIDTH(uint32_t, int32_t)
WIDTH(uint64_t, int64_t)

static uint64_t odd(uint64_t a, uint64_t b)
{
	uint64_t lo, hi, r = 0;
	unsigned char carry;

	__asm__("mulq %3" : "=a"(lo), "=d"(hi) : "a"(a), "r"(b) : "cc");
	r += lo ^ hi;
	__asm__("imulq %3" : "=a"(lo), "=d"(hi) : "a"(a), "r"(b) : "cc");
	r += lo ^ hi;
	__asm__("addq %2, %0; adcq $0, %0; setc %1" : "+r"(a), "=q"(carry) : "r"(b) : "cc");
	r += a + carry;
	__asm__("btq %2, %1; sbbq %0, %0" : "=r"(lo) : "r"(a), "r"(b & 63) : "cc");
	r += lo;
	__asm__("btsq %1, %0" : "+r"(a) : "r"(b & 63) : "cc");
	__asm__("btcq %1, %0" : "+r"(a) : "r"((b >> 6) & 63) : "cc");
	r ^= a;
	__asm__("shldq $13, %1, %0" : "+r"(a) : "r"(b) : "cc");
	__asm__("shrdq $7, %1, %0" : "+r"(a) : "r"(b) : "cc");
	__asm__("rclq $3, %0" : "+r"(a) : : "cc");
	__asm__("rorq $9, %0; bswapq %0" : "+r"(a) : : "cc");
	r += a + (uint64_t)__builtin_ctzll(b | 1) + (uint64_t)__builtin_clzll(b | 1);
	r += (uint64_t)__builtin_popcountll(a);
	return r;
}

/* What valgrind takes for a request to itself. For the processor it is nothing. */
#define REQUEST(a, b, reg)                                                              \
	__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n" \
			 "xchgq %%" reg ", %%" reg "\n addq %%rdi, %%rdx\n"            \
			 : "+D"(a), "+d"(b) : "a"(&(b)), "c"(0) : "cc")

static uint64_t requests(uint64_t a, uint64_t b)
{
	REQUEST(a, b, "rbx");
	REQUEST(a, b, "rcx");
	REQUEST(a, b, "rdx");
	REQUEST(a, b, "rdi");
	return a ^ b;
}

static uint64_t strings(char *buf, size_t n)
{
	char copy[512];
	uint64_t r = 0;
	void *d = copy, *s = buf;
	size_t count = n;

	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(count) : : "memory");
	d = copy + 3;
	count = n / 8 - 1;
	__asm__ volatile("rep stosq" : "+D"(d), "+c"(count) : "a"(r) : "memory");
	/* An overlapping copy repeats a pattern. */
	s = copy;
	d = copy + 2;
	count = n - 2;
	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(count) : : "memory");
	d = copy;
	s = buf;
	count = n;
	__asm__ volatile("repe cmpsb" : "+D"(d), "+S"(s), "+c"(count) : : "memory", "cc");
	r += count;
	d = buf;
	count = n;
	__asm__ volatile("repne scasb" : "+D"(d), "+c"(count) : "a"(buf[n / 2]) : "memory", "cc");
	r = r * 31 + count;
	for (size_t i = 0; i < n; i++)
		r = r * 131 + (unsigned char)copy[i];
	return r;
}

static int atomics(int *p)
{
	int r = __atomic_fetch_add(p, 3, __ATOMIC_SEQ_CST);
	int expected = r + 3;

	r += __atomic_compare_exchange_n(p, &expected, 77, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	r += __atomic_compare_exchange_n(p, &expected, 78, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	r += __atomic_exchange_n(p, r, __ATOMIC_SEQ_CST);
	__atomic_or_fetch(p, 12, __ATOMIC_SEQ_CST);
	return r + __atomic_sub_fetch(p, 5, __ATOMIC_SEQ_CST);
}

/* What it expects has more bits than are compared; they stay when it is found. */
static uint64_t wide_expected(uint64_t a, int found)
{
	uint32_t locked = (uint32_t)a + !found, plain = locked;
	uint64_t rax = a, again = a;

	__asm__ volatile("lock; cmpxchgl %2, %1" : "+a"(rax), "+m"(locked) : "r"(7) : "cc");
	__asm__ volatile("cmpxchgl %2, %1" : "+a"(again), "+m"(plain) : "r"(9) : "cc");
	return rax * 31 + again + locked + plain;
}

int main(void)
{
	int numbers[200], shared = 0;
	char text[256], *end;
	uint64_t sum = 0;

	for (int i = 0; i < 200; i++) {
		uint64_t a = next(), b = next();

		sum = sum * 31 + mix_uint8_t(a, b) + mix_uint16_t(a, b);
		sum = sum * 31 + mix_uint32_t(a, b) + mix_uint64_t(a, b) + odd(a, b);
		sum ^= requests(a, b);
		numbers[i] = (int)a;
		text[i] = (char)b;
		sum += (uint64_t)atomics(&shared) + wide_expected(a, i & 1);
		switch (a % 7) {
		case 0: sum += 3; break;
		case 1: sum ^= b; break;
		case 2: sum -= a; break;
		case 5: sum = ~sum; break;
		default: sum += a % 7;
		}
	}
	for (size_t n = 16; n < 200; n += 37)
		sum += strings(text, n);
	qsort(numbers, 200, sizeof numbers[0], compare);
	for (int i = 0; i < 200; i++)
		sum = sum * 17 + (uint64_t)numbers[i];
	sum += fib(15);
	snprintf(text, sizeof text, "%llu %d %s %lx", (unsigned long long)sum, shared, "text", sum);
	sum += strtoull(text, &end, 10) + strlen(end) + (uint64_t)atoi("-1234");
	printf("%llx %s\n", (unsigned long long)sum, text);
	return 0;
}
