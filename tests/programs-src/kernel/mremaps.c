#include "k.h"
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
static sigjmp_buf j;
static void h(int s)
{
	siglongjmp(j, s);
}
int main(void)
{
	int fd = open("mremaps.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char t[8192];
	for (int i = 0; i < 8192; i++)
		t[i] = i * 7;
	write(fd, t, 8192);
	signal(SIGSEGV, h);
	signal(SIGBUS, h);
	unsigned char *a = mmap(0, 8192, 3, MAP_PRIVATE, fd, 0);
	a[5] = 99;
	unsigned char *b = mremap(a, 8192, 16384, MREMAP_MAYMOVE);
	SAY("%d %d", b[5], b[4100]);
	int s = sigsetjmp(j, 1);
	if (!s)
		SAY("%d", b[9000]);
	else
		SAY("sig %d", s);
	unsigned char *c = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(c, 3, 8192);
	unsigned char *d = mremap(c, 8192, 8192, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	if (d == MAP_FAILED)
		SAY("dontunmap %s", ername(errno));
	else
		SAY("%d %d", d[1], c[1]);
	unsigned char *e = mmap(0, 4 * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(e, 4, 4 * 4096);
	unsigned char *f =
	    mremap(e + 4096, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, e + 3 * 4096);
	SAY("%d", f[0]);
	s = sigsetjmp(j, 1);
	if (!s)
		SAY("%d", e[4096]);
	else
		SAY("sig %d", s);
	unsigned char *g = mremap(e, 4096, 4096 * 50, MREMAP_MAYMOVE);
	SAY("%d %d", g[0], g[4096 * 49]);
	unsigned char *k = mremap(g, 4096 * 50, 4096, 0);
	SAY("%d", k == g);
	s = sigsetjmp(j, 1);
	if (!s)
		SAY("%d", g[4096]);
	else
		SAY("sig %d", s);
	R(mremap(g + 1, 4096, 8192, 0));
	R(mremap((void *)0x10000, 4096, 8192, 0));
	unsigned char *sh = mmap(0, 8192, 1, MAP_SHARED, fd, 0);
	unsigned char *sh2 = mremap(sh, 8192, 4096, 0);
	SAY("%d", sh2[9]);
	sh2 = mremap(sh, 4096, 8192, MREMAP_MAYMOVE);
	SAY("%d", sh2[5000]);
	munmap(sh2, 8192);
	unsigned char *w = mmap(0, 8192, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	w[0] = 1;
	w[4096] = 2;
	/* Onto itself is refused, wherever the kernel put it; what came back is no address. */
	unsigned char *w2 = mremap(w, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, w + 4096);
	SAY("%d", w2 == MAP_FAILED);
	s = sigsetjmp(j, 1);
	if (!s)
		SAY("%d", w2[0]);
	else
		SAY("sig %d", s);
	unsigned char *to = mmap(0, 8192, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	w2 = mremap(w, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	SAY("%d %d %d", w2 == to, w2[0], w2[4096]);
	unlink("mremaps.tmp");
	return 0;
}
