#include "k.h"
int main(void)
{
	int s[2], q[2];
	socketpair(AF_UNIX, SOCK_DGRAM, 0, s);
	pipe(q);
	int on = 1;
	setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
	char buf[64] = "hello", b2[64] = "world!", cb[256] = {0};
	struct iovec v[2] = {{buf, 5}, {b2, 6}};
	struct msghdr m = {.msg_iov = v,
			   .msg_iovlen = 2,
			   .msg_control = cb,
			   .msg_controllen = CMSG_SPACE(2 * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(8);
	memcpy(CMSG_DATA(c), q, 8);
	R(sendmsg(s[0], &m, 0));
	char r1[4], r2[3], rc[256];
	memset(rc, 0xee, sizeof rc);
	struct iovec w[2] = {{r1, 4}, {r2, 3}};
	struct sockaddr_un from;
	struct msghdr g = {.msg_name = &from,
			   .msg_namelen = sizeof from,
			   .msg_iov = w,
			   .msg_iovlen = 2,
			   .msg_control = rc,
			   .msg_controllen = sizeof rc};
	R(recvmsg(s[1], &g, MSG_TRUNC));
	SAY("%.4s|%.3s flags %x namelen %u", r1, r2, g.msg_flags, g.msg_namelen);
	for (c = CMSG_FIRSTHDR(&g); c; c = CMSG_NXTHDR(&g, c)) {
		SAY("cmsg %d %d %zu", c->cmsg_level, c->cmsg_type, (size_t)c->cmsg_len);
		if (c->cmsg_type == SCM_RIGHTS) {
			int f[2];
			memcpy(f, CMSG_DATA(c), 8);
			SAY("fds %d %d", f[0], f[1]);
			write(f[1], "via", 3);
			char x[4] = "";
			read(q[0], x, 3);
			SAY("%s", x);
		}
	}
	SAY("%u", sum(rc + g.msg_controllen, sizeof rc - g.msg_controllen));
	struct mmsghdr mm[3];
	memset(mm, 0, sizeof mm);
	struct iovec iv[3] = {{"one", 3}, {"twotwo", 6}, {"3", 1}};
	for (int i = 0; i < 3; i++) {
		mm[i].msg_hdr.msg_iov = &iv[i];
		mm[i].msg_hdr.msg_iovlen = 1;
	}
	R(sendmmsg(s[0], mm, 3, 0));
	SAY("%u %u %u", mm[0].msg_len, mm[1].msg_len, mm[2].msg_len);
	char rb[4][8];
	memset(rb, '.', sizeof rb);
	struct mmsghdr rm[4];
	memset(rm, 0, sizeof rm);
	struct iovec rv[4];
	for (int i = 0; i < 4; i++) {
		rv[i].iov_base = rb[i];
		rv[i].iov_len = 4;
		rm[i].msg_hdr.msg_iov = &rv[i];
		rm[i].msg_hdr.msg_iovlen = 1;
	}
	struct timespec to = {0, 100};
	R(recvmmsg(s[1], rm, 4, MSG_DONTWAIT, &to));
	for (int i = 0; i < 4; i++)
		SAY("%u %x %.8s", rm[i].msg_len, rm[i].msg_hdr.msg_flags, rb[i]);
	char peek[10];
	send(s[0], "peekme", 6, 0);
	R(recv(s[1], peek, 10, MSG_PEEK));
	R(recv(s[1], peek, 3, 0));
	R(recv(s[1], peek, 3, MSG_DONTWAIT));
	int l = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	strcpy(a.sun_path + 1, "csched-kernel-test-xyz");
	socklen_t al = offsetof(struct sockaddr_un, sun_path) + 1 + 22;
	R(bind(l, (void *)&a, al));
	listen(l, 1);
	int k = socket(AF_UNIX, SOCK_STREAM, 0);
	R(connect(k, (void *)&a, al));
	struct sockaddr_un pa;
	socklen_t pl = 5;
	memset(&pa, 7, sizeof pa);
	int ac = accept(l, (void *)&pa, &pl);
	SAY("%u %d", pl, ac > 0);
	pl = 10;
	getpeername(k, (void *)&pa, &pl);
	SAY("%u %u", pl, sum(&pa, 12));
	struct ucred uc;
	socklen_t ul = sizeof uc;
	R(getsockopt(k, SOL_SOCKET, SO_PEERCRED, &uc, &ul));
	SAY("%d", uc.pid == getpid());
	int er;
	ul = 2;
	er = 0x55555555;
	R(getsockopt(k, SOL_SOCKET, SO_TYPE, &er, &ul));
	SAY("%x %u", er, ul);
	R(shutdown(k, SHUT_WR));
	R(read(ac, buf, 4));
	signal(SIGPIPE, SIG_IGN);
	R(write(k, "x", 1));
	R(send(k, "x", 1, MSG_NOSIGNAL));
	return 0;
}
