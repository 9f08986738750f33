#include "k.h"
static volatile int n, v;
static void h(int s, siginfo_t *i, void *u)
{
	n++;
	v = i->si_value.sival_int;
}
static void thr(union sigval s)
{
	sem_post(s.sival_ptr);
}
int main(void)
{
	struct sigaction sa = {.sa_sigaction = h, .sa_flags = SA_SIGINFO};
	sigaction(SIGRTMIN, &sa, 0);
	sigaction(SIGALRM, &sa, 0);
	sigaction(SIGVTALRM, &sa, 0);
	sigset_t m, o;
	sigemptyset(&m);
	sigaddset(&m, SIGRTMIN);
	sigaddset(&m, SIGALRM);
	sigprocmask(SIG_BLOCK, &m, &o);
	timer_t t;
	struct sigevent e = {
	    .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 77};
	R(timer_create(CLOCK_MONOTONIC, &e, &t));
	struct itimerspec it = {.it_value = {0, 1000000}}, cur;
	R(timer_settime(t, 0, &it, &cur));
	SAY("%ld", (long)cur.it_value.tv_nsec);
	while (!n)
		sigsuspend(&o);
	SAY("%d %d overrun %d", n, v, timer_getoverrun(t));
	R(timer_gettime(t, &cur));
	SAY("%ld", cur.it_value.tv_nsec);
	R(timer_delete(t));
	R(timer_delete(t) < 0);
	n = 0;
	struct itimerval iv = {.it_value = {0, 2000}}, ov;
	R(setitimer(ITIMER_REAL, &iv, &ov));
	while (!n)
		sigsuspend(&o);
	R(getitimer(ITIMER_REAL, &iv));
	SAY("%ld", (long)iv.it_value.tv_usec);
	n = 0;
	iv.it_value.tv_usec = 3000;
	setitimer(ITIMER_VIRTUAL, &iv, 0);
	while (!n)
		;
	SAY("virtual");
	sem_t s;
	sem_init(&s, 0, 0);
	e.sigev_notify = SIGEV_THREAD;
	e.sigev_value.sival_ptr = &s;
	e.sigev_notify_function = thr;
	e.sigev_notify_attributes = 0;
	R(timer_create(CLOCK_REALTIME, &e, &t));
	R(timer_settime(t, 0, &it, 0));
	while (sem_wait(&s))
		;
	SAY("thread");
	timer_delete(t);
	R(alarm(100));
	R(alarm(0) >= 99);
	struct timespec ts = {0, -1};
	R(nanosleep(&ts, 0));
	ts.tv_nsec = 10;
	R(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, 0));
	n = 0;
	sigprocmask(SIG_SETMASK, &o, 0);
	iv.it_value.tv_usec = 20000;
	iv.it_value.tv_sec = 0;
	setitimer(ITIMER_REAL, &iv, 0);
	ts.tv_sec = 5;
	struct timespec rem = {0};
	R(nanosleep(&ts, &rem));
	SAY("%d %d", n, rem.tv_sec == 4);
	return 0;
}
