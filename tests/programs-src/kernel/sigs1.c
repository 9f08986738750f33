#include "k.h"
static volatile int n, order[64];
static void h(int s, siginfo_t *i, void *u)
{
	order[n++] = s * 1000 + (i->si_code == SI_QUEUE ? i->si_value.sival_int : i->si_code & 7);
}
int main(void)
{
	struct sigaction sa = {.sa_sigaction = h, .sa_flags = SA_SIGINFO};
	sigset_t all, pend;
	sigfillset(&all);
	for (int s = SIGRTMIN; s < SIGRTMIN + 4; s++)
		sigaction(s, &sa, 0);
	sigaction(SIGUSR1, &sa, 0);
	sigaction(SIGUSR2, &sa, 0);
	sigprocmask(SIG_BLOCK, &all, 0);
	for (int k = 0; k < 3; k++)
		for (int s = SIGRTMIN + 3; s >= SIGRTMIN; s--)
			sigqueue(getpid(), s, (union sigval){.sival_int = k});
	kill(getpid(), SIGUSR2);
	raise(SIGUSR1);
	kill(getpid(), SIGUSR1);
	sigpending(&pend);
	for (int s = 1; s < 65; s++)
		if (sigismember(&pend, s) == 1)
			SAY("pending %d", s);
	sigset_t one;
	sigemptyset(&one);
	sigaddset(&one, SIGRTMIN + 1);
	siginfo_t si;
	struct timespec z = {0};
	R(sigtimedwait(&one, &si, &z));
	SAY("value %d code %d", si.si_value.sival_int, si.si_code);
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, 0);
	for (int i = 0; i < n; i++)
		SAY("%d", order[i]);
	n = 0;
	sigaddset(&one, SIGUSR1);
	sigprocmask(SIG_BLOCK, &one, 0);
	int w;
	raise(SIGUSR1);
	R(sigwait(&one, &w));
	SAY("%d", w);
	R(sigtimedwait(&one, &si, &z));
	sa.sa_flags |= SA_RESETHAND | SA_NODEFER;
	sigaction(SIGUSR2, &sa, 0);
	raise(SIGUSR2);
	struct sigaction old;
	sigaction(SIGUSR2, 0, &old);
	SAY("%d %d %x", n, old.sa_handler == SIG_DFL, old.sa_flags & 0xff);
	signal(SIGCHLD, SIG_IGN);
	pid_t p = fork();
	if (!p)
		_exit(1);
	R(waitpid(p, 0, 0) == -1);
	signal(SIGCHLD, SIG_DFL);
	sa.sa_flags = SA_SIGINFO | SA_NOCLDWAIT;
	sigaction(SIGCHLD, &sa, 0);
	n = 0;
	p = fork();
	if (!p)
		_exit(1);
	int r;
	do
		r = waitpid(p, 0, 0);
	while (r < 0 && errno == EINTR);
	SAY("%d %s n %d", r, ername(errno), n);
	R(sigqueue(getpid(), 0, (union sigval){0}));
	R(kill(getpid(), 65));
	R(raise(0));
	return 0;
}
