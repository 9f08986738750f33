/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walls around a library's code: Landlock for files, namespaces for the network, limits, and for the processes that
 * make calls a filter of system calls. What a kernel does not know is left out; the rest still holds.
 */
#include "analyzer/testgen/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMORY_BYTES (2ull << 30)
#define FILE_BYTES (16u << 20)
#define CPU_SECONDS 600     /* of the server with all its children's own limits on top */

/* ---- files ---- */

/* Not in every <linux/landlock.h>. */
#define ACCESS_TRUNCATE (1ull << 14) /* third version */
#define SCOPE_SIGNAL (1ull << 1)     /* sixth version */
struct ruleset {
	uint64_t files, network, scoped;
};

void walls_files(const char *dir)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct ruleset attr = {
		.files = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
			 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
			 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
			 LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM |
			 (version >= 3 ? ACCESS_TRUNCATE : 0),
		.scoped = version >= 6 ? SCOPE_SIGNAL : 0,
	};
	size_t size = version >= 6 ? sizeof attr : version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
	int set = version < 1 ? -1 : (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	struct landlock_path_beneath_attr beneath = {
		.allowed_access = attr.files, .parent_fd = open(dir, O_PATH | O_CLOEXEC),
	};
	struct landlock_path_beneath_attr null = {
		.allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE | (attr.files & ACCESS_TRUNCATE),
		.parent_fd = open("/dev/null", O_PATH | O_CLOEXEC),
	};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (set >= 0) {
		syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
		syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &null, 0);
		syscall(SYS_landlock_restrict_self, set, 0);
		close(set);
	}
	close(beneath.parent_fd);
	close(null.parent_fd);
}

/* ---- the server ---- */

static void limit(int what, uint64_t to)
{
	struct rlimit r = { to, to };

	setrlimit(what, &r);
}

void walls_server(const char *dir)
{
	int null = open("/dev/null", O_RDWR);

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (chdir(dir))
		_exit(1);
	dup2(null, 0);
	dup2(null, 1);
	int said = open("said", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
	dup2(said, 2);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, FILE_BYTES);
	limit(RLIMIT_AS, MEMORY_BYTES);
	limit(RLIMIT_CPU, CPU_SECONDS);
	/* A network of its own is none; where that is not allowed the rest still holds. */
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC) && unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC))
		errno = 0;
	setenv("HOME", dir, 1);
	setenv("TMPDIR", dir, 1);
	walls_files(dir);
}

/* ---- system calls ---- */

/* What calls get instead, in the server already: a filter costs a job as much as its fork. Everything else is let through. */
static const struct { uint16_t nr, error; } refused[] = {
	/* Other processes would outlive the job, and another program's code is not the library's. */
	{ SYS_fork, EAGAIN }, { SYS_vfork, EAGAIN }, { SYS_clone3, ENOSYS }, { SYS_execve, EPERM }, { SYS_execveat, EPERM },
	{ SYS_setsid, EPERM }, { SYS_unshare, EPERM }, { SYS_setns, EPERM },
	/* Signals and memory of others. */
	{ SYS_tkill, EPERM }, { SYS_rt_sigqueueinfo, EPERM }, { SYS_rt_tgsigqueueinfo, EPERM },
	{ SYS_pidfd_send_signal, EPERM }, { SYS_pidfd_getfd, EPERM }, { SYS_ptrace, EPERM },
	{ SYS_process_vm_writev, EPERM }, { SYS_kcmp, EPERM },
	/* Who it is, and what only root may do. */
	{ SYS_setuid, EPERM }, { SYS_setgid, EPERM }, { SYS_setreuid, EPERM }, { SYS_setregid, EPERM },
	{ SYS_setresuid, EPERM }, { SYS_setresgid, EPERM }, { SYS_setfsuid, EPERM }, { SYS_setfsgid, EPERM },
	{ SYS_setgroups, EPERM }, { SYS_capset, EPERM }, { SYS_mount, EPERM }, { SYS_umount2, EPERM },
	{ SYS_pivot_root, EPERM }, { SYS_chroot, EPERM }, { SYS_move_mount, EPERM }, { SYS_fsmount, EPERM },
	{ SYS_open_tree, EPERM }, { SYS_mount_setattr, EPERM }, { SYS_swapon, EPERM }, { SYS_swapoff, EPERM },
	{ SYS_reboot, EPERM }, { SYS_kexec_load, EPERM }, { SYS_kexec_file_load, EPERM }, { SYS_init_module, EPERM },
	{ SYS_finit_module, EPERM }, { SYS_delete_module, EPERM }, { SYS_bpf, EPERM }, { SYS_perf_event_open, EPERM },
	{ SYS_sethostname, EPERM }, { SYS_setdomainname, EPERM }, { SYS_settimeofday, EPERM },
	{ SYS_clock_settime, EPERM }, { SYS_adjtimex, EPERM }, { SYS_clock_adjtime, EPERM }, { SYS_acct, EPERM },
	{ SYS_quotactl, EPERM }, { SYS_syslog, EPERM }, { SYS_iopl, EPERM }, { SYS_ioperm, EPERM }, { SYS_vhangup, EPERM },
	{ SYS_open_by_handle_at, EPERM }, { SYS_io_uring_setup, ENOSYS }, { SYS_setrlimit, EPERM },
	/* Files' properties, which Landlock does not guard. */
	{ SYS_chmod, EPERM }, { SYS_fchmod, EPERM }, { SYS_fchmodat, EPERM }, { SYS_chown, EPERM }, { SYS_fchown, EPERM },
	{ SYS_lchown, EPERM }, { SYS_fchownat, EPERM }, { SYS_utime, EPERM }, { SYS_utimes, EPERM },
	{ SYS_utimensat, EPERM }, { SYS_futimesat, EPERM }, { SYS_setxattr, EPERM }, { SYS_lsetxattr, EPERM },
	{ SYS_fsetxattr, EPERM }, { SYS_removexattr, EPERM }, { SYS_lremovexattr, EPERM }, { SYS_fremovexattr, EPERM },
	/* Sockets in the file system are reached without a network. */
	{ SYS_connect, EACCES },
};

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define ARG(i) (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (i)) /* its low half, then its high one */
#define LOAD(at) (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define FAIL(error) (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define PASS (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define IF(k, yes, no) (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no)

