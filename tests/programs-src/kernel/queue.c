#include "k.h"
static volatile int cnt;
static int vals[64];
static void h(int s, siginfo_t *i, void *u)
{
	vals[cnt++] = i->si_value.sival_int;
	SAY("%d code %d val %d pid %d", s - SIGRTMIN, i->si_code, i->si_value.sival_int,
	    i->si_pid == getpid());
}
int main()
{
	setbuf(stdout, 0);
	struct sigaction sa = {.sa_sigaction = h, .sa_flags = SA_SIGINFO};
	for (int k = 0; k < 6; k++)
		sigaction(SIGRTMIN + k, &sa, 0);
	sigset_t all, old;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	for (int k = 5; k >= 0; k--)
		for (int j = 0; j < 3; j++)
			R(sigqueue(getpid(), SIGRTMIN + k,
				   (union sigval){.sival_int = k * 10 + j}));
	raise(SIGUSR1);
	kill(getpid(), SIGUSR1);
	sigset_t p;
	sigpending(&p);
	for (int k = 1; k < 65; k++)
		if (sigismember(&p, k))
			printf("%d ", k);
	puts("");
	siginfo_t si;
	sigset_t w;
	sigemptyset(&w);
	sigaddset(&w, SIGRTMIN + 2);
	sigaddset(&w, SIGUSR1);
	R(sigwaitinfo(&w, &si));
	SAY("code %d", si.si_code);
	R(sigwaitinfo(&w, &si));
	SAY("code %d val %d", si.si_code, si.si_code == SI_QUEUE ? si.si_value.sival_int : 0);
	struct timespec ts = {0, 1000000};
	sigemptyset(&w);
	sigaddset(&w, SIGUSR2);
	R(sigtimedwait(&w, &si, &ts));
	ts.tv_nsec = -1;
	R(sigtimedwait(&w, &si, &ts));
	sigprocmask(SIG_SETMASK, &old, 0);
	SAY("cnt %d", cnt);
	R(sigqueue(getpid(), 0, (union sigval){0}));
	R(sigqueue(getpid(), 65, (union sigval){0}));
	R(sigqueue(1 << 29, SIGUSR1, (union sigval){0}));
	int sg;
	sigemptyset(&w);
	sigaddset(&w, SIGUSR2);
	sigprocmask(SIG_BLOCK, &w, 0);
	raise(SIGUSR2);
	R(sigwait(&w, &sg));
	SAY("%d", sg == SIGUSR2);
	siginfo_t fake = {.si_signo = SIGRTMIN, .si_code = SI_QUEUE, .si_pid = getpid()};
	fake.si_value.sival_int = 77;
	R(syscall(SYS_rt_sigqueueinfo, getpid(), SIGRTMIN, &fake));
	fake.si_code = -1000;
	R(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGRTMIN + 1, &fake));
	fake.si_code = SI_TKILL;
	R(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGRTMIN + 1, &fake));
	return 0;
}
