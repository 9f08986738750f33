/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files, names, pipes, sockets and other descriptors. */
#include "random.h"

#include <dirent.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>

#define FDS 10
#define NAMES 6
static int fds[FDS] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

static const char *name(void)
{
	static const char *const names[NAMES] = {"a", "b", "c", "d", "e/x", "e"};

	return names[rnd(NAMES)];
}

static int *any_slot(void)
{
	return &fds[rnd(FDS)];
}

static int any_fd(void)
{
	return fds[rnd(FDS)];
}

static void keep(int fd)
{
	int *slot = any_slot();

	if (*slot >= 0)
		close(*slot);
	*slot = fd;
}

/* Several pieces of the buffer, some empty, for vectored calls. */
static int pieces(struct iovec *v)
{
	int n = 1 + (int)rnd(4);
	unsigned at = 0;

	for (int i = 0; i < n; i++) {
		unsigned len = chance(20) ? 0 : rnd(chance(70) ? 40 : 1500);

		v[i] = (struct iovec){buffer + at, len};
		at += len + rnd(30);
	}
	return n;
}

static void seen(const char *what, long n)
{
	if (n > 0)
		say("%s %u", what, checksum(buffer, sizeof buffer));
}

static void one_stat(int fd)
{
	struct stat st;

	if (!DO(fstat(fd, &st)) && S_ISREG(st.st_mode))
		say("stat %o %ld %ld", st.st_mode, (long)st.st_nlink, (long)st.st_size);
}

static bool is_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

static void op_file_at(int fd)
{
	struct iovec v[4];
	off_t at = rnd(5000), to = rnd(5000);
	int n = pieces(v), out = any_fd();

	switch (rnd(13)) {
	case 0:
		seen("pread", DO(pread(fd, buffer + rnd(100), rnd(3000), at)));
		break;
	case 1:
		DO(pwrite(fd, buffer, rnd(3000), at));
		break;
	case 2:
		seen("preadv", DO(preadv(fd, v, n, at)));
		break;
	case 3:
		DO(pwritev(fd, v, n, at));
		break;
	case 4:
		seen("readv", is_file(fd) ? DO(readv(fd, v, n)) : 0);
		break;
	case 5:
		is_file(fd) ? DO(writev(fd, v, n)) : 0;
		break;
	case 6:
		DO(lseek(fd, at, (int)rnd(5)));
		break;
	case 7:
		is_file(fd) ? DO(ftruncate(fd, rnd(9000))) : 0;
		break;
	case 8:
		is_file(fd) ? DO(fallocate(fd, (int)rnd(4), at, 1 + rnd(5000))) : 0;
		break;
	case 9:
		if (is_file(fd) && is_file(out))
			DO(copy_file_range(fd, chance(50) ? &at : NULL, out,
					   chance(50) ? &to : NULL, rnd(3000), 0));
		say("%ld %ld", (long)at, (long)to);
		break;
	case 10:
		if (is_file(fd) && is_file(out))
			DO(sendfile(out, fd, chance(50) ? &at : NULL, rnd(3000)));
		say("%ld", (long)at);
		break;
	case 11:
		DO(fcntl(fd, F_GETFL));
		break;
	case 12:
		seen("preadv2", DO(preadv2(fd, v, n, is_file(fd) && chance(30) ? -1 : at, 0)));
		break;
	}
}

