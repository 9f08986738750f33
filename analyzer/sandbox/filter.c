/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The system calls of a confined process, as a table. What is not in it is not made: the process ends with a message that names
 * it. Opening a file to read asks the process outside instead, so that libraries need not know.
 */
#include "analyzer/sandbox/internal.h"
#include "common/syscall_names.h"
#include "common/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define STOPPED 120 /* exit status; worker.c */

enum what { ALWAYS, WHERE, FAIL };

struct row {
	int nr;
	enum what what;
	uint32_t arg, mask, value; /* WHERE: argument number `arg`, masked, has this value */
	bool own_pid, own_socket;  /* `value` is known at run time only */
	int error;                 /* FAIL */
};

#define ALL 0xffffffffu
#define OK(name) { .nr = SYS_##name, .what = ALWAYS }
#define IF(name, number, bits, is) { .nr = SYS_##name, .what = WHERE, .arg = number, .mask = bits, .value = is }
#define IF_OWN_PID(name) { .nr = SYS_##name, .what = WHERE, .mask = ALL, .own_pid = true }
#define IF_SOCKET(name) { .nr = SYS_##name, .what = WHERE, .mask = ALL, .own_socket = true }
#define NO(name, why) { .nr = SYS_##name, .what = FAIL, .error = why }

#define WX (PROT_WRITE | PROT_EXEC)
#define THREAD_FLAGS (CLONE_VM | CLONE_SIGHAND | CLONE_THREAD)
#define NAMESPACES (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* The first row that fits counts. */
static const struct row rows[] = {
	/* descriptors that are open */
	OK(read), OK(write), OK(readv), OK(writev), OK(pread64), OK(pwrite64), OK(lseek), OK(close), OK(fstat), OK(dup),
	OK(getdents64), OK(ftruncate), OK(fallocate), OK(fadvise64), OK(poll), OK(ppoll),
	IF(newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH), IF(fcntl, 1, ALL, F_DUPFD), IF(fcntl, 1, ALL, F_DUPFD_CLOEXEC),
	IF(fcntl, 1, ALL, F_GETFD), IF(fcntl, 1, ALL, F_SETFD), IF(fcntl, 1, ALL, F_GETFL), IF(ioctl, 1, ALL, 0x5401 /* TCGETS */),
	IF(ioctl, 1, ALL, 0x5413 /* TIOCGWINSZ */), IF(ioctl, 1, ALL, 0x802c542a /* TCGETS2 */), NO(ioctl, ENOTTY),
	/* the process outside */
	IF_SOCKET(sendto), IF_SOCKET(recvmsg),
	/* memory: never writable and executable at once, as exec_space.c has it */
	IF(mmap, 2, WX, 0), IF(mmap, 2, WX, PROT_WRITE), IF(mmap, 2, WX, PROT_EXEC), NO(mmap, EACCES),
	IF(mprotect, 2, WX, 0), IF(mprotect, 2, WX, PROT_WRITE), IF(mprotect, 2, WX, PROT_EXEC), NO(mprotect, EACCES),
	OK(munmap), OK(mremap), OK(madvise), OK(msync), OK(brk),
	/* threads and signals of this process */
	IF(clone, 0, THREAD_FLAGS | NAMESPACES, THREAD_FLAGS), NO(clone3, ENOSYS), OK(futex), OK(set_robust_list), OK(rseq), OK(exit),
	OK(exit_group), OK(sched_yield), OK(sched_getaffinity), OK(getcpu), OK(rt_sigaction), OK(rt_sigprocmask), OK(rt_sigreturn),
	OK(sigaltstack), OK(restart_syscall), IF_OWN_PID(tgkill), IF_OWN_PID(kill), OK(membarrier), OK(timer_create), OK(timer_settime),
	OK(timer_delete), OK(setitimer), OK(alarm),
	/* time, randomness, who we are */
	OK(clock_gettime), OK(clock_getres), OK(clock_nanosleep), OK(nanosleep), OK(gettimeofday), OK(time), OK(times), OK(getrusage),
	OK(getrandom), OK(getpid), OK(gettid), OK(getuid), OK(geteuid), OK(getgid), OK(getegid), OK(sysinfo),
	IF(prlimit64, 2, ALL, 0), IF(prctl, 0, ALL, PR_SET_NAME), OK(getrlimit),
	/* what libraries try and can do without */
	NO(stat, EACCES), NO(lstat, EACCES), NO(newfstatat, EACCES), NO(statx, EACCES), NO(access, EACCES), NO(faccessat, EACCES),
	NO(faccessat2, EACCES), NO(readlink, EACCES), NO(readlinkat, EACCES), NO(getcwd, EACCES), NO(uname, EPERM), NO(prctl, EPERM),
	NO(sched_setaffinity, EPERM), NO(memfd_create, EPERM), NO(unlink, EACCES), NO(fcntl, EINVAL), NO(openat2, ENOSYS),
};

