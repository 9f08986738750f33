#include "k.h"
int main(void)
{
	int *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int *n = mremap(m, 0, 8192, MREMAP_MAYMOVE);
	m[0] = 5;
	SAY("%d", n[0]);
	n[3] = 8;
	if (m[3] == 8)
		SAY("same");
	pid_t p = fork();
	if (!p) {
		m[5] = m[0] + 1;
		_exit(0);
	}
	waitpid(p, 0, 0);
	SAY("%d", n[5]);
	m[6] = 1;
	if (m[5] > 3)
		SAY("child's");
	SAY("%d", n[6]);
	int fd = memfd_create("x", 0);
	ftruncate(fd, 4096);
	char *a = mmap(0, 4096, 3, MAP_SHARED, fd, 0), *b = mmap(0, 4096, 3, MAP_SHARED, fd, 0);
	strcpy(a, "hello");
	SAY("%s", b);
	char path[40];
	sprintf(path, "/proc/self/fd/%d", fd);
	int g = open(path, O_RDWR);
	pwrite(g, "J", 1, 0);
	SAY("%s", b);
	fork() ? (void)wait(0) : _exit(0);
	strcpy(b, "again");
	if (!strcmp(a, "again"))
		SAY("%s", a);
	munmap(a, 4096);
	SAY("%c", *b);
	return 0;
}
