/*
 * How many arguments a system call has: registers beyond them hold leftovers,
 * which may differ where the call does not. A call that is not listed is
 * compared whole.
 */
#include "analyzer/follow/call_args.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#define ARGS(name, n) [SYS_##name] = (n) + 1

/* Number of arguments + 1; 0: not listed. */
static const uint8_t table[] = {
	ARGS(read, 3), ARGS(write, 3), ARGS(open, 3), ARGS(close, 1), ARGS(stat, 2),
	ARGS(fstat, 2), ARGS(lstat, 2), ARGS(poll, 3), ARGS(lseek, 3), ARGS(mprotect, 3),
	ARGS(munmap, 2), ARGS(brk, 1), ARGS(rt_sigaction, 4), ARGS(rt_sigprocmask, 4),
	ARGS(ioctl, 3), ARGS(pread64, 4), ARGS(pwrite64, 4), ARGS(readv, 3), ARGS(writev, 3),
	ARGS(access, 2), ARGS(pipe, 1), ARGS(select, 5), ARGS(sched_yield, 0), ARGS(mremap, 5),
	ARGS(madvise, 3), ARGS(dup, 1), ARGS(dup2, 2), ARGS(pause, 0), ARGS(nanosleep, 2),
	ARGS(alarm, 1), ARGS(getpid, 0), ARGS(socket, 3), ARGS(connect, 3), ARGS(accept, 3),
	ARGS(sendto, 6), ARGS(recvfrom, 6), ARGS(sendmsg, 3), ARGS(recvmsg, 3),
	ARGS(shutdown, 2), ARGS(bind, 3), ARGS(listen, 2), ARGS(getsockname, 3),
	ARGS(getpeername, 3), ARGS(setsockopt, 5), ARGS(getsockopt, 5), ARGS(clone, 5),
	ARGS(exit, 1), ARGS(wait4, 4), ARGS(kill, 2), ARGS(uname, 1), ARGS(fcntl, 3),
	ARGS(fsync, 1), ARGS(fdatasync, 1), ARGS(ftruncate, 2), ARGS(getdents, 3),
	ARGS(getcwd, 2), ARGS(chdir, 1), ARGS(rename, 2), ARGS(mkdir, 2), ARGS(rmdir, 1),
	ARGS(unlink, 1), ARGS(readlink, 3), ARGS(umask, 1), ARGS(gettimeofday, 2),
	ARGS(getrlimit, 2), ARGS(getrusage, 2), ARGS(sysinfo, 1), ARGS(getuid, 0),
	ARGS(getgid, 0), ARGS(geteuid, 0), ARGS(getegid, 0), ARGS(getppid, 0),
	ARGS(sigaltstack, 2), ARGS(statfs, 2), ARGS(fstatfs, 2), ARGS(arch_prctl, 2),
	ARGS(gettid, 0), ARGS(tkill, 2), ARGS(time, 1), ARGS(sched_setaffinity, 3),
	ARGS(sched_getaffinity, 3), ARGS(epoll_create, 1), ARGS(getdents64, 3),
	ARGS(set_tid_address, 1), ARGS(clock_gettime, 2), ARGS(clock_getres, 2),
	ARGS(clock_nanosleep, 4), ARGS(exit_group, 1), ARGS(epoll_wait, 4), ARGS(epoll_ctl, 4),
	ARGS(tgkill, 3), ARGS(openat, 4), ARGS(mkdirat, 3), ARGS(newfstatat, 4),
	ARGS(unlinkat, 3), ARGS(renameat, 4), ARGS(faccessat, 3), ARGS(ppoll, 5),
	ARGS(set_robust_list, 2), ARGS(epoll_pwait, 6), ARGS(timerfd_create, 2),
	ARGS(eventfd, 1), ARGS(accept4, 4), ARGS(eventfd2, 2), ARGS(epoll_create1, 1),
	ARGS(dup3, 3), ARGS(pipe2, 2), ARGS(prlimit64, 4), ARGS(getcpu, 3), ARGS(getrandom, 3),
	ARGS(statx, 5), ARGS(rseq, 4), ARGS(clone3, 2), ARGS(faccessat2, 4),
};

unsigned mach_call_args(uint64_t nr)
{
	return nr < sizeof table && table[nr] ? table[nr] - 1u : 6;
}
