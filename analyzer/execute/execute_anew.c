/*
 * System calls of another order that the record does not hold: those whose results
 * everybody knows are done anew. What the program prints is taken by a pipe that is
 * never full, as good a reader as any; an order that prints must not end there.
 */
#include "analyzer/execute/execute.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define MOST_PIECES 1024u

uint64_t exec_fresh_place(struct mach_run *r, uint64_t size)
{
	uint64_t at = r->fresh;

	if (size > 1ull << 32 || r->fresh + size > MEM_TOP)
		return 0;
	r->fresh += size + MEM_PAGE;
	return at;
}

/* ---- memory ---- */

static bool map(struct mach_run *r, uint64_t size)
{
	uint64_t at = run_arg(r, 0);

	if (!(run_arg(r, 3) & MAP_ANONYMOUS))
		return false;
	if (!(run_arg(r, 3) & MAP_FIXED))
		at = exec_fresh_place(r, size);
	if (!at)
		return false;
	mem_map(r->m->mem, at, at + size, (unsigned)run_arg(r, 2), false);
	exec_returns(r, (int64_t)at);
	return true;
}

static bool memory_call(struct mach_run *r, uint64_t nr)
{
	struct mem *mem = r->m->mem;
	uint64_t size = (run_arg(r, 1) + MEM_PAGE - 1) & ~(uint64_t)(MEM_PAGE - 1);

	switch (nr) {
	case SYS_mmap:
		return map(r, size);
	case SYS_munmap:
		mem_unmap(mem, run_arg(r, 0), run_arg(r, 0) + size);
		break;
	case SYS_mprotect:
		mem_protect(mem, run_arg(r, 0), run_arg(r, 0) + size, (unsigned)run_arg(r, 2));
		break;
	case SYS_madvise:
		if (run_arg(r, 2) == MADV_DONTNEED)
			mem_discard(mem, run_arg(r, 0), run_arg(r, 0) + size);
		break;
	default:
		return false;
	}
	exec_returns(r, 0);
	return true;
}

/* ---- output ---- */

/* The descriptors that programs print to. */
static bool is_output(uint64_t fd)
{
	return (uint32_t)fd == 1 || (uint32_t)fd == 2;
}

static bool tell_of_pipe(struct mach_run *r, uint64_t at)
{
	struct stat st = { .st_mode = S_IFIFO | 0600, .st_nlink = 1, .st_blksize = 4096 };

	if (!mem_writable(r->m->mem, at, sizeof st))
		return false;
	mem_poke(r->m->mem, at, &st, sizeof st);
	exec_returns(r, 0);
	return true;
}

static bool take_pieces(struct mach_run *r)
{
	uint64_t n = run_arg(r, 2);
	int64_t all = 0;

	if (n > MOST_PIECES)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		struct iovec v;

		if (!mem_peek(r->m->mem, run_arg(r, 1) + i * sizeof v, &v, sizeof v))
			return false;
		all += (int64_t)v.iov_len;
	}
	exec_returns(r, all);
	return true;
}

static bool output_call(struct mach_run *r, uint64_t nr)
{
	uint64_t fd = run_arg(r, 0);
	char path[1];

	switch (nr) {
	case SYS_write:
	case SYS_sendto:
		exec_returns(r, (int64_t)run_arg(r, 2));
		return true;
	case SYS_writev:
		return take_pieces(r);
	case SYS_fstat:
		return is_output(fd) && tell_of_pipe(r, run_arg(r, 1));
	case SYS_newfstatat:
		return is_output(fd) && run_arg(r, 3) & AT_EMPTY_PATH &&
		       mem_peek(r->m->mem, run_arg(r, 1), path, 1) && !path[0] &&
		       tell_of_pipe(r, run_arg(r, 2));
	case SYS_ioctl:
		if (!is_output(fd) || run_arg(r, 1) != TCGETS)
			return false;
		exec_returns(r, -ENOTTY);
		return true;
	case SYS_lseek:
		if (!is_output(fd))
			return false;
		exec_returns(r, -ESPIPE);
		return true;
	default:
		return false;
	}
}

