#include "k.h"
/* A child of a process whose mapped files end within the mappings: what is there, is there for it,
 * too. */
int main(void)
{
	int fd = memfd_create("cut", 0);
	unsigned char text[5000];

	for (unsigned i = 0; i < sizeof text; i++)
		text[i] = (unsigned char)(i * 7);
	if (write(fd, text, sizeof text) != sizeof text)
		return 1;
	unsigned char *a = mmap(0, 4 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned char *p = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	p[3] = 99;
	for (int round = 0; round < 2; round++) {
		fflush(stdout);
		pid_t child = fork();
		if (!child) {
			SAY("child %u %u %d %d", sum(a, 8000), sum(p, 8000), a[4999], p[3]);
			a[10 + round] = 200;
			exit(round);
		}
		int status;
		waitpid(child, &status, 0);
		SAY("parent %x %u %u", status, sum(a, 8000), sum(p + 4, 8000));
	}
	return 0;
}
