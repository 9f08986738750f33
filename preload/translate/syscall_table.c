/*
 * Every x86-64 system call: kind and outputs.
 * Sizes are those of the kernel's structures.
 */
#include "preload/translate/syscall_table.h"

#include <sys/syscall.h>

#define FIX(a, size) { OUT_FIXED, a, 0, 0, size }
#define FIX_ALWAYS(a, size) { OUT_FIXED, a, 0, 1, size }
#define RES(a) { OUT_RESULT, a, 0, 0, 1 }
#define RESN(a, size) { OUT_RESULT, a, 0, 0, size }
#define CNT(a, b, size) { OUT_COUNT, a, b, 0, size }
#define CNT_ALWAYS(a, b, size) { OUT_COUNT, a, b, 1, size }
#define VEC(a, b) { OUT_VECTOR, a, b, 0, 1 }
#define UPTO(a, b) { OUT_UP_TO, a, b, 0, 1 }
#define OWNVEC(a, b) { OUT_OWN_VECTOR, a, b, 0, 1 }
#define LENS(a) { OUT_LENGTHS, a, 0, 0, 1 }
#define MSG(a) { OUT_MESSAGE, a, 0, 0, 1 }
#define MSGS(a) { OUT_MESSAGES, a, 0, 0, 1 }
#define SOCK(a, b) { OUT_SOCKLEN, a, b, 0, 1 }
#define FDS(a) { OUT_FDSET, a, 0, 0, 1 }
#define BITS(a, b) { OUT_BITS, a, b, 0, 1 }
#define MASK(a, b) { OUT_MASK, a, b, 0, 1 }
#define HANDLE(a) { OUT_HANDLE, a, 0, 1, 1 }
#define SENT(a) { OUT_SENT, a, 0, 0, 1 }
#define SENTV(a, b) { OUT_SENT_VECTOR, a, b, 0, 1 }
#define SIZED(a, b) { OUT_SIZE_T, a, b, 0, 1 }

#define C(name, kind, ...) [SYS_##name] = { CALL_##kind, { __VA_ARGS__ }, #name }
#define P(name, ...) C(name, PLAIN, __VA_ARGS__)
#define O(name, ...) C(name, OWN, __VA_ARGS__)
#define N(number, text, kind, ...) [number] = { CALL_##kind, { __VA_ARGS__ }, text }

#define NONE { OUT_NONE, 0, 0, 0, 0 }