void op_file(void)
{
	static const int flags[] = {O_RDWR | O_CREAT,
				    O_RDWR,
				    O_RDONLY,
				    O_WRONLY | O_APPEND | O_CREAT,
				    O_RDWR | O_CREAT | O_TRUNC,
				    O_RDWR | O_CREAT | O_EXCL,
				    O_RDONLY | O_DIRECTORY,
				    O_RDWR | O_TMPFILE};
	int fd = any_fd(), new;
	struct flock lock = {
	    .l_type = (short)rnd(3), .l_whence = SEEK_SET, .l_start = rnd(100), .l_len = rnd(100)};

	if (chance(55)) {
		op_file_at(fd);
		return;
	}
	switch (rnd(12)) {
	case 0:
	case 1:
	case 2: {
		int f = flags[rnd(8)];

		new = (int)DO(open(f & O_TMPFILE & ~O_DIRECTORY ? "." : name(), f, 0640));
		if (new >= 0)
			keep(new);
		break;
	}
	case 3: {
		int *slot = any_slot();

		DO(close(*slot));
		*slot = -1;
		break;
	}
	case 4:
		new = (int)DO(chance(50) ? dup(fd) : fcntl(fd, F_DUPFD_CLOEXEC, 3 + rnd(40)));
		if (new >= 0)
			keep(new);
		break;
	case 5:
		new = 60 + (int)rnd(5);
		for (int i = 0; i < FDS; i++)
			if (fds[i] == new)
				fds[i] = -1;
		if (DO(chance(50) ? dup2(fd, new) : dup3(fd, new, chance(50) ? O_CLOEXEC : 0)) >= 0)
			keep(new);
		break;
	case 6:
		seen("read", is_file(fd) ? DO(read(fd, buffer, rnd(5000))) : 0);
		break;
	case 7:
		fill_random(buffer, 1000);
		is_file(fd) ? DO(write(fd, buffer, rnd(3000))) : 0;
		break;
	case 8:
		one_stat(fd);
		break;
	case 9:
		DO(fcntl(fd, chance(50) ? F_SETLK : F_GETLK, &lock));
		say("lock %d %ld", lock.l_type, (long)lock.l_start);
		break;
	case 10:
		DO(flock(fd, (chance(50) ? LOCK_EX : LOCK_UN) | LOCK_NB));
		break;
	case 11:
		DO(chance(50) ? fsync(fd) : posix_fadvise(fd, 0, 0, (int)rnd(6)));
		break;
	}
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

void op_name(void)
{
	const char *a = name(), *b = name();
	struct stat st;
	struct statx sx;
	struct dirent **list;
	int n;

	switch (rnd(15)) {
	case 0:
		DO(mkdir("e", 0755));
		break;
	case 1:
		DO(rmdir("e"));
		break;
	case 2:
		DO(unlink(a));
		break;
	case 3:
		DO(rename(a, b));
		break;
	case 4:
		DO(link(a, b));
		break;
	case 5:
		DO(symlink(a, b));
		break;
	case 6:
		seen("readlink", DO(readlink(a, (char *)buffer, 1 + rnd(10))));
		break;
	case 7:
		if (!DO(stat(a, &st)))
			say("%o %ld", st.st_mode, S_ISREG(st.st_mode) ? (long)st.st_size : 0);
		break;
	case 8:
		if (!DO(statx(AT_FDCWD, a, AT_SYMLINK_NOFOLLOW, STATX_SIZE | STATX_MODE, &sx)))
			say("%o", sx.stx_mode);
		break;
	case 9:
		DO(access(a, (int)rnd(8)));
		break;
	case 10:
		DO(chmod(a, 0600 | rnd(0100)));
		break;
	case 11:
		DO(truncate(a, rnd(9000)));
		break;
	case 12:
		n = scandir(chance(70) ? "." : "e", &list, NULL, by_name);
		say("entries %d", n);
		for (int i = 0; i < n; free(list[i++]))
			say("%s", list[i]->d_name);
		if (n >= 0)
			free(list);
		break;
	case 13:
		DO(renameat2(AT_FDCWD, a, AT_FDCWD, b, rnd(3)));
		break;
	case 14:
		DO(utimensat(AT_FDCWD, a, (struct timespec[2]){{rnd(1000), 5}, {rnd(1000), 6}}, 0));
		break;
	}
}

void op_pipe(void)
{
	static int p[2] = {-1, -1}, q[2];
	struct iovec v[4];
	int left, n = pieces(v);

	if (p[0] < 0 && (pipe2(p, O_NONBLOCK) || pipe2(q, O_NONBLOCK)))
		_exit(3);
	fill_random(buffer, 200);
	switch (rnd(9)) {
	case 0:
		DO(write(p[1], buffer, rnd(6000)));
		break;
	case 1:
		seen("read", DO(read(p[0], buffer, rnd(3000))));
		break;
	case 2:
		seen("readv", DO(readv(p[0], v, n)));
		break;
	case 3:
		DO(writev(p[1], v, n));
		break;
	case 4:
		DO(ioctl(p[0], FIONREAD, &left));
		say("left %d", left);
		break;
	case 5:
		DO(tee(p[0], q[1], 1 + rnd(2000), SPLICE_F_NONBLOCK));
		break;
	case 6:
		DO(splice(p[0], NULL, q[1], NULL, 1 + rnd(2000), SPLICE_F_NONBLOCK));
		break;
	case 7:
		seen("read", DO(read(q[0], buffer, 1 + rnd(3000))));
		break;
	case 8: {
		int fd = any_fd();
		loff_t at = rnd(3000);

		if (is_file(fd))
			DO(chance(50)
			       ? splice(fd, &at, p[1], NULL, 1 + rnd(1000), SPLICE_F_NONBLOCK)
			       : splice(p[0], NULL, fd, &at, 1 + rnd(1000), SPLICE_F_NONBLOCK));
		say("at %ld", (long)at);
		break;
	}
	}
}

static int sockets[2][2] = {{-1, -1}, {-1, -1}};

static void send_message(int fd)
{
	char control[64] __attribute__((aligned(8)));
	struct iovec v[4];
	struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)pieces(v)};
	int passed = fds[0];

	if (chance(40) && passed >= 0) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		memset(control, 0, sizeof control);
		c->cmsg_len = CMSG_LEN(sizeof passed);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(c), &passed, sizeof passed);
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(sizeof passed);
	}
	DO(sendmsg(fd, &m, MSG_NOSIGNAL));
}

static void receive_message(int fd)
{
	char control[64] __attribute__((aligned(8)));
	struct iovec v[4];
	struct msghdr m = {.msg_iov = v,
			   .msg_iovlen = (size_t)pieces(v),
			   .msg_control = control,
			   .msg_controllen = chance(80) ? sizeof control : 0};
	int got;

	seen("recvmsg", DO(recvmsg(fd, &m, chance(30) ? MSG_PEEK : chance(50) ? MSG_TRUNC : 0)));
	say("flags %x control %zu", m.msg_flags, (size_t)m.msg_controllen);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); errno != EAGAIN && c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_type == SCM_RIGHTS) {
			memcpy(&got, CMSG_DATA(c), sizeof got);
			say("passed %d", got);
			close(got);
		}
}

