#include "preload/watch.h"

#include "preload/deadlock.h"
#include "preload/raw.h"
#include "preload/shim.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#define HELPER_STACK (32ul << 10)
#define LOOKS 3          /* sleeping with no event in between, this many times in a row */
#define LOOK_MS 20
#define LOOK_ENFORCED_MS 4 /* of an order that is enforced, a hundred times: the looks would be most of what it takes */
#define MOST_MOVES 50    /* looks that show something else, before it is no deadlock */

long raw_clone_thread(unsigned long flags, void *stack_top, void (*fn)(void), uint32_t *gone);

struct helper {
	void *stack;
	uint32_t busy; /* cleared by the kernel when the thread is off its stack */
};
static struct helper hang_helper, suspect_helper;

enum suspicion { IDLE, LOOKING, AGAIN };
static uint32_t suspicion;

static bool is_on(const struct helper *h, const void *frame)
{
	const char *stack = h->stack;

	return stack && (const char *)frame >= stack && (const char *)frame < stack + HELPER_STACK;
}

bool watch_is_helper(void)
{
	const void *frame = __builtin_frame_address(0);

	return is_on(&hang_helper, frame) || is_on(&suspect_helper, frame);
}

static void sleep_ms(uint64_t ms)
{
	struct timespec ts = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

	raw(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* Calls fn(tid) for each kernel thread of the process; stops when it says false. */
static bool each_task(bool (*fn)(uint32_t tid))
{
	char buf[1024] __attribute__((aligned(8)));
	long fd = raw(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool good = !raw_failed(fd);

	while (good) {
		long n = raw(SYS_getdents64, fd, buf, sizeof buf);

		if (n <= 0)
			break;
		for (long at = 0; at < n && good;) {
			uint16_t len;
			uint32_t tid = 0;

			memcpy(&len, buf + at + 16, sizeof len);
			for (const char *p = buf + at + 19; *p >= '0' && *p <= '9'; p++)
				tid = tid * 10 + (uint32_t)(*p - '0');
			if (tid)
				good = fn(tid);
			at += len;
		}
	}
	if (!raw_failed(fd))
		raw(SYS_close, fd);
	return good;
}

static uint32_t counted; /* under rec_lock() */

static bool count_one(uint32_t tid)
{
	(void)tid;
	counted++;
	return true;
}

uint32_t watch_kernel_threads(void)
{
	uint64_t saved;

	rec_lock(&saved);
	counted = 0;
	uint32_t n = each_task(count_one) ? counted : 0;

	rec_unlock(&saved);
	return n;
}

/* A word of the shim's own: who sleeps there is held by it (preload/control/), and goes on. */
static bool is_ours(uint64_t address)
{
	extern char __bss_start[] __attribute__((visibility("hidden")));
	extern char _end[] __attribute__((visibility("hidden")));

	return address >= (uint64_t)__bss_start && address < (uint64_t)_end;
}

static uint64_t hexadecimal(const char *p)
{
	uint64_t v = 0;

	for (; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'); p++)
		v = v << 4 | (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
	return v;
}

/* /proc/self/task/TID/syscall begins with the number when the thread sleeps in one, and its first argument: "202 0x7f...". */
static bool sleeps_in_futex(uint32_t tid)
{
	char buf[64];
	TEXT(path, 64);

	if (!shim_thread_by_tid(tid))
		return true; /* a helper; strangers are counted by deadlock_all_blocked() */
	text_str(&path, "/proc/self/task/");
	text_num(&path, tid);
	text_str(&path, "/syscall");
	if (raw_slurp(path.s, buf, sizeof buf) < 7)
		return false;
	return (!memcmp(buf, "202 ", 4) && !is_ours(hexadecimal(buf + 6))) ||
	       !memcmp(buf, "449 ", 4); /* futex, futex_waitv */
}

/* What stands there of a thread that is not in a system call, or has been woken. */
static bool sleeps(uint32_t tid)
{
	char buf[64];
	TEXT(path, 64);

	text_str(&path, "/proc/self/task/");
	text_num(&path, tid);
	text_str(&path, "/syscall");
	return tid == (uint32_t)raw(SYS_gettid) || raw_slurp(path.s, buf, sizeof buf) < 7 ||
	       memcmp(buf, "running", 7);
}

bool watch_somebody_runs(void)
{
	return !each_task(sleeps);
}

/*
 * True: all threads slept through all looks, and it is a deadlock. Awake without an
 * event is who waits for the scheduler; who is about to end may come by once more.
 */
static bool look(uint64_t events)
{
	int moves = 0;

	for (int looks = 0; looks < LOOKS;) {
		sleep_ms(*shim_opt.schedule ? LOOK_ENFORCED_MS : LOOK_MS);
		if (shim.state != SHIM_RECORDING || shim.failed || shim.nblocked < shim.nlive)
			return false;
		uint64_t now = shim_all_events();
		bool moved = now != events || watch_kernel_threads() > shim.nlive + shim.nhelpers;

		if (moved && ++moves > MOST_MOVES)
			return false;
		events = now;
		looks = !moved && each_task(sleeps_in_futex) ? looks + 1 : 0;
	}
	return deadlock_all_blocked(NULL) == DEADLOCK_YES;
}

static void suspect(void)
{
	uint32_t seen;

	do {
		__atomic_store_n(&suspicion, LOOKING, __ATOMIC_SEQ_CST);
		if (look(shim_all_events()))
			deadlock_report_all();
		seen = LOOKING;
	} while (!__atomic_compare_exchange_n(&suspicion, &seen, IDLE, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	__atomic_sub_fetch(&shim.nhelpers, 1, __ATOMIC_SEQ_CST);
}

static void hang(void)
{
	uint64_t step = shim_opt.hang_ms / 8 + 1, quiet = 0, events = shim_all_events();

	if (step > 1000)
		step = 1000;
	while (shim.state == SHIM_RECORDING) {
		sleep_ms(step);
		uint64_t now = shim_all_events();

		quiet = now == events ? quiet + step : 0;
		events = now;
		if (quiet < shim_opt.hang_ms || (shim.failed && !shim.in_handler))
			continue;
		deadlock_report_hang();
		quiet = 0;
	}
	__atomic_sub_fetch(&shim.nhelpers, 1, __ATOMIC_SEQ_CST);
}

static bool spawn(void (*fn)(void), struct helper *h)
{
	const unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
				    CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
	uint64_t all = ~0ull, saved;

	if (!h->stack)
		h->stack = raw_alloc(HELPER_STACK);
	if (!h->stack)
		return false;
	/* Its predecessor may be at its last breath. */
	while (__atomic_load_n(&h->busy, __ATOMIC_ACQUIRE))
		raw(SYS_sched_yield);
	raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, &saved, 8);
	__atomic_add_fetch(&shim.nhelpers, 1, __ATOMIC_SEQ_CST);
	h->busy = 1;
	long tid = raw_clone_thread(flags, (char *)h->stack + HELPER_STACK, fn, &h->busy);

	if (raw_failed(tid)) {
		h->busy = 0;
		__atomic_sub_fetch(&shim.nhelpers, 1, __ATOMIC_SEQ_CST);
	}
	raw(SYS_rt_sigprocmask, SIG_SETMASK, &saved, NULL, 8);
	return !raw_failed(tid);
}

void watch_start(void)
{
	/* One that still sleeps since before a failed exec goes on by itself. */
	if (shim_opt.hang_ms && !hang_helper.busy && !spawn(hang, &hang_helper))
		shim_degrade("cannot watch for hangs: no thread to be had");
}

bool watch_is_looking(void)
{
	return __atomic_load_n(&suspicion, __ATOMIC_SEQ_CST) != IDLE;
}

void watch_suspect(void)
{
	uint32_t seen = __atomic_load_n(&suspicion, __ATOMIC_SEQ_CST);
	uint32_t next;

	do
		next = seen == IDLE ? LOOKING : AGAIN;
	while (!__atomic_compare_exchange_n(&suspicion, &seen, next, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST));
	if (seen == IDLE && !spawn(suspect, &suspect_helper))
		__atomic_store_n(&suspicion, IDLE, __ATOMIC_SEQ_CST);
}

void watch_after_fork(void)
{
	suspicion = IDLE;
	hang_helper.busy = suspect_helper.busy = 0;
	shim.nhelpers = 0;
}