static void install(struct sock_filter *p, unsigned n)
{
	struct sock_fprog program = { .len = (unsigned short)n, .filter = p };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

void walls_calls(void)
{
	static struct sock_filter p[2 * COUNT(refused) + 8];
	unsigned n = 0;

	p[n++] = LOAD(offsetof(struct seccomp_data, arch));
	p[n++] = IF(AUDIT_ARCH_X86_64, 1, 0);
	p[n++] = FAIL(ENOSYS);
	p[n++] = LOAD(offsetof(struct seccomp_data, nr));
	p[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
	p[n++] = FAIL(ENOSYS);
	for (size_t i = 0; i < COUNT(refused); i++) {
		p[n++] = IF(refused[i].nr, 0, 1);
		p[n++] = FAIL(refused[i].error);
	}
	p[n++] = PASS;
	install(p, n);
}

void walls_child(void)
{
	struct sock_filter p[40];
	uint32_t self = (uint32_t)getpid();
	unsigned n = 0;

	p[n++] = LOAD(offsetof(struct seccomp_data, nr));
	/* The server watches its children by them; they need neither. */
	p[n++] = IF(SYS_pidfd_open, 1, 0);
	p[n++] = IF(SYS_setpgid, 0, 1);
	p[n++] = FAIL(EPERM);
	/* clone: threads only. */
	p[n++] = IF(SYS_clone, 0, 4);
	p[n++] = LOAD(ARG(0));
	p[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
	p[n++] = PASS;
	p[n++] = FAIL(EAGAIN);
	/* Itself: state.c reads its own memory; kill(0) reaches its own group only, which it cannot leave. */
	p[n++] = IF(SYS_process_vm_readv, 2, 0);
	p[n++] = IF(SYS_tgkill, 1, 0);
	p[n++] = IF(SYS_kill, 0, 5);
	p[n++] = LOAD(ARG(0));
	p[n++] = IF(self, 2, 0);
	p[n++] = IF(0, 1, 0);
	p[n++] = FAIL(EPERM);
	p[n++] = PASS;
	/* prlimit64: only asks, glibc asks for the stack's. */
	p[n++] = IF(SYS_prlimit64, 0, 6);
	p[n++] = LOAD(ARG(2));
	p[n++] = IF(0, 0, 3);
	p[n++] = LOAD(ARG(2) + 4);
	p[n++] = IF(0, 0, 1);
	p[n++] = PASS;
	p[n++] = FAIL(EPERM);
	p[n++] = PASS;

	install(p, n);
}
