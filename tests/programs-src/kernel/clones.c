#include "k.h"
#include <linux/sched.h>
#include <linux/futex.h>
static char st[65536] __attribute__((aligned(64)));
static int word, seen;
static int fn(void *a)
{
	seen = *(int *)a;
	return 17;
}
static int thr(void *a)
{
	__atomic_store_n(&seen, 77, __ATOMIC_SEQ_CST);
	syscall(SYS_exit, 0);
	return 0;
}
int main(void)
{
	int x = 4, s;
	pid_t p = clone(fn, st + sizeof st, CLONE_VM | SIGCHLD, &x);
	R(waitpid(p, &s, 0) == p);
	SAY("%x %d", s, seen);
	x = 5;
	p = clone(fn, st + sizeof st, SIGCHLD, &x);
	R(waitpid(p, &s, 0) == p);
	SAY("%x %d", s, seen);
	x = 6;
	p = clone(fn, st + sizeof st, CLONE_VM | CLONE_VFORK | SIGCHLD, &x);
	R(waitpid(p, &s, 0) == p);
	SAY("%x %d", s, seen);
	p = clone(fn, st + sizeof st, CLONE_VM | CLONE_FILES | CLONE_FS | 0, &x);
	R(waitpid(p, &s, 0));
	R(waitpid(p, &s, __WCLONE) == p);
	SAY("%x", s);
	p = clone(fn, st + sizeof st,
		  CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_VM | SIGCHLD, &x, &word, 0,
		  &word);
	while (__atomic_load_n(&word, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &word, FUTEX_WAIT, p, 0);
	waitpid(p, &s, 0);
	SAY("cleared %x", s);
	int pidfd = -1;
	struct clone_args ca = {
	    .flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};
	p = syscall(SYS_clone3, &ca, sizeof ca);
	if (!p)
		_exit(9);
	siginfo_t si;
	R(waitid(P_PIDFD, pidfd, &si, WEXITED));
	SAY("%d %d", si.si_status, pidfd);
	ca.flags = CLONE_THREAD;
	R(syscall(SYS_clone3, &ca, sizeof ca));
	R(syscall(SYS_clone3, &ca, 8));
	R(clone(fn, 0, CLONE_VM, &x));
	R(syscall(SYS_clone, CLONE_THREAD, 0, 0, 0, 0));
	p = fork();
	if (!p) {
		pause();
	}
	int pf = syscall(SYS_pidfd_open, p, 0);
	R(syscall(SYS_pidfd_send_signal, pf, SIGTERM, 0, 0));
	R(waitpid(p, &s, 0) == p);
	SAY("%x", s);
	int ch = -1;
	p = syscall(SYS_clone, CLONE_CHILD_SETTID | CLONE_PARENT_SETTID | SIGCHLD, 0, &word, &ch,
		    0);
	if (!p)
		_exit(ch == gettid() ? 3 : 4);
	waitpid(p, &s, 0);
	SAY("%x %d %d", s, word == p, ch);
	R(unshare(CLONE_FILES));
	R(unshare(CLONE_FS));
	p = clone(fn, st + sizeof st, CLONE_VM | CLONE_PARENT | SIGCHLD, &x) > 0;
	SAY("%d", p);
	R(syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0));
	usleep(20000);
	return 0;
}
