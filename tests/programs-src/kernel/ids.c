#include "k.h"
#include <grp.h>
#include <sys/prctl.h>
int main(void)
{
	setbuf(stdout, 0);
	uid_t r, e, s;
	gid_t g[64];
	R(getresuid(&r, &e, &s));
	if (fork()) {
		int st;
		wait(&st);
		SAY("%x", st);
	} else {
		R(setgroups(3, (gid_t[]){5, 6, 7}));
		int n = getgroups(64, g);
		SAY("%d", n);
		for (int i = 0; i < n; i++)
			SAY("%u", g[i]);
		R(getgroups(0, g));
		R(getgroups(1, g));
		R(setresgid(100, 101, 102));
		R(setresuid(-1, 200, -1));
		getresuid(&r, &e, &s);
		SAY("%d %d %d", r, e, s);
		R(seteuid(0));
		R(setresuid(300, 301, 302));
		gid_t a, b, c;
		getresgid(&a, &b, &c);
		SAY("%d %d %d", a, b, c);
		R(setuid(0));
		R(setuid(302));
		SAY("%d %d", getuid(), geteuid());
		R(prctl(PR_GET_DUMPABLE));
		_exit(0);
	}
	char nm[16];
	R(prctl(PR_SET_NAME, "a-very-long-thread-name"));
	R(prctl(PR_GET_NAME, nm));
	SAY("%s", nm);
	int v = 99;
	R(prctl(PR_SET_PDEATHSIG, SIGUSR1));
	R(prctl(PR_GET_PDEATHSIG, &v));
	SAY("%d", v);
	R(prctl(PR_SET_CHILD_SUBREAPER, 1));
	R(prctl(PR_GET_CHILD_SUBREAPER, &v));
	SAY("%d", v);
	R(prctl(PR_GET_KEEPCAPS));
	R(prctl(PR_SET_KEEPCAPS, 7));
	R(prctl(PR_GET_TIMERSLACK));
	R(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	R(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	R(prctl(PR_GET_SECCOMP));
	R(prctl(12345));
	R(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	R(prctl(PR_CAPBSET_READ, 5) >= 0);
	R(prctl(PR_GET_NAME, (char *)1));
	R(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));
	R(prctl(PR_GET_TSC, &v));
	SAY("%d", v);
	R(prctl(PR_GET_UNALIGN, &v));
	R(prctl(PR_GET_ENDIAN, &v));
	unsigned h[2] = {0x20080522, 0};
	struct {
		unsigned e, p, i;
	} cd[2];
	R(syscall(SYS_capget, h, cd));
	h[0] = 1;
	R(syscall(SYS_capget, h, 0));
	SAY("%x", h[0]);
	h[0] = 0x19980330;
	R(syscall(SYS_capget, h, cd));
	R(getpriority(PRIO_PROCESS, 0));
	R(setpriority(PRIO_PROCESS, 0, 3));
	R(nice(0));
	R(syscall(SYS_getpriority, 0, 0));
	R(sched_getscheduler(0));
	struct sched_param sp = {9};
	R(sched_getparam(0, &sp));
	SAY("%d", sp.sched_priority);
	cpu_set_t cs;
	R(sched_getaffinity(0, sizeof cs, &cs));
	SAY("%d", CPU_COUNT(&cs) > 0);
	R(sched_setaffinity(0, sizeof cs, &cs));
	struct {
		unsigned size, pol;
		unsigned long fl;
		int nice;
		unsigned prio;
		unsigned long a, b, c;
		unsigned d, e;
	} sa;
	R(syscall(SYS_sched_getattr, 0, &sa, sizeof sa, 0));
	SAY("%u %u %d", sa.size, sa.pol, sa.nice);
	R(syscall(SYS_sched_getattr, 0, &sa, 48, 0));
	R(syscall(SYS_sched_getattr, 0, &sa, 8, 0));
	struct timespec ts;
	R(sched_rr_get_interval(0, &ts));
	R(syscall(SYS_ioprio_get, 1, 0) >= 0);
	R(getpgid(0) > 0);
	R(getsid(0) > 0);
	R(setpgid(0, 0) * 0);
	R(umask(022));
	R(syscall(SYS_personality, 0xffffffff));
	return 0;
}
