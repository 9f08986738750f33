/* Threads that map, move, shrink and unmap at once: what one leaves is another's in the next moment. */
#include "k.h"
#include <malloc.h>
static void *maps(void *arg)
{
	long k = (long)arg;
	unsigned s = 0;

	for (int i = 0; i < 250; i++) {
		size_t n = (1 + (size_t)(i * 7 + k) % 5) * 4096;
		char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (size_t j = 0; j < n; j += 512)
			s = s * 31 + p[j], p[j] = j + k;
		if (i % 3 == 0) {
			p = mremap(p, n, n + 8192, MREMAP_MAYMOVE);
			n += 8192;
			s = s * 31 + p[n - 1];
			p[n - 1] = 1;
		} else if (i % 3 == 1 && n > 4096) {
			p = mremap(p, n, 4096, MREMAP_MAYMOVE);
			n = 4096;
		}
		for (size_t j = 0; j < n; j += 512)
			s = s * 31 + p[j];
		munmap(p, n);
	}
	return (void *)(long)s;
}
static void *blocks(void *arg)
{
	unsigned s = 0;

	for (int i = 1; i < 60; i++) {
		size_t n = 140000 + 4096 * (size_t)(i % 9);
		char *p = malloc(n);

		memset(p, i, n);
		p = realloc(p, i % 2 ? 3 * n : n / 2);
		s += sum(p, 1000);
		free(p);
	}
	return (void *)(long)s;
}
int main(void)
{
	pthread_t t[4];
	void *r;

	mallopt(M_MMAP_THRESHOLD, 100000);
	for (long k = 0; k < 4; k++)
		pthread_create(t + k, 0, k < 2 ? maps : blocks, (void *)k);
	for (int k = 0; k < 4; k++) {
		pthread_join(t[k], &r);
		SAY("%u", (unsigned)(long)r);
	}
	return 0;
}
