#include "k.h"
#include <sys/ptrace.h>
int main(void)
{
	char src[32] = "vectors across", a[4], b[20];
	struct iovec l[2] = {{a, 4}, {b, 20}}, r[2] = {{src, 7}, {src + 7, 8}};
	R(process_vm_readv(getpid(), l, 2, r, 2, 0));
	SAY("%.4s %.10s", a, b);
	r[1].iov_base = (void *)16;
	memset(a, 'z', 4);
	memset(b, 'z', 20);
	R(process_vm_readv(getpid(), l, 2, r, 2, 0));
	SAY("%.4s %.4s", a, b);
	char dst[16] = "................";
	struct iovec d = {dst, 10};
	l[0].iov_base = "ABCD";
	l[0].iov_len = 4;
	R(process_vm_writev(getpid(), l, 1, &d, 1, 0));
	if (dst[0] == 'A')
		SAY("wrote self %.6s", dst);
	int q[2];
	pipe(q);
	pid_t p = fork();
	if (!p) {
		pause();
		_exit(0);
	}
	d.iov_base = dst;
	d.iov_len = 3;
	l[0].iov_base = "xyz";
	R(process_vm_writev(p, l, 1, &d, 1, 0));
	kill(p, 9);
	wait(0);
	write(q[1], "abc", 3);
	R(read(q[0], (void *)16, 3));
	R(read(q[0], b, 3));
	char *page = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(page + 4096, 4096);
	write(q[1], "0123456789", 10);
	R(read(q[0], page + 4090, 10));
	SAY("%.6s", page + 4090);
	int fl = open("pvm.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
	write(fl, "fedcba9876543210", 16);
	R(pread(fl, page + 4090, 16, 0));
	SAY("%.6s", page + 4090);
	struct iovec pv[2] = {{b, 3}, {page + 4094, 9}};
	lseek(fl, 0, 0);
	R(readv(fl, pv, 2));
	SAY("%.3s %.2s", b, page + 4094);
	unlink("pvm.tmp");
	struct timespec *bad = (void *)8;
	R(syscall(SYS_clock_gettime, CLOCK_REALTIME, bad) == -1);
	R(syscall(SYS_gettimeofday, 8, 0));
	R(pipe((void *)(page + 4094)));
	R(syscall(SYS_wait4, -1, 8, 0, 0));
	R(syscall(SYS_getcwd, page, 3));
	R(syscall(SYS_poll, page + 4090, 3, 0));
	R(syscall(SYS_nanosleep, 8, 0));
	R(syscall(SYS_rt_sigaction, 10, 8, 0, 8));
	R(syscall(SYS_rt_sigaction, 10, 0, page + 4090, 8));
	R(syscall(SYS_rt_sigprocmask, 0, 8, 0, 8));
	R(syscall(SYS_socketpair, 1, 1, 0, page + 4092));
	SAY("%d", open("/dev/null", 0));
	R(syscall(SYS_epoll_pwait, 5, page, 1, 0, 0, 8));
	R(syscall(SYS_getrandom, page + 4000, 96, 0));
	R(syscall(SYS_getdents64, 0, page, 100));
	R(syscall(SYS_uname, page + 4000));
	R(syscall(SYS_times, 8) == -1);
	R(syscall(SYS_getrusage, 0, page + 4090));
	R(syscall(SYS_sysinfo, page + 4090));
	R(syscall(SYS_statfs, ".", page + 4090));
	R(syscall(SYS_newfstatat, AT_FDCWD, ".", page + 4090, 0));
	R(syscall(9999));
	R(syscall(-1));
	R(syscall(SYS_restart_syscall));
	return 0;
}
