#include "k.h"
static sigjmp_buf j;
static volatile int code;
static void h(int s, siginfo_t *i, void *u)
{
	code = i->si_code;
	siglongjmp(j, s);
}
#define TRY(e)                                                                                     \
	({                                                                                         \
		int s_ = sigsetjmp(j, 1);                                                          \
		if (!s_)                                                                           \
			SAY(#e " = %d", (int)(e));                                                 \
		else                                                                               \
			SAY(#e " sig %d code %d", s_, code);                                       \
	})
int main(void)
{
	struct sigaction sa = {.sa_sigaction = h, .sa_flags = SA_SIGINFO};
	sigaction(SIGBUS, &sa, 0);
	sigaction(SIGSEGV, &sa, 0);
	int fd = open("bus.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
	ftruncate(fd, 10000);
	volatile unsigned char *a = mmap(0, 5 * 4096, 3, MAP_SHARED, fd, 0),
			       *p = mmap(0, 5 * 4096, 3, MAP_PRIVATE, fd, 0);
	TRY(a[9999]);
	TRY(a[10001]);
	TRY(a[12287]);
	TRY(a[12288]);
	TRY(p[12288]);
	TRY(a[3] = 4);
	TRY(p[4097] = 6);
	ftruncate(fd, 4096);
	TRY(a[4096]);
	TRY(a[4095]);
	TRY(p[4097]);
	TRY(p[8192]);
	ftruncate(fd, 20480);
	TRY(a[4096]);
	TRY(a[20479]);
	TRY(p[4097]);
	TRY(a[20000] = 9);
	char c;
	pread(fd, &c, 1, 20000);
	SAY("%d", c);
	ftruncate(fd, 0);
	TRY(a[0]);
	TRY(write(1, (char *)a, 4));
	int z = open("/dev/zero", O_RDWR);
	unsigned char *q = mmap(0, 4096, 3, MAP_PRIVATE, z, 0);
	q[1] = 3;
	TRY(q[0]);
	TRY(q[1]);
	mprotect((void *)q, 4096, PROT_NONE);
	TRY(q[1]);
	mprotect((void *)q, 4096, PROT_READ);
	TRY(q[1]);
	TRY((q[1] = 2));
	unlink("bus.tmp");
	ftruncate(fd, 8192);
	int e = sigsetjmp(j, 1);
	if (!e) {
		ftruncate(fd, 0);
		memcpy((char *)q, (char *)a, 100);
	} else
		SAY("in memcpy %d", e);
	return 0;
}
