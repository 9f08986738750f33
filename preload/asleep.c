/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a hung thread waits for outside the interposed operations: a raw futex, the lock of a stream, a system call. */
#include "preload/asleep.h"

#include <dlfcn.h>
#include <stdio.h>

#define MOST_STREAMS 256 /* the list may be changed while we walk along it */

static FILE **streams;

void asleep_start(void)
{
	streams = dlvsym(RTLD_DEFAULT, "_IO_list_all", "GLIBC_2.2.5");
}

/* glibc's _IO_lock_t. */
struct stream_lock {
	int32_t lock, count;
	uint64_t owner; /* as pthread_self() */
};

/* The stream whose lock lies there; copied, because it may be closed meanwhile. */
static bool stream_locked_by(uint64_t lock, FILE *out)
{
	uint64_t at = 0;

	if (!streams || raw_peek(&at, (uint64_t)streams, sizeof at) != sizeof at)
		return false;
	for (unsigned i = 0; at && i < MOST_STREAMS; i++) {
		if (raw_peek(out, at, sizeof *out) != sizeof *out)
			return false;
		if ((uint64_t)out->_lock == lock)
			return true;
		at = (uint64_t)out->_chain;
	}
	return false;
}

void asleep_describe_futex(struct raw_text *text, uint64_t word)
{
	static const char *const standard[] = { "stdin", "stdout", "stderr" };
	struct stream_lock lock = { 0 };
	FILE stream;

	if (!stream_locked_by(word, &stream)) {
		text_str(text, " waits for futex ");
		text_hex(text, word);
		return;
	}
	text_str(text, " waits for the lock of ");
	if (stream._fileno >= 0 && stream._fileno < 3) {
		text_str(text, standard[stream._fileno]);
	} else {
		text_str(text, "the stream of descriptor ");
		text_num(text, stream._fileno);
	}
	if (raw_peek(&lock, word, sizeof lock) != sizeof lock || !lock.owner)
		return;
	const struct shim_thread *owner = shim_thread_by_pthread(lock.owner);
	text_str(text, " held by ");
	text_str(text, owner ? owner->id : "a thread that is gone");
}

/* Calls in which threads stand still, and whether their first argument is a descriptor. */
static const struct {
	long nr;
	const char *name;
	bool descriptor;
} calls[] = {
	{ SYS_read, "read", true }, { SYS_write, "write", true }, { SYS_readv, "readv", true },
	{ SYS_writev, "writev", true }, { SYS_recvfrom, "recvfrom", true }, { SYS_recvmsg, "recvmsg", true },
	{ SYS_sendto, "sendto", true }, { SYS_sendmsg, "sendmsg", true }, { SYS_accept, "accept", true },
	{ SYS_accept4, "accept4", true }, { SYS_connect, "connect", true }, { SYS_flock, "flock", true },
	{ SYS_fcntl, "fcntl", true }, { SYS_epoll_wait, "epoll_wait", true },
	{ SYS_epoll_pwait, "epoll_pwait", true }, { SYS_poll, "poll", false }, { SYS_ppoll, "ppoll", false },
	{ SYS_select, "select", false }, { SYS_pselect6, "pselect6", false }, { SYS_wait4, "wait4", false },
	{ SYS_waitid, "waitid", false }, { SYS_pause, "pause", false }, { SYS_nanosleep, "nanosleep", false },
	{ SYS_clock_nanosleep, "clock_nanosleep", false }, { SYS_rt_sigsuspend, "rt_sigsuspend", false },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait", false }, { SYS_msgrcv, "msgrcv", false },
	{ SYS_semop, "semop", false }, { SYS_io_getevents, "io_getevents", false },
};

static void describe_call(struct raw_text *text, long nr, uint64_t first)
{
	text_str(text, " waits in ");
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		if (calls[i].nr != nr)
			continue;
		text_str(text, calls[i].name);
		text_str(text, "()");
		if (calls[i].descriptor) {
			text_str(text, " of descriptor ");
			text_num(text, (int32_t)first);
		}
		return;
	}
	text_str(text, "system call ");
	text_num(text, nr);
}

static uint64_t number(const char **p, unsigned base)
{
	uint64_t v = 0;

	for (;; ++*p) {
		unsigned d = (unsigned)(**p >= 'a' ? **p - 'a' + 10 : **p - '0');

		if (**p < '0' || d >= base)
			return v;
		v = v * base + d;
	}
}

void asleep_describe(struct raw_text *text, const struct shim_thread *t)
{
	char buf[128];
	const char *p = buf;
	TEXT(path, 64);

	text_str(&path, "/proc/self/task/");
	text_num(&path, t->tid);
	text_str(&path, "/syscall");
	/* "202 0x7f... 0x80 ...": the number and the arguments; "running"; or nothing, where the kernel does not say. */
	if (raw_slurp(path.s, buf, sizeof buf) <= 0 || *p < '0' || *p > '9') {
		text_str(text, " runs");
		return;
	}
	long nr = (long)number(&p, 10);
	p += *p == ' ';
	p += p[0] == '0' && p[1] == 'x' ? 2 : 0;
	uint64_t first = number(&p, 16);

	if (nr == SYS_futex)
		asleep_describe_futex(text, first);
	else
		describe_call(text, nr, first);
}
