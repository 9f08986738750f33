#include "k.h"
static int vec(char *p, int n)
{
	unsigned char v[64];
	if (mincore(p, n * 4096, v))
		return -1;
	int k = 0;
	for (int i = 0; i < n; i++)
		k += v[i] & 1;
	return k;
}
int main()
{
	setbuf(stdout, 0);
	char *p = mmap(0, 16 * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, 1, 16 * 4096);
	R(madvise(p, 4096, MADV_DONTNEED));
	SAY("%d", p[5]);
	R(madvise(p + 4096, 4096, MADV_FREE));
	R(madvise(p, 4096, 999));
	R(madvise(p + 1, 4096, MADV_NORMAL));
	R(madvise(p, 16 * 4096, MADV_WILLNEED));
	R(madvise(p, 4096, MADV_DONTFORK));
	R(madvise(p + 4096 * 2, 4096, 18));
	pid_t c = fork();
	if (!c) {
		SAY("wiped %d kept %d", p[4096 * 2], p[4096 * 3]);
		_exit(0);
	}
	wait(0);
	R(madvise(p, 4096, MADV_DOFORK));
	R(mlock(p, 8192));
	R(munlock(p, 8192));
	R(mlock2(p, 4096, 1));
	R(munlockall());
	SAY("%d", vec(p + 4096 * 3, 4));
	char *q = mremap(p, 16 * 4096, 20 * 4096, 0);
	SAY("%d", q == MAP_FAILED || q == p);
	q = mremap(p, 16 * 4096, 4 * 4096, 0);
	SAY("%d", q == p);
	R(mincore(p + 4096 * 10, 4096, (void *)&c));
	char *d = mmap(0, 8 * 4096, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	q = mremap(p, 4 * 4096, 4 * 4096, MREMAP_MAYMOVE | MREMAP_FIXED, d);
	SAY("%d %d %d", q == d, q[4096 * 3], q[0]);
	R(msync(q, 4096, MS_SYNC));
	R(msync(q, 4096, MS_SYNC | MS_ASYNC));
	R(munmap(q + 1, 4096));
	R(munmap(q, 0));
	R(mprotect(q, 4096, 77));
	R(mmap(q, 4096, 3, MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	R(mmap(0, 0, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	R(mmap(0, 4096, 3, MAP_PRIVATE, -1, 0) == MAP_FAILED);
	R(mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 5) == MAP_FAILED);
	char *g = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
	R(g != MAP_FAILED);
	char *lo = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	SAY("%d", (uintptr_t)lo < 1ul << 31);
	void *b0 = sbrk(0);
	sbrk(8192);
	SAY("%d", (char *)sbrk(0) - (char *)b0 == 8192);
	((char *)b0)[8000] = 1;
	sbrk(-8192);
	sbrk(8192);
	SAY("brk zero %d", ((char *)b0)[8000]);
	int f = open("mf", O_RDWR | O_CREAT | O_TRUNC, 0600);
	ftruncate(f, 3 * 4096);
	pwrite(f, "hello", 5, 4090);
	char *m = mmap(0, 3 * 4096, 3, MAP_PRIVATE, f, 0);
	m[4091] = 'E';
	pwrite(f, "XXXXX", 5, 8000);
	SAY("%.5s %.5s", m + 4090, m + 8000);
	char *s = mmap(0, 3 * 4096, 3, MAP_SHARED, f, 0);
	s[0] = 'S';
	char x;
	pread(f, &x, 1, 0);
	SAY("%c %c", x, m[0]);
	pwrite(f, "T", 1, 1);
	SAY("%c", s[1]);
	char *s2 = mmap(0, 4096, 1, MAP_SHARED, f, 0);
	s[2] = 'U';
	SAY("%c", s2[2]);
	R(madvise(m, 4096, MADV_DONTNEED));
	SAY("%c", m[0]);
	R(madvise(s, 4096, MADV_REMOVE));
	SAY("%d", s[0]);
	R(remap_file_pages(s, 4096, 0, 2, 0));
	pwrite(f, "Z", 1, 8192);
	SAY("%c", s[0]);
	c = fork();
	if (!c) {
		s2[0];
		s[4096] = 'C';
		m[4096] = 'P';
		_exit(0);
	}
	wait(0);
	SAY("%c %d", s[4096], m[4096]);
	char *an = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	c = fork();
	if (!c) {
		strcpy(an, "anon");
		_exit(0);
	}
	wait(0);
	SAY("%s", an);
	char *du = mremap(an, 0, 4096, MREMAP_MAYMOVE);
	SAY("%s", du);
	du[0] = 'A';
	SAY("%s", an);
	char *un = mremap(q, 4096, 4096, MREMAP_MAYMOVE | 4);
	SAY("%d %d", un != MAP_FAILED, q[0]);
	int pk = pkey_alloc(0, 0);
	SAY("pkey %d", pk >= -1);
	R(mmap((void *)(1ul << 50), 4096, 3, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	  MAP_FAILED);
	R(syscall(SYS_userfaultfd, 1) >= -1);
	R(process_madvise(-1, 0, 0, 0, 0));
	unsigned char pm[16];
	return 0;
}
