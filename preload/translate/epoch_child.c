// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A checkpoint's memory, written by a copy of the process while the program goes on.
 *
 * The copy is made by a bare clone() without a signal for its parent: the program gets no SIGCHLD, and its wait() does not see it (but for one
 * that asks for such children, __WALL). It shares no descriptor with anybody: before the threads go on it has
 * closed all but two, so a pipe that the program closes is closed. It blocks all signals, writes, gives the checkpoint its name
 * and ends; we reap it when we look next. What the program writes to meanwhile, the kernel copies page by page.
 *
 * Memory that is shared with others would not stand still: we write that, before. The same goes for a program that
 * has asked for memory not to be copied (MADV_DONTFORK, MADV_WIPEONFORK), and where no process can be made:
 * then we write everything, and the threads stand still for it.
 *
 * Why a copy: it works on every kernel and needs no right; write protection by userfaultfd has to be set up for each
 * mapping and is the program's to use. What is written is what has changed, see pages.c.
 */
#include "preload/raw.h"
#include "preload/record/file.h"
#include "preload/record/stream.h"
#include "preload/translate/epoch.h"
#include "preload/translate/pages.h"
#include "preload/translate/translate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <linux/wait.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define CLOSED_NS 20000000l /* between two looks whether the copy is still there */
#define SIGNAL_SEGV 11
#define SIGNAL_BUS 7

enum written { WRITING, WHOLE, FAILED };

/* What both see. */
struct both {
	uint32_t closed; /* a futex: the copy has no descriptor of the program's any more */
	uint32_t written; /* enum written */
	bool is_short;    /* failed: it needs more room than it was given */
	uint64_t bytes;
};

static struct both *both;
static long child;          /* pid; 0: none */
static uint64_t expected_bytes, last_bytes;
static bool no_copy, last_failed;
static struct tr_copies copies;
static struct tr_pages_what what; /* of the checkpoint that is being written */

void tr_epoch_no_copy(void)
{
	__atomic_store_n(&no_copy, true, __ATOMIC_RELAXED);
}

void tr_epoch_write_start(void)
{
	child = 0;
	last_bytes = 0;
	memset(&copies, 0, sizeof copies);
	tr_pages_forget();
	if (!rec_epoch)
		return;
	both = raw_map(RAW_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (both)
		tr_own(both, RAW_PAGE);
}

static void close_but(int a, int b)
{
	unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);

	if (low)
		raw(SYS_close_range, 0, low - 1, 0);
	if (high > low + 1)
		raw(SYS_close_range, low + 1, high - 1, 0);
	raw(SYS_close_range, high + 1, UINT32_MAX, 0);
}

/* Who copies memory that has gone meanwhile is told by these two, see tr_copy(). */
static void block_signals(void)
{
	uint64_t mask = ~(1ull << (SIGNAL_SEGV - 1) | 1ull << (SIGNAL_BUS - 1));

	raw(SYS_rt_sigprocmask, 2, &mask, 0, 8);
}

static __attribute__((noreturn)) void write_as_copy(int file, int dir)
{
	uint64_t before = rec_total();

	shim.state = SHIM_ENDED; /* nothing is said or noted from here */
	raw(SYS_prctl, PR_SET_NAME, "csched-epoch"); /* who looks for the program by name finds it, not us */
	block_signals();
	close_but(file, dir);
	__atomic_store_n(&both->closed, 1, __ATOMIC_RELEASE);
	raw(SYS_futex, &both->closed, FUTEX_WAKE, 1);
	rec_memory_file = file;
	rec_memory_most = before + expected_bytes;
	bool whole = tr_checkpoint_end(&what, true) && rec_ring_name_checkpoint();

	both->bytes = rec_total() - before;
	both->is_short = rec_memory_short;
	__atomic_store_n(&both->written, whole ? WHOLE : FAILED, __ATOMIC_RELEASE);
	for (;;)
		raw(SYS_exit_group, 0);
}

