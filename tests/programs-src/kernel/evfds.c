#include "k.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
int main(void)
{
	sigset_t m;
	sigemptyset(&m);
	sigaddset(&m, SIGUSR1);
	sigaddset(&m, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &m, 0);
	int s = signalfd(-1, &m, SFD_NONBLOCK);
	struct signalfd_siginfo si[3];
	R(read(s, si, sizeof si));
	sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 9});
	kill(getpid(), SIGUSR1);
	long n = read(s, si, sizeof si);
	SAY("%ld", n);
	for (int i = 0; i < n / 128; i++)
		SAY("%u %d %d", si[i].ssi_signo, si[i].ssi_code, si[i].ssi_int);
	int e = eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK);
	uint64_t u;
	for (int i = 0; i < 4; i++)
		R(read(e, &u, 8));
	u = 5;
	R(write(e, &u, 8));
	R(read(e, &u, 4));
	int t = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	struct itimerspec it = {.it_value = {1000, 0}, .it_interval = {7, 8}}, old;
	R(timerfd_settime(t, 0, &it, 0));
	it.it_value.tv_sec = 0;
	it.it_value.tv_nsec = 1;
	R(timerfd_settime(t, 0, &it, &old));
	SAY("%ld %ld %d", (long)old.it_interval.tv_sec, old.it_interval.tv_nsec,
	    old.it_value.tv_sec >= 998);
	int ep = epoll_create1(0);
	struct epoll_event ev = {EPOLLIN, {.u64 = 111}};
	R(epoll_ctl(ep, EPOLL_CTL_ADD, e, &ev));
	ev.data.u64 = 222;
	R(epoll_ctl(ep, EPOLL_CTL_ADD, t, &ev));
	R(epoll_ctl(ep, EPOLL_CTL_ADD, t, &ev));
	struct epoll_event out[4];
	int k;
	do
		k = epoll_wait(ep, out, 4, 1000);
	while (k < 2 && k >= 0);
	SAY("%d", k);
	for (int i = 0; i < k; i++)
		SAY("%lu %x", (unsigned long)out[i].data.u64, out[i].events);
	R(read(t, &u, 8));
	R(read(t, &u, 8));
	mkdir("evdir", 0700);
	int in = inotify_init1(IN_NONBLOCK);
	R(inotify_add_watch(in, "evdir", IN_CREATE | IN_DELETE | IN_MODIFY | IN_MOVED_FROM));
	close(open("evdir/a", O_CREAT | O_WRONLY, 0600));
	int f = open("evdir/a", O_WRONLY);
	write(f, "x", 1);
	close(f);
	rename("evdir/a", "evdir/b");
	unlink("evdir/b");
	rmdir("evdir");
	char b[512] __attribute__((aligned(8)));
	n = read(in, b, sizeof b);
	SAY("%ld", n);
	for (char *p = b; p < b + n;) {
		struct inotify_event *x = (void *)p;
		SAY("%x %u %s", x->mask, x->len, x->len ? x->name : "-");
		p += sizeof *x + x->len;
	}
	struct pollfd pf[3] = {{e, POLLIN, 0}, {s, POLLIN, 0}, {999, POLLIN, 0}};
	R(poll(pf, 3, 0));
	SAY("%x %x %x", pf[0].revents, pf[1].revents, pf[2].revents);
	struct timespec z = {0};
	R(ppoll(pf, 2, &z, 0));
	fd_set r, w;
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_SET(e, &r);
	FD_SET(s, &r);
	FD_SET(1, &w);
	struct timeval tv = {0, 5};
	R(select(20, &r, &w, 0, &tv));
	SAY("%d %d %d", FD_ISSET(e, &r), FD_ISSET(s, &r), FD_ISSET(1, &w));
	R(select(40, &r, 0, 0, &tv));
	R(select(-1, &r, 0, 0, &tv));
	return 0;
}
