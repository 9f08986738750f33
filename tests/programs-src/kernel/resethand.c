/* A handler that is reset as it begins (SA_RESETHAND) leaves alone what is pending of its signal, also where the default is to do nothing. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void handler(int sig)
{
	struct timespec none = { 0, 0 };
	siginfo_t info;
	sigset_t set;

	sigpending(&set);
	printf("in the handler of %d: pending %d\n", sig, sigismember(&set, sig));
	sigemptyset(&set);
	sigaddset(&set, sig);
	if (sigtimedwait(&set, &info, &none) == sig)
		printf("taken: code %d, own %d\n", info.si_code, info.si_pid == getpid());
	printf("and no more: %d\n", sigtimedwait(&set, &info, &none));
}

static void twice(int sig, int flags)
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = (int)SA_RESETHAND | flags };
	sigset_t all, old;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	sigaction(sig, &a, NULL);
	raise(sig);
	kill(getpid(), sig);
	sigdelset(&old, sig);
	sigsuspend(&old);
	sigaction(sig, NULL, &a);
	printf("%d: reset %d\n", sig, a.sa_handler == SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	twice(SIGWINCH, 0);
	twice(SIGCHLD, SA_RESTART);
	twice(SIGURG, SA_ONSTACK);
	return 0;
}
