/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls whose answers other threads' calls may change, timed waits, cancellation, signals. */
#include "analyzer/explore/assumed.h"

#include "common/strbuf.h"
#include "common/syscall_names.h"

#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

/* What such a call returns depends on what others did outside of memory. */
static const uint16_t answers[] = {
	SYS_read, SYS_pread64, SYS_readv, SYS_preadv, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_accept, SYS_accept4, SYS_open,
	SYS_openat, SYS_stat, SYS_fstat, SYS_lstat, SYS_newfstatat, SYS_statx, SYS_access, SYS_faccessat, SYS_faccessat2, SYS_getdents64,
	SYS_lseek, SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_wait, SYS_epoll_pwait, SYS_wait4, SYS_waitid,
	SYS_connect, SYS_unlink, SYS_unlinkat, SYS_mkdir, SYS_rename, SYS_flock,
};

/* What such a call does may be seen by those. */
static const uint16_t changes[] = {
	SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_shutdown, SYS_close, SYS_ftruncate,
	SYS_truncate, SYS_kill, SYS_tkill, SYS_tgkill, SYS_fork, SYS_vfork, SYS_clone, SYS_pipe, SYS_pipe2, SYS_dup2,
};

#define CALLS 512u /* numbers of system calls */

struct finding {
	uint64_t calls[CALLS]; /* that are answered */
	uint32_t talkers;      /* threads with calls of either kind */
	uint64_t timed, cancelled, signals;
};

static bool is_one_of(const uint16_t *v, size_t n, unsigned nr)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == nr)
			return true;
	return false;
}

#define IS_ONE_OF(v, nr) is_one_of(v, sizeof(v) / sizeof *(v), nr)

#define TIMED "timed waits end as in the orders seen: woken or timed out"

bool xpl_assumed_timed(unsigned op)
{
	return op == TRC_OP_TIMEDWAIT || op == TRC_OP_TIMEDLOCK || op == TRC_OP_TIMEDRDLOCK || op == TRC_OP_TIMEDWRLOCK ||
	       op == TRC_OP_SEM_TIMEDWAIT || op == TRC_OP_TIMEDJOIN;
}

/* Output is no answer to anybody. */
static bool is_output(const struct trc_enter *e)
{
	return e && (e->rec.flags == SYS_write || e->rec.flags == SYS_writev) && (e->args[0] == 1 || e->args[0] == 2);
}

static bool look_at(struct finding *f, const struct trc_rec *rec, const struct trc_enter *enter)
{
	unsigned op;

	switch (rec->type) {
	case TRC_LEAVE:
		if (rec->flags < CALLS && IS_ONE_OF(answers, rec->flags))
			f->calls[rec->flags]++;
		return IS_ONE_OF(answers, rec->flags) || (IS_ONE_OF(changes, rec->flags) && !is_output(enter));
	case TRC_SYNC:
		op = TRC_SYNC_OP(rec->flags);
		f->timed += xpl_assumed_timed(op);
		f->cancelled += op == TRC_OP_CANCEL;
		return false;
	case TRC_SIGNAL:
		f->signals++;
		return false;
	default:
		return false;
	}
}

/* The main thread's records count from when it makes the first thread: before that there is one order. */
static void look_at_thread(struct finding *f, const struct trc_thread_info *info)
{
	bool alone = !info->index, talks = false;
	const struct trc_enter *enter = NULL;
	const struct trc_rec *rec;
	struct trc_iter it;

	if (!info->rec_stream)
		return;
	trc_iter_init(&it, info->rec_stream);
	it.keep = true;
	for (;;) {
		err_t e = trc_next(&it, &rec);

		if (e || !rec) {
			err_free(e);
			break;
		}
		alone &= !(rec->type == TRC_SYNC && TRC_SYNC_OP(rec->flags) == TRC_OP_CREATE);
		if (rec->type == TRC_ENTER)
			enter = (const struct trc_enter *)rec;
		else if (!alone)
			talks |= look_at(f, rec, enter);
	}
	f->talkers += talks;
}

static void tell_calls(const struct finding *f, xpl_assumed *out)
{
	struct strbuf b = { 0 };

	for (unsigned nr = 0; nr < CALLS && f->talkers > 1; nr++)
		if (f->calls[nr])
			strbuf_fmt(&b, "%s%s (%" PRIu64 ")", b.s && *b.s ? ", " : "", syscall_name(nr), f->calls[nr]);
	if (b.s && *b.s)
		vec_push(out, xasprintf("system calls are answered as they were in the recorded run, though in another order "
					"they may not be: %s", b.s));
	strbuf_free(&b);
}

void xpl_assumed_add_timed(xpl_assumed *out)
{
	vec_push(out, xstrdup(TIMED));
}

bool xpl_assumed_has_timed(const xpl_assumed *v)
{
	for (size_t i = 0; i < v->n; i++)
		if (!strcmp(v->v[i], TIMED))
			return true;
	return false;
}

void xpl_assumed_find(const struct trc *t, xpl_assumed *out)
{
	struct finding f = { .talkers = 0 };

	for (size_t i = 0; i < t->threads.n; i++)
		look_at_thread(&f, &t->threads.v[i]);
	tell_calls(&f, out);
	if (f.timed)
		xpl_assumed_add_timed(out);
	if (f.cancelled)
		vec_push(out, xstrdup("a cancelled thread is cancelled where it was"));
	if (f.signals)
		vec_push(out, xstrdup("signals arrive where they did"));
}

void xpl_assumed_free(xpl_assumed *v)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->v[i]);
	vec_free(v);
}