const struct call_desc call_table[CALL_MAX] = {
	P(read, RES(1)), P(write, SENT(1)), P(open, NONE), P(close, NONE),
	P(stat, FIX(1, 144)), P(fstat, FIX(1, 144)), P(lstat, FIX(1, 144)),
	P(poll, CNT_ALWAYS(0, 1, 8)), P(lseek, NONE),
	O(mmap, NONE), O(mprotect, NONE), O(munmap, NONE), P(brk, NONE),
	O(rt_sigaction, FIX(2, 32)), O(rt_sigprocmask, SIZED(2, 3)), O(rt_sigreturn, NONE),
	C(ioctl, IOCTL, NONE), P(pread64, RES(1)), P(pwrite64, SENT(1)),
	P(readv, VEC(1, 2)), P(writev, SENTV(1, 2)), P(access, NONE), P(pipe, FIX(0, 8)),
	P(select, FDS(1), FDS(2), FDS(3), FIX_ALWAYS(4, 16)), P(sched_yield, NONE), O(mremap, NONE),
	P(msync, NONE), P(mincore, BITS(2, 1)), P(madvise, NONE), P(shmget, NONE),
	O(shmat, NONE), C(shmctl, IOCTL, NONE), P(dup, NONE), P(dup2, NONE), P(pause, NONE),
	P(nanosleep, FIX_ALWAYS(1, 16)), P(getitimer, FIX(1, 32)), P(alarm, NONE),
	P(setitimer, FIX(2, 32)), P(getpid, NONE), P(sendfile, FIX(2, 8)), P(socket, NONE),
	P(connect, NONE), P(accept, SOCK(1, 2)), P(sendto, SENT(1)),
	P(recvfrom, UPTO(1, 2), SOCK(4, 5)), P(sendmsg, NONE), P(recvmsg, MSG(1)),
	P(shutdown, NONE), P(bind, NONE), P(listen, NONE), P(getsockname, SOCK(1, 2)),
	P(getpeername, SOCK(1, 2)), P(socketpair, FIX(3, 8)), P(setsockopt, NONE),
	P(getsockopt, SOCK(3, 4)), O(clone, NONE), O(fork, NONE), O(vfork, NONE),
	O(execve, NONE), O(exit, NONE), P(wait4, FIX(1, 4), FIX(3, 144)), P(kill, NONE),
	P(uname, FIX(0, 390)), P(semget, NONE), P(semop, NONE), C(semctl, IOCTL, NONE),
	O(shmdt, NONE), P(msgget, NONE), P(msgsnd, NONE), P(msgrcv, RES(1)),
	C(msgctl, IOCTL, NONE), C(fcntl, IOCTL, NONE), P(flock, NONE), P(fsync, NONE),
	P(fdatasync, NONE), P(truncate, NONE), P(ftruncate, NONE), P(getdents, RES(1)),
	P(getcwd, RES(0)), P(chdir, NONE), P(fchdir, NONE), P(rename, NONE), P(mkdir, NONE),
	P(rmdir, NONE), P(creat, NONE), P(link, NONE), P(unlink, NONE), P(symlink, NONE),
	P(readlink, RES(1)), P(chmod, NONE), P(fchmod, NONE), P(chown, NONE), P(fchown, NONE),
	P(lchown, NONE), P(umask, NONE), P(gettimeofday, FIX(0, 16), FIX(1, 8)),
	O(getrlimit, FIX(1, 16)), P(getrusage, FIX(1, 144)), P(sysinfo, FIX(0, 112)),
	P(times, FIX(0, 32)), C(ptrace, NOTED, NONE), P(getuid, NONE), P(syslog, RES(1)),
	P(getgid, NONE), O(setuid, NONE), P(setgid, NONE), P(geteuid, NONE), P(getegid, NONE),
	P(setpgid, NONE), P(getppid, NONE), P(getpgrp, NONE), P(setsid, NONE), O(setreuid, NONE),
	P(setregid, NONE), P(getgroups, RESN(1, 4)), P(setgroups, NONE), O(setresuid, NONE),
	P(getresuid, FIX(0, 4), FIX(1, 4), FIX(2, 4)), P(setresgid, NONE),
	P(getresgid, FIX(0, 4), FIX(1, 4), FIX(2, 4)), P(getpgid, NONE), O(setfsuid, NONE),
	P(setfsgid, NONE), P(getsid, NONE), P(capget, FIX_ALWAYS(0, 8), FIX(1, 24)), P(capset, FIX_ALWAYS(0, 8)),
	O(rt_sigpending, SIZED(0, 1)), O(rt_sigtimedwait, FIX(1, 128)), P(rt_sigqueueinfo, NONE),
	O(rt_sigsuspend, NONE), O(sigaltstack, FIX(1, 24)), P(utime, NONE), P(mknod, NONE),
	C(uselib, NOTED, NONE), P(personality, NONE), P(ustat, FIX(1, 32)),
	P(statfs, FIX(1, 120)), P(fstatfs, FIX(1, 120)), C(sysfs, NOTED, NONE), P(getpriority, NONE),
	P(setpriority, NONE), P(sched_setparam, NONE), P(sched_getparam, FIX(1, 4)),
	P(sched_setscheduler, NONE), P(sched_getscheduler, NONE),
	P(sched_get_priority_max, NONE), P(sched_get_priority_min, NONE),
	P(sched_rr_get_interval, FIX(1, 16)), P(mlock, NONE), P(munlock, NONE),
	O(mlockall, NONE), O(munlockall, NONE), P(vhangup, NONE), C(modify_ldt, NOTED, NONE),
	P(pivot_root, NONE), C(_sysctl, NOTED, NONE), C(prctl, IOCTL, NONE),
	O(arch_prctl, NONE), P(adjtimex, FIX(0, 208)), O(setrlimit, NONE), P(chroot, NONE),
	P(sync, NONE), P(acct, NONE), P(settimeofday, NONE), P(mount, NONE), P(umount2, NONE),
	P(swapon, NONE), P(swapoff, NONE), P(reboot, NONE), P(sethostname, NONE),
	P(setdomainname, NONE), P(iopl, NONE), P(ioperm, NONE), P(init_module, NONE),
	P(delete_module, NONE), C(quotactl, NOTED, NONE), P(gettid, NONE), P(readahead, NONE),
	P(setxattr, NONE), P(lsetxattr, NONE), P(fsetxattr, NONE), P(getxattr, RES(2)),
	P(lgetxattr, RES(2)), P(fgetxattr, RES(2)), P(listxattr, RES(1)), P(llistxattr, RES(1)),
	P(flistxattr, RES(1)), P(removexattr, NONE), P(lremovexattr, NONE),
	P(fremovexattr, NONE), P(tkill, NONE), P(time, FIX(0, 8)), O(futex, NONE),
	P(sched_setaffinity, NONE), P(sched_getaffinity, RES(2)), O(set_thread_area, NONE),
	P(io_setup, FIX(1, 8)), P(io_destroy, NONE), P(io_getevents, RESN(3, 32)),
	C(io_submit, NOTED, NONE), P(io_cancel, FIX(2, 32)), P(get_thread_area, FIX(0, 16)),
	C(lookup_dcookie, NOTED, NONE), P(epoll_create, NONE), O(remap_file_pages, NONE),
	P(getdents64, RES(1)), O(set_tid_address, NONE), P(restart_syscall, NONE),
	P(semtimedop, NONE), P(fadvise64, NONE), O(timer_create, FIX(2, 4)),
	P(timer_settime, FIX(3, 32)), P(timer_gettime, FIX(1, 32)), P(timer_getoverrun, NONE),
	P(timer_delete, NONE), P(clock_settime, NONE), P(clock_gettime, FIX(1, 16)),
	P(clock_getres, FIX(1, 16)), P(clock_nanosleep, FIX_ALWAYS(3, 16)), O(exit_group, NONE),
	P(epoll_wait, RESN(1, 12)), P(epoll_ctl, NONE), P(tgkill, NONE), P(utimes, NONE),
	P(mbind, NONE), P(set_mempolicy, NONE), P(get_mempolicy, FIX(0, 4), MASK(1, 2)), P(mq_open, NONE),
	P(mq_unlink, NONE), P(mq_timedsend, NONE), P(mq_timedreceive, RES(1), FIX(3, 4)),
	P(mq_notify, NONE), P(mq_getsetattr, FIX(2, 64)), P(kexec_load, NONE),
	P(waitid, FIX(2, 128), FIX(4, 144)), P(add_key, NONE), P(request_key, NONE),
	C(keyctl, NOTED, NONE), P(ioprio_set, NONE), P(ioprio_get, NONE),
	P(inotify_init, NONE), P(inotify_add_watch, NONE), P(inotify_rm_watch, NONE),
	P(migrate_pages, NONE), P(openat, NONE), P(mkdirat, NONE), P(mknodat, NONE),
	P(fchownat, NONE), P(futimesat, NONE), P(newfstatat, FIX(2, 144)), P(unlinkat, NONE),
	P(renameat, NONE), P(linkat, NONE), P(symlinkat, NONE), P(readlinkat, RES(2)),
	P(fchmodat, NONE), P(faccessat, NONE),
	O(pselect6, FDS(1), FDS(2), FDS(3), FIX_ALWAYS(4, 16)),
	O(ppoll, CNT_ALWAYS(0, 1, 8), FIX_ALWAYS(2, 16)), P(unshare, NONE),
	P(set_robust_list, NONE), P(get_robust_list, FIX(1, 8), FIX(2, 8)),
	P(splice, FIX(1, 8), FIX(3, 8)), P(tee, NONE), P(sync_file_range, NONE),
	P(vmsplice, VEC(1, 2)), P(move_pages, CNT(4, 1, 4)), P(utimensat, NONE),
	O(epoll_pwait, RESN(1, 12)), P(signalfd, NONE), P(timerfd_create, NONE),
	P(eventfd, NONE), P(fallocate, NONE), P(timerfd_settime, FIX(3, 32)),
	P(timerfd_gettime, FIX(1, 32)), P(accept4, SOCK(1, 2)), P(signalfd4, NONE),
	P(eventfd2, NONE), P(epoll_create1, NONE), P(dup3, NONE), P(pipe2, FIX(0, 8)),
	P(inotify_init1, NONE), P(preadv, VEC(1, 2)), P(pwritev, SENTV(1, 2)),
	O(rt_tgsigqueueinfo, NONE), P(perf_event_open, FIX_ALWAYS(0, 8)), P(recvmmsg, MSGS(1), FIX(4, 16)),
	P(fanotify_init, NONE), P(fanotify_mark, NONE), O(prlimit64, FIX(3, 16)),
	P(name_to_handle_at, HANDLE(2), FIX_ALWAYS(3, 4)), P(open_by_handle_at, NONE),
	P(clock_adjtime, FIX(1, 208)), P(syncfs, NONE), P(sendmmsg, LENS(1)), P(setns, NONE),
	P(getcpu, FIX(0, 4), FIX(1, 4)), P(process_vm_readv, VEC(1, 2)),
	P(process_vm_writev, OWNVEC(3, 4)), P(kcmp, NONE), P(finit_module, NONE),
	P(sched_setattr, FIX_ALWAYS(1, 4)), P(sched_getattr, SIZED(1, 2)), P(renameat2, NONE),
	C(seccomp, NOTED, NONE), P(getrandom, RES(0)), P(memfd_create, NONE),
	P(kexec_file_load, NONE), C(bpf, NOTED, NONE), O(execveat, NONE),
	C(userfaultfd, NOTED, NONE), P(membarrier, NONE), P(mlock2, NONE),
	P(copy_file_range, FIX(1, 8), FIX(3, 8)), P(preadv2, VEC(1, 2)),
	P(pwritev2, SENTV(1, 2)), O(pkey_mprotect, NONE), P(pkey_alloc, NONE),
	P(pkey_free, NONE), P(statx, FIX(4, 256)), O(io_pgetevents, RESN(3, 32)), O(rseq, NONE),
	P(pidfd_send_signal, NONE), C(io_uring_setup, NOTED, FIX(1, 120)),
	C(io_uring_enter, NOTED, NONE), P(io_uring_register, NONE), P(open_tree, NONE),
	P(move_mount, NONE), P(fsopen, NONE), P(fsconfig, NONE), P(fsmount, NONE),
	P(fspick, NONE), P(pidfd_open, NONE), O(clone3, NONE), P(close_range, NONE),
	P(openat2, NONE), P(pidfd_getfd, NONE), P(faccessat2, NONE), P(process_madvise, NONE),
	O(epoll_pwait2, RESN(1, 12)), P(mount_setattr, NONE), C(quotactl_fd, NOTED, NONE),
	P(landlock_create_ruleset, NONE), P(landlock_add_rule, NONE),
	P(landlock_restrict_self, NONE), P(memfd_secret, NONE), P(process_mrelease, NONE),
	N(449, "futex_waitv", PLAIN, NONE), N(450, "set_mempolicy_home_node", PLAIN, NONE),
	N(451, "cachestat", PLAIN, FIX(2, 40)), N(452, "fchmodat2", PLAIN, NONE),
	N(453, "map_shadow_stack", NOTED, NONE), N(454, "futex_wake", PLAIN, NONE),
	N(455, "futex_wait", PLAIN, NONE), N(456, "futex_requeue", PLAIN, NONE),
	N(457, "statmount", PLAIN, CNT(1, 2, 1)), N(458, "listmount", PLAIN, RESN(1, 8)),
	N(462, "mseal", PLAIN, NONE),
};
