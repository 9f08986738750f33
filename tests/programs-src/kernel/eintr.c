#include "k.h"
#include <poll.h>
static volatile int n, done;
static void h(int s)
{
	n++;
}
static int q[2];
static pthread_t mainth;
static void *poke(void *a)
{
	while (!done) {
		usleep(500);
		pthread_kill(mainth, SIGUSR1);
	}
	return 0;
}
#define INT(call)                                                                                  \
	({                                                                                         \
		pthread_t t;                                                                       \
		done = 0;                                                                          \
		pthread_create(&t, 0, poke, (void *)1);                                            \
		errno = 0;                                                                         \
		long r = (call);                                                                   \
		int e = errno;                                                                     \
		done = 1;                                                                          \
		errno = e;                                                                         \
		SAY(#call " %ld %s", r, ername(r < 0 ? errno : 0));                                \
		pthread_join(t, 0);                                                                \
	})
static void *later(void *a)
{
	usleep(3000);
	int b = n;
	while (n == b) {
		pthread_kill(mainth, SIGUSR1);
		usleep(500);
	}
	write(q[1], "abcd", 4);
	return 0;
}
int main(void)
{
	mainth = pthread_self();
	struct sigaction sa = {.sa_handler = h};
	sigaction(SIGUSR1, &sa, 0);
	pipe(q);
	char b[8];
	struct pollfd pf = {q[0], POLLIN};
	struct timespec ts = {10, 0};
	INT(read(q[0], b, 4));
	INT(poll(&pf, 1, 10000));
	INT(nanosleep(&ts, 0));
	INT(pause());
	sigset_t e;
	sigemptyset(&e);
	INT(sigsuspend(&e));
	sem_t s;
	sem_init(&s, 0, 0);
	INT(sem_wait(&s));
	INT(select(0, 0, 0, 0, &(struct timeval){9, 0}));
	INT(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, 0));
	sa.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &sa, 0);
	pthread_t t;
	pthread_create(&t, 0, later, 0);
	R(read(q[0], b, 8));
	pthread_join(t, 0);
	SAY("%.4s", b);
	INT(poll(&pf, 1, 10000));
	INT(nanosleep(&ts, 0));
	INT(pause());
	int sv[2];
	socketpair(AF_UNIX, SOCK_STREAM, 0, sv);
	struct timeval tv = {0, 200000};
	setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	INT(recv(sv[0], b, 1, 0));
	pid_t p = fork();
	if (!p) {
		usleep(30000);
		_exit(4);
	}
	int st;
	INT(waitpid(p, &st, 0) > 0);
	SAY("%x", st);
	siginfo_t si;
	sigset_t w;
	sigemptyset(&w);
	sigaddset(&w, SIGUSR2);
	sigprocmask(SIG_BLOCK, &w, 0);
	INT(sigwaitinfo(&w, &si));
	siginterrupt(SIGUSR1, 1);
	INT(read(q[0], b, 4));
	return 0;
}
