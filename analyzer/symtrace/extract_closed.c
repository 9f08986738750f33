/*
 * Use of a descriptor that another thread had closed. System calls give their recorded
 * results in every order, so no order is found that avoids such a failure; who
 * closed the descriptor is known all the same.
 *
 * Told of the failing thread only, and only when it was the last of its calls that went wrong.
 */
#include "analyzer/symtrace/extract_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#define MOST_DESCRIPTORS 65536

static void set(struct ext *x, int64_t fd, struct ext_closed c)
{
	if (fd < 0 || fd >= MOST_DESCRIPTORS)
		return;
	while (x->closed.n <= (size_t)fd)
		vec_push(&x->closed, (struct ext_closed){ 0 });
	c.user = x->closed.v[fd].user;
	x->closed.v[fd] = c;
}

static void opened_pair(struct ext *x, uint64_t at)
{
	int32_t pair[2];

	if (!mach_read(x->run, at, pair, sizeof pair))
		return;
	set(x, pair[0], (struct ext_closed){ 0 });
	set(x, pair[1], (struct ext_closed){ 0 });
}

static bool opens(unsigned nr)
{
	static const uint16_t calls[] = { SYS_open, SYS_openat, SYS_creat, SYS_dup, SYS_dup2, SYS_dup3, SYS_socket,
					  SYS_accept, SYS_accept4, SYS_eventfd, SYS_eventfd2, SYS_epoll_create,
					  SYS_epoll_create1, SYS_timerfd_create, SYS_signalfd, SYS_signalfd4,
					  SYS_inotify_init, SYS_inotify_init1, SYS_memfd_create, SYS_fcntl };

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i] == nr)
			return true;
	return false;
}

static bool uses(unsigned nr)
{
	static const uint16_t calls[] = { SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev,
					  SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_close };

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i] == nr)
			return true;
	return false;
}

/* By what lies behind a descriptor threads can do things to each other that no order here shows.
 * The number counts, also when something else has been opened by it: the user may not know. */
static void note_user(struct ext *x, uint32_t thread, unsigned nr, int64_t fd)
{
	if (fd <= 2 || !uses(nr))
		return; /* where everybody prints */
	if ((size_t)fd >= x->closed.n)
		set(x, fd, (struct ext_closed){ 0 });
	if ((size_t)fd >= x->closed.n)
		return;
	if (!x->closed.v[fd].user)
		x->closed.v[fd].user = thread + 1;
	else if (x->closed.v[fd].user != thread + 1)
		x->common_fd = (int)fd;
}

/* What the kernel did with the process's descriptors. */
static void follow(struct ext *x, uint32_t thread, const struct trc_enter *enter, int64_t result)
{
	unsigned nr = enter->rec.flags;

	if (nr == SYS_close && !result)
		set(x, (int32_t)enter->args[0],
		    (struct ext_closed){ true, thread, ext_stack(x, thread, enter->pc), 0 });
	else if ((nr == SYS_pipe || nr == SYS_pipe2) && !result)
		opened_pair(x, enter->args[0]);
	else if (nr == SYS_socketpair && !result)
		opened_pair(x, enter->args[3]);
	else if (opens(nr) && result >= 0)
		set(x, result, (struct ext_closed){ 0 });
}

void ext_closed_watch(struct ext *x, uint32_t thread, const struct trc_enter *enter,
		      const struct trc_leave *leave)
{
	int64_t result = leave->result, fd = (int32_t)enter->args[0];

	if (x->onward)
		return;
	follow(x, thread, enter, result);
	note_user(x, thread, enter->rec.flags, fd);
	/* That a descriptor is no terminal is asked by everyone who prints. */
	if (thread != x->failing || result >= 0 || result < -4095 || result == -ENOTTY)
		return;
	x->misused_fd.kind = EXT_MISUSE_NONE;
	if (result != -EBADF || fd < 0 || (size_t)fd >= x->closed.n || !x->closed.v[fd].closed ||
	    x->closed.v[fd].thread == thread)
		return;
	x->misused_fd = (struct ext_misuse){
		.kind = EXT_MISUSE_CLOSED, .thread = thread, .stack = ext_stack(x, thread, enter->pc),
		.freed_by = x->closed.v[fd].thread, .freed_stack = x->closed.v[fd].stack,
		.descriptor = (uint32_t)fd, .call = enter->rec.flags,
	};
}