typedef VEC(struct sock_filter) program_t;

static void emit(program_t *p, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	vec_push(p, (struct sock_filter)BPF_JUMP(code, k, yes, no));
}

#define NR offsetof(struct seccomp_data, nr)
#define ARCH offsetof(struct seccomp_data, arch)
#define ARG(i) (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (i)) /* its low half, then its high one */

static void emit_row(program_t *p, const struct row *r, int sock)
{
	uint32_t value = r->own_pid ? (uint32_t)getpid() : r->own_socket ? (uint32_t)sock : r->value;
	bool wide = r->mask == ALL && !r->own_pid && !r->own_socket && r->nr == SYS_prlimit64; /* a pointer */

	emit(p, BPF_LD | BPF_W | BPF_ABS, NR, 0, 0);
	if (r->what == WHERE) {
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->nr, 0, wide ? 6 : 4);
		emit(p, BPF_LD | BPF_W | BPF_ABS, ARG(r->arg), 0, 0);
		emit(p, BPF_ALU | BPF_AND | BPF_K, r->mask, 0, 0);
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, value, 0, wide ? 3 : 1);
		if (wide) {
			emit(p, BPF_LD | BPF_W | BPF_ABS, ARG(r->arg) + 4, 0, 0);
			emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
		}
	} else {
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->nr, 0, 1);
	}
	emit(p, BPF_RET | BPF_K, r->what == FAIL ? SECCOMP_RET_ERRNO | (uint32_t)r->error : SECCOMP_RET_ALLOW, 0, 0);
}

/* ---- what is not in the table ---- */

static void say(const char *s)
{
	if (write(2, s, strlen(s)) < 0)
		_exit(STOPPED);
}

static void stop_at(int nr)
{
	char text[32];
	const char *name = syscall_name((uint32_t)nr);

	say("csched: stopped by its sandbox at a system call that no analysis makes: ");
	if (name) {
		say(name);
	} else {
		snprintf(text, sizeof text, "%d", nr);
		say(text);
	}
	say("\n");
	_exit(STOPPED);
}

/* Opening to read becomes a question, every other way of opening an error. */
static long instead_of_open(const greg_t *g, bool at)
{
	const char *path = (const char *)g[at ? REG_RSI : REG_RDI];
	int flags = (int)g[at ? REG_RDX : REG_RSI];

	if (flags & ~(O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_LARGEFILE | 0100000 /* O_LARGEFILE in the kernel's words */))
		return -EACCES;
	int fd = door_open(DOOR_ELF, path);
	return fd < 0 ? -errno : fd;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	int before = errno, nr = info->si_syscall;

	(void)sig;
	if (nr != SYS_open && nr != SYS_openat)
		stop_at(nr);
	g[REG_RAX] = instead_of_open(g, nr == SYS_openat);
	errno = before;
}

err_t sandbox_filter(int sock)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER };
	program_t p = { 0 };
	err_t bad = NULL;

	sigaction(SIGSYS, &action, NULL);
	emit(&p, BPF_LD | BPF_W | BPF_ABS, ARCH, 0, 0);
	emit(&p, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	emit(&p, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		emit_row(&p, &rows[i], sock);
	emit(&p, BPF_RET | BPF_K, SECCOMP_RET_TRAP, 0, 0);
	struct sock_fprog program = { (unsigned short)p.n, p.v };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		bad = err_new(ERR_INTERNAL, "this kernel does not let us confine ourselves (seccomp: %s); --no-sandbox goes on "
					    "without", strerror(errno));
	vec_free(&p);
	return bad;
}
