/*
 * The shim's own memory functions: hidden, so neither the program nor another
 * library can stand in for them. String instructions (fast on every CPU of the
 * last decade) keep vector registers out of it.
 */
#include "preload/raw.h"

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	void *ret = to;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
	return ret;
}

void *memmove(void *to, const void *from, size_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	if (t <= f || t >= f + n)
		return memcpy(to, from, n);
	while (n--)
		t[n] = f[n];
	return to;
}

void *memset(void *to, int c, size_t n)
{
	void *ret = to;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(c) : "memory");
	return ret;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	for (size_t i = 0; i < n; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}
