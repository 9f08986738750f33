/* A deterministic single-threaded program with every kind of branch, for comparison step by step. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t fib(unsigned n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static double series(int n)
{
	double s = 0;

	for (int i = 1; i < n; i++)
		s += (i % 3 ? 1.0 : -1.0) / i;
	return s;
}

static uint32_t op_add(uint32_t a, uint32_t b) { return a + b; }
static uint32_t op_xor(uint32_t a, uint32_t b) { return a ^ b; }
static uint32_t op_rot(uint32_t a, uint32_t b) { return a << (b & 31) | a >> (-b & 31); }
static uint32_t op_mul(uint32_t a, uint32_t b) { return a * (b | 1); }

static const char *describe(uint32_t v)
{
	switch (v % 7) {
	case 0: return "zero";
	case 1: return "one";
	case 2: return "two";
	case 3: return "three";
	case 4: return "four";
	case 5: return "five";
	}
	return "six";
}

int main(void)
{
	uint32_t (*const ops[])(uint32_t, uint32_t) = { op_add, op_xor, op_rot, op_mul };
	uint32_t v[200], x = 12345, sum = 0;
	char text[256] = "", *copy;

	for (int i = 0; i < 200; i++) {
		x = ops[i % 4](x, (uint32_t)i * 2654435761u);
		v[i] = x;
	}
	qsort(v, 200, sizeof v[0], compare);
	for (int i = 0; i < 200; i++)
		sum = sum * 31 + v[i];
	for (int i = 0; i < 20; i++)
		strncat(text, describe(v[i]), sizeof text - strlen(text) - 1);
	copy = strdup(text);
	memset(text, 'x', 100);
	long rcx = 37, loops = 0;
	__asm__ volatile("1: inc %1; loop 1b" : "+c"(rcx), "+r"(loops));
	printf("%u %llu %.6f %s %d %ld\n", sum, (unsigned long long)fib(12), series(300), copy,
	       (int)strspn(text, "x"), loops);
	free(copy);
	return sum & 1;
}