/* What it used counts as what children of the program did; see call_hide_copies(). */
static void add_up(const struct rusage *r)
{
	copies.n++;
	copies.utime += (uint64_t)r->ru_utime.tv_sec * 1000000 + (uint64_t)r->ru_utime.tv_usec;
	copies.stime += (uint64_t)r->ru_stime.tv_sec * 1000000 + (uint64_t)r->ru_stime.tv_usec;
	copies.minflt += r->ru_minflt;
	copies.majflt += r->ru_majflt;
	copies.inblock += r->ru_inblock;
	copies.oublock += r->ru_oublock;
	copies.nvcsw += r->ru_nvcsw;
	copies.nivcsw += r->ru_nivcsw;
}

const struct tr_copies *tr_epoch_copies(void)
{
	return &copies;
}

static bool is_there(void)
{
	struct rusage r;
	long done = raw(SYS_wait4, child, NULL, WNOHANG | __WCLONE, &r);

	if (done == child)
		add_up(&r);
	return !done;
}

static void settle(void)
{
	if (last_failed) {
		rec_ring_no_checkpoint();
	} else {
		tr_pages_keep();
		rec_ring_complete();
	}
}

bool tr_epoch_writing(void)
{
	if (child && !is_there())
		child = 0;
	if (!expected_bytes)
		return child != 0;
	uint32_t written = __atomic_load_n(&both->written, __ATOMIC_ACQUIRE);

	if (!child || written != WRITING) {
		last_bytes = both->bytes;
		last_failed = written != WHOLE;
		rec_ring_count((last_failed ? 0 : (int64_t)last_bytes) - (int64_t)expected_bytes);
		expected_bytes = 0;
		settle();
	}
	return child != 0;
}

uint64_t tr_epoch_written(uint64_t expected, bool *is_short)
{
	*is_short = last_failed && both && both->is_short;
	return last_bytes ? last_bytes : expected;
}

bool tr_epoch_failed(void)
{
	return last_failed;
}

static void write_here(bool begun)
{
	uint64_t before = rec_total();

	last_failed = !((begun || tr_checkpoint_begin(&what)) && tr_checkpoint_end(&what, false) &&
			rec_ring_name_checkpoint());
	last_bytes = rec_total() - before;
	if (last_failed)
		file_give_back(last_bytes);
	else
		rec_ring_apart((int64_t)last_bytes);
	settle();
}

static bool can_copy(int *file)
{
	TEXT(name, 48);

	if (!both || no_copy || rec_dir_fd() < 0 || raw_failed(raw(SYS_close_range, UINT32_MAX, UINT32_MAX, 0)))
		return false;
	text_str(&name, "e");
	text_num(&name, rec_epoch);
	text_str(&name, ".memory-new");
	int fd = rec_dir_open(name.s, O_RDWR | O_CREAT);

	if (fd < 0)
		return false;
	*file = shim_fd_high(fd);
	raw(SYS_close, fd);
	return *file >= 0;
}

/* Nobody of the program's may close a descriptor before the copy has. */
static void wait_until_closed(void)
{
	const struct timespec some = { .tv_nsec = CLOSED_NS };

	while (!__atomic_load_n(&both->closed, __ATOMIC_ACQUIRE)) {
		raw(SYS_futex, &both->closed, FUTEX_WAIT, 0, &some);
		if (!__atomic_load_n(&both->closed, __ATOMIC_ACQUIRE) && !is_there()) {
			child = 0;
			return;
		}
	}
}

void tr_epoch_write(const struct rec_ring_next *next, uint64_t room)
{
	int file = -1;

	last_bytes = 0;
	last_failed = false;
	what = (struct tr_pages_what){ rec_epoch, next->since, next->since ? next->base : rec_epoch };
	tr_pages_room(room);
	if (!can_copy(&file)) {
		write_here(false);
		return;
	}
	if (tr_checkpoint_begin(&what)) {
		*both = (struct both){ 0 };
		expected_bytes = next->most;
		child = raw(SYS_clone, 0, 0, 0, 0, 0);
		if (!child)
			write_as_copy(file, rec_dir_fd());
		if (raw_failed(child)) {
			child = 0;
			expected_bytes = 0;
			write_here(true);
		} else {
			rec_ring_count((int64_t)expected_bytes);
			wait_until_closed();
			tr_checkpoint_left();
		}
	}
	raw(SYS_close, file);
}
