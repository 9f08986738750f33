/* One thread, no addresses in registers but fixed ones: what gdb shows natively and what csched debug shows can be compared. */
#include <math.h>
#include <stdio.h>
#include <string.h>

static unsigned long table[64];
static double curve[16];
static char text[64];

__attribute__((noinline)) unsigned long work(unsigned long n)
{
	unsigned long h = 14695981039346656037ul;

	for (unsigned i = 0; i < n; i++) {
		h = (h ^ table[i & 63]) * 1099511628211ul;
		table[(i * 7) & 63] += h >> (i & 31);
		if (__builtin_parityl(h))
			h = ~h / (i + 3);
		curve[i & 15] = sqrt((double)(h >> 40)) / (i + 1.5);
		text[i & 63] = (char)(h % 95 + 32);
		h += (unsigned long)(curve[i & 15] * 3.0f);
	}
	return h;
}

int main(void)
{
	for (unsigned i = 0; i < 64; i++)
		table[i] = i * i;
	printf("%lx\n", work(12));
	return 0;
}
