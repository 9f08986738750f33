/*
 * Code made at run time: must run, at least natively. argv[1]: rwx or mprotect; argv[2]: another
 * thread waits in a system call all the while, so it never learns that translation has ended.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const unsigned char code[] = { 0x8d, 0x04, 0x37, 0xc3 }; /* lea eax,[rdi+rsi]; ret */

static void *wait_for_ever(void *arg)
{
	char c;

	return read(*(int *)arg, &c, 1) < 0 ? arg : NULL;
}

int main(int argc, char **argv)
{
	int rwx = argc > 1 && !strcmp(argv[1], "rwx"), sum = 0;
	unsigned char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | (rwx ? PROT_EXEC : 0),
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	pthread_t waiter;
	int ends[2];

	if (argc > 2 && (pipe(ends) || pthread_create(&waiter, NULL, wait_for_ever, &ends[0])))
		return 2;
	memcpy(p, code, sizeof code);
	if (!rwx)
		mprotect(p, 4096, PROT_READ | PROT_EXEC);
	for (int i = 0; i < 1000; i++)
		sum += ((int (*)(int, int))p)(i, 1);
	if (rwx) {
		p[1] = 0x44;
		p[2] = 0x37;
		p[3] = 0x05; /* lea eax,[rdi+rsi+5] */
		p[4] = 0xc3;
		for (int i = 0; i < 1000; i++)
			sum += ((int (*)(int, int))p)(i, 1);
	}
	printf("%d\n", sum);
	return 0;
}