static void several(int to, int from)
{
	struct mmsghdr m[3];
	struct iovec v[3];

	memset(m, 0, sizeof m);
	for (int i = 0; i < 3; i++) {
		v[i] = (struct iovec){buffer + 100 * i, rnd(90)};
		m[i].msg_hdr.msg_iov = &v[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	DO(chance(50) ? sendmmsg(to, m, 3, MSG_NOSIGNAL)
		      : recvmmsg(from, m, 3, MSG_DONTWAIT, NULL));
	say("%u %u %u %u", m[0].msg_len, m[1].msg_len, m[2].msg_len, checksum(buffer, 300));
}

void op_socket(void)
{
	unsigned kind = rnd(2);
	int *s = sockets[kind], value = 0;
	socklen_t len = 1 + rnd(8);
	struct sockaddr_un address;

	if (s[0] >= 0 && chance(2)) {
		close(s[0]);
		close(s[1]);
		s[0] = -1;
	}
	if (s[0] < 0 &&
	    DO(socketpair(AF_UNIX, (kind ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK, 0, s)))
		return;
	fill_random(buffer, 100);
	unsigned end = rnd(2);

	switch (rnd(9)) {
	case 0:
		DO(send(s[end], buffer, rnd(500), MSG_NOSIGNAL));
		break;
	case 1:
		seen("recv", DO(recv(s[end], buffer, rnd(600), chance(30) ? MSG_PEEK : 0)));
		break;
	case 2:
		send_message(s[end]);
		break;
	case 3:
		receive_message(s[end]);
		break;
	case 4:
		several(s[end], s[!end]);
		break;
	case 5:
		DO(getsockopt(s[end], SOL_SOCKET, chance(50) ? SO_TYPE : SO_DOMAIN, &value, &len));
		say("%x %u", value, len);
		break;
	case 6:
		len = rnd(20);
		memset(&address, 0, sizeof address);
		DO(chance(50) ? getsockname(s[end], (void *)&address, &len)
			      : getpeername(s[end], (void *)&address, &len));
		say("%u %u", len, checksum(&address, 20));
		break;
	case 7:
		if (chance(10))
			DO(shutdown(s[end], (int)rnd(4)));
		break;
	case 8:
		len = sizeof address;
		seen("recvfrom",
		     DO(recvfrom(s[end], buffer, rnd(200), MSG_TRUNC, (void *)&address, &len)));
		say("%u", len);
		break;
	}
}

void op_event(void)
{
	static int event = -1, poller = -1, timer = -1;
	struct epoll_event e = {EPOLLIN, {.u64 = rnd(1000)}}, out[4];
	struct pollfd p[3] = {
	    {event, POLLIN | POLLOUT, 0}, {any_fd(), POLLIN, 0}, {timer, POLLIN, 0}};
	struct itimerspec t = {{0, 0}, {5000 + rnd(10), 0}}, old = {{0, 0}, {0, 0}};
	uint64_t n = rnd(5);
	fd_set r;
	struct timeval zero = {0, 0};

	if (event < 0) {
		event = eventfd(3, EFD_NONBLOCK | EFD_SEMAPHORE);
		poller = epoll_create1(EPOLL_CLOEXEC);
		timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	}
	switch (rnd(9)) {
	case 0:
		DO(write(event, &n, 8));
		break;
	case 1:
		DO(read(event, &n, 8));
		say("%lu", (unsigned long)n);
		break;
	case 2:
		DO(epoll_ctl(poller, 1 + (int)rnd(3), chance(50) ? event : timer, &e));
		break;
	case 3: {
		long k = DO(epoll_wait(poller, out, 4, 0));

		for (long i = 0; i < k; i++)
			say("%lu %x", (unsigned long)out[i].data.u64, out[i].events);
		break;
	}
	case 4:
		DO(poll(p, 3, 0));
		say("%x %x %x", p[0].revents, p[1].revents, p[2].revents);
		break;
	case 5:
		FD_ZERO(&r);
		FD_SET(event, &r);
		FD_SET(timer, &r);
		DO(select(timer + 1, &r, NULL, NULL, &zero));
		say("%d %d", !!FD_ISSET(event, &r), !!FD_ISSET(timer, &r));
		break;
	case 6:
		DO(timerfd_settime(timer, 0, &t, &old));
		say("%d", old.it_value.tv_sec > 4000);
		break;
	case 7:
		DO(timerfd_gettime(timer, &old));
		break;
	case 8:
		DO(ppoll(p, 1 + rnd(3), &(struct timespec){0, 0}, NULL));
		break;
	}
}

void files_end(void)
{
	for (int i = 0; i < FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	unlink("e/x");
	for (const char *n = "abcdmpse"; *n; n++)
		if (unlink((char[2]){*n, 0}))
			rmdir((char[2]){*n, 0});
}