/* ---- the thread itself ---- */

/* Nobody gets a signal here, so none is ever set; a sanitizer's run-time sets one for each thread. */
static bool alternate_stack(struct mach_run *r)
{
	uint64_t old = run_arg(r, 1);
	stack_t none = { .ss_flags = SS_DISABLE };

	if (old && !mem_writable(r->m->mem, old, sizeof none))
		return false;
	if (old)
		mem_poke(r->m->mem, old, &none, sizeof none);
	exec_returns(r, 0);
	return true;
}

static bool thread_call(struct mach_run *r, const struct run_thread *t, uint64_t nr)
{
	const struct trc_thread_info *info = trc_thread_at(r->t, t->index);

	switch (nr) {
	case SYS_gettid:
		exec_returns(r, info && info->rec ? (int64_t)info->rec->tid : 1);
		return true;
	case SYS_getpid:
		exec_returns(r, (int64_t)trc_identity_uint(r->t, "pid", 1));
		return true;
	case SYS_sched_yield:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_rt_sigprocmask:
	case SYS_set_robust_list:
		exec_returns(r, 0);
		return true;
	case SYS_sigaltstack:
		return alternate_stack(r);
	case SYS_rseq:
		exec_returns(r, -ENOSYS);
		return true;
	default:
		return false;
	}
}

/* ---- time ---- */

#define SECOND 1000000000 /* nanoseconds; an instruction takes one */

/* What this thread was told last by this clock, when recorded. */
static bool last_told(const struct mach_run *r, const struct run_thread *t, uint64_t nr, unsigned at, int64_t told[2])
{
	size_t n = t->s.rec < t->recs.n ? t->s.rec : t->recs.n;

	for (size_t i = n; i-- > 1;) {
		const struct trc_enter *e = (const void *)t->recs.v[i - 1];
		const struct trc_leave *l = (const void *)t->recs.v[i];

		if (e->rec.type != TRC_ENTER || l->rec.type != TRC_LEAVE || e->rec.flags != nr || l->result ||
		    (at && e->args[0] != run_arg(r, 0)))
			continue;
		struct trc_effects fx = trc_effects(l);
		const struct trc_effect *f = trc_effect_next(&fx);

		if (!f || f->kind != TRC_EFFECT_WRITE || f->address != e->args[at] || f->length != 2 * sizeof *told)
			return false;
		memcpy(told, trc_effect_bytes(f), 2 * sizeof *told);
		return true;
	}
	return false;
}

/* The thread itself, or else another one. */
static bool somebody_was_told(const struct mach_run *r, const struct run_thread *t, uint64_t nr, unsigned at, int64_t told[2])
{
	bool any = last_told(r, t, nr, at, told);

	for (size_t i = 0; i < r->nthreads && !any; i++)
		any = last_told(r, &r->threads[i], nr, at, told);
	return any;
}

/* A clock goes on as instructions are executed: no program may rely on how fast. */
static bool time_call(struct mach_run *r, const struct execution *x, const struct run_thread *t, uint64_t nr)
{
	unsigned at = nr == SYS_clock_gettime;
	int64_t told[2], unit = nr == SYS_clock_gettime ? 1 : 1000;

	if ((nr != SYS_clock_gettime && nr != SYS_gettimeofday) || !somebody_was_told(r, t, nr, at, told) ||
	    !mem_writable(r->m->mem, run_arg(r, at), sizeof told))
		return false;
	int64_t now = told[1] * unit + (int64_t)((r->time - x->began) % SECOND);

	told[0] += now / SECOND;
	told[1] = now % SECOND / unit;
	mem_poke(r->m->mem, run_arg(r, at), told, sizeof told);
	exec_returns(r, 0);
	return true;
}

bool exec_anew(struct mach_run *r, struct execution *x, struct run_thread *t, uint64_t nr)
{
	if (thread_call(r, t, nr) || memory_call(r, nr))
		return true;
	if (time_call(r, x, t, nr)) {
		x->out->timed = true;
		return true;
	}
	if (!output_call(r, nr))
		return false;
	x->out->printed = true;
	return true;
}
