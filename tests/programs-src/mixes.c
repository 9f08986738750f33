/* Racing reads that are mixed into one value for ARGV[1] rounds before anything depends on it: a hostile input for a search. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static volatile unsigned long word[8], stop;
static unsigned long table[256];
static void *writer(void *arg)
{
	for (unsigned long i = 1; !stop; i++)
		word[i & 7] = i * 0x9E3779B97F4A7C15ul;
	return arg;
}
int main(int argc, char **argv)
{
	unsigned long h = 0, taken = 0, rounds = strtoul(argv[1], 0, 10);
	pthread_t t[2];
	for (int i = 0; i < 256; i++)
		table[i] = (i * 167ul + 13) & 255;
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, writer, NULL);
	while (!word[7])
		;
	for (unsigned long i = 0; i < rounds; i++) {
		h = (h ^ word[i & 7]) * 0xD6E8FEB86659FD93ul;
		h ^= h >> 32;
	}
	for (int i = 0; i < 40; i++)
		taken = table[(taken ^ h >> (i & 31)) & 255];
	if (taken == 77)
		puts("rare");
	for (int i = 0; i < 64; i++)
		if ((h ^ taken) >> i & 1)
			taken += i;
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%lu\n", taken);
	abort();
}
