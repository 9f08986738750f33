#include "k.h"
int main(void)
{
	int fd = open("sharedmap.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
	ftruncate(fd, 3 * 4096);
	unsigned char *a = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
		      *b = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	unsigned char *p = mmap(0, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	a[4096] = 7;
	if (b[0] == 7)
		SAY("alias");
	b[1] = 9;
	if (a[4097] == 9)
		SAY("alias back");
	char text[] = "written by pwrite";
	pwrite(fd, text, sizeof text, 100);
	if (!memcmp(a + 100, text, sizeof text))
		SAY("seen %s", a + 100);
	if (p[100] == 'w')
		SAY("private sees it, too");
	p[100] = 'X';
	pwrite(fd, "zz", 2, 100);
	SAY("private keeps %c, shared %c", p[100], a[100]);
	struct iovec v[2] = {{"abc", 3}, {"defg", 4}};
	lseek(fd, 4096 * 2 - 3, SEEK_SET);
	SAY("%zd", writev(fd, v, 2));
	SAY("%.7s", a + 8189);
	char buf[8];
	a[200] = 'q';
	pread(fd, buf, 1, 200);
	SAY("read back %c", buf[0]);
	unsigned s = 0;
	for (int i = 0; i < 3 * 4096; i++)
		s = s * 31 + a[i];
	SAY("%u", s);
	unsigned char *c = mremap(a, 3 * 4096, 5 * 4096, MREMAP_MAYMOVE);
	ftruncate(fd, 5 * 4096);
	c[4 * 4096] = 1;
	SAY("%d", c[100]);
	b[7] = 77;
	SAY("%d", c[4096 + 7]);
	munmap(b, 4096);
	c[4096 + 7]++;
	b = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 4096);
	SAY("%d", b[7]);
	ftruncate(fd, 4096 + 4);
	ftruncate(fd, 5 * 4096);
	SAY("after truncation %d %d", c[4096 + 7], c[4096 + 3]);
	int fd2 = open("sharedmap.tmp2", O_RDWR | O_CREAT | O_TRUNC, 0600);
	write(fd2, "0123456789", 10);
	lseek(fd2, 0, 0);
	off_t o = 50;
	SAY("%zd", copy_file_range(fd2, 0, fd, &o, 10, 0));
	SAY("%.10s %ld", c + 50, (long)o);
	posix_fallocate(fd, 0, 6 * 4096);
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
	SAY("%d", c[50]);
	unlink("sharedmap.tmp");
	unlink("sharedmap.tmp2");
	return 0;
}
