/*
 * Code made at run time: must run, at least natively. argv[1]: rwx, alias (written elsewhere than it is
 * executed) or mprotect; argv[2]: another thread waits in a system call all the while, so it never learns that translation has ended.
 */
#define _GNU_SOURCE
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

/* Where the code is executed; *w: where it is written. */
static unsigned char *place(const char *how, unsigned char **w)
{
	int rw = PROT_READ | PROT_WRITE, private = MAP_PRIVATE | MAP_ANONYMOUS;

	if (!strcmp(how, "alias")) {
		int fd = memfd_create("code", 0);

		if (fd < 0 || ftruncate(fd, 4096))
			return NULL;
		*w = mmap(NULL, 4096, rw, MAP_SHARED, fd, 0);
		return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	}
	*w = mmap(NULL, 4096, rw | (strcmp(how, "rwx") ? 0 : PROT_EXEC), private, -1, 0);
	return *w;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	unsigned char *w, *p = place(how, &w);
	int changes = strcmp(how, "mprotect"), sum = 0;
	pthread_t waiter;
	int ends[2];

	if (!p || (argc > 2 && (pipe(ends) || pthread_create(&waiter, NULL, wait_for_ever, &ends[0]))))
		return 2;
	memcpy(w, code, sizeof code);
	if (!changes)
		mprotect(p, 4096, PROT_READ | PROT_EXEC);
	for (int i = 0; i < 1000; i++)
		sum += ((int (*)(int, int))p)(i, 1);
	if (changes) {
		w[1] = 0x44;
		w[2] = 0x37;
		w[3] = 0x05; /* lea eax,[rdi+rsi+5] */
		w[4] = 0xc3;
		for (int i = 0; i < 1000; i++)
			sum += ((int (*)(int, int))p)(i, 1);
	}
	printf("%d\n", sum);
	return 0;
}
