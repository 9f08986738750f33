#include "k.h"
#include <linux/membarrier.h>
static sigjmp_buf j;
static void h(int s)
{
	siglongjmp(j, s);
}
#define TRY(e)                                                                                     \
	({                                                                                         \
		int s_ = sigsetjmp(j, 1);                                                          \
		if (!s_)                                                                           \
			SAY(#e " = %d", (int)(e));                                                 \
		else                                                                               \
			SAY(#e " sig %d", s_);                                                     \
	})
int main(void)
{
	signal(SIGSEGV, h);
	unsigned char *a = mmap(0, 16 * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(a, 1, 16 * 4096);
	R(madvise(a, 4096, MADV_DONTNEED));
	SAY("%d %d", a[0], a[4096]);
	R(madvise(a + 1, 4096, MADV_DONTNEED));
	R(madvise(a, 8192, MADV_WILLNEED));
	int fd = memfd_create("m", MFD_ALLOW_SEALING);
	ftruncate(fd, 8192);
	unsigned char *f = mmap(0, 8192, 3, MAP_PRIVATE, fd, 0),
		      *s = mmap(0, 8192, 3, MAP_SHARED, fd, 0);
	s[0] = 5;
	f[0] = 6;
	f[4097] = 8;
	R(madvise(f, 4096, MADV_DONTNEED));
	SAY("%d %d", f[0], f[4097]);
	R(madvise(s, 4096, MADV_REMOVE));
	SAY("%d", s[0]);
	R(madvise(a + 4096, 4096, MADV_FREE));
	a[4096] = 4;
	SAY("%d", a[4096]);
	R(madvise(a + 8192, 4096, MADV_WIPEONFORK));
	pid_t p = fork();
	if (!p) {
		SAY("child %d %d", a[8192], a[3 * 4096]);
		exit(0);
	}
	wait(0);
	R(madvise(a, 4096, MADV_DONTFORK));
	R(madvise(a, 4096, 9999));
	R(madvise(a, 16 * 4096, MADV_POPULATE_WRITE));
	R(madvise(a, 4096, MADV_DONTNEED_LOCKED));
	SAY("%d", a[0]);
	unsigned char vec[16];
	memset(vec, 9, 16);
	R(mincore(a, 16 * 4096, vec));
	SAY("%d", vec[5] & 1);
	R(mincore(a + 1, 4096, vec));
	R(mprotect(a + 4096, 4096, PROT_NONE));
	TRY(a[4096]);
	TRY(a[8191 + 1]);
	R(mprotect(a + 4096, 4096, PROT_READ));
	TRY(a[4096]);
	TRY(a[4096] = 3);
	R(munmap(a + 3 * 4096, 4096));
	R(mprotect(a + 2 * 4096, 3 * 4096, PROT_READ));
	TRY(a[2 * 4096] = 1);
	TRY(a[4 * 4096] = 1);
	TRY(a[3 * 4096]);
	R(mprotect(a, 0, 0));
	R(mprotect(a + 1, 1, 0));
	R(mprotect(a, 4096, 99999));
	R(munmap(a, 0));
	R(munmap(a + 1, 4096));
	R(munmap(a, 16 * 4096));
	R(munmap(a, 16 * 4096));
	R(mmap(0, 0, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	R(mmap(0, 4096, 3, MAP_ANONYMOUS, -1, 0));
	R(mmap(0, 4096, 3, MAP_PRIVATE, 999, 0));
	R(mmap(0, 4096, 3, MAP_SHARED, fd, 1));
	R(mmap((void *)4096, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	  (void *)4096);
	R(mlock(f, 8192));
	R(munlock(f, 8192));
	R(mlock2(f, 4096, 1));
	R(msync(s, 8192, MS_SYNC));
	R(msync(s, 8192, 7));
	R(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	R(ftruncate(fd, 0));
	R(fcntl(fd, F_GET_SEALS));
	R(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	R(syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) > 0);
	R(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
	R(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
	R(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
	char *b0 = sbrk(0);
	R(sbrk(10000) == b0);
	memset(b0, 5, 10000);
	R(sbrk(-10000) != (void *)-1);
	R(sbrk(10000) == b0);
	SAY("%d %d", b0[9000], b0[0]);
	R(brk((void *)1));
	unsigned char *gd =
	    mmap(0, 4096 * 3, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
	gd[0] = 1;
	SAY("%d", gd[0]);
	unsigned char *nr =
	    mmap(0, 1ul << 33, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	nr[1ul << 32] = 3;
	SAY("%d", nr[1ul << 32]);
	munmap(nr, 1ul << 33);
	long pg[1] = {0};
	void *pgs[1] = {f};
	int stt[1] = {77};
	R(syscall(SYS_move_pages, 0, 1, pgs, 0, stt, 0));
	int mode = 55;
	unsigned long mask[16];
	memset(mask, 0xff, sizeof mask);
	R(syscall(SYS_get_mempolicy, &mode, mask, 1024, 0, 0));
	SAY("%d %lx", mode, mask[0]);
	int pk = syscall(SYS_pkey_alloc, 0, 0);
	SAY("%d", pk > 0 || pk == -1);
	return 0;
}
