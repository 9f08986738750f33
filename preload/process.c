/* The life of the process as the shim sees it: start of a trace, fork, exec, the end. */
#include "preload/control/control.h"
#include "preload/process.h"

#include "preload/raw.h"
#include "preload/record/slots.h"
#include "preload/say.h"
#include "preload/shim.h"
#include "preload/watch.h"

#include <signal.h>
#include <sys/mman.h>

struct shim_process shim;

static volatile uint32_t always_here = 1; /* where the kernel cannot wipe pages on fork */
volatile uint32_t *shim_here = &always_here;
static const char *option_text;

void process_start(const char *options)
{
	option_text = options;
	shim.pid = (uint32_t)raw(SYS_getpid);
	uint32_t *page = raw_alloc(RAW_PAGE);

	if (!page || raw(SYS_madvise, page, RAW_PAGE, MADV_WIPEONFORK))
		return;
	*page = 1;
	shim_here = page;
}

bool shim_is_other_process(void)
{
	return (uint32_t)raw(SYS_getpid) != shim.pid;
}

static void say_path(const char *what)
{
	TEXT(line, 1024);

	text_str(&line, what);
	text_str(&line, rec_dir_path());
	shim_say(1, line.s);
}

bool shim_start_trace(void)
{
	shim.failed = shim.deadlocked = shim.in_handler = false;
	shim.state = SHIM_OFF;
	rec_ring_start();
	if (!rec_dir_create())
		return false;
	if (shim_opt.mode == SHIM_MODE_PATH)
		rec_open_together();
	if (!rec_open(&rec_process, TRC_STREAM_PROCESS, 0)) {
		rec_dir_remove();
		return false;
	}
	rec_identity(option_text);
	rec_modules(0, 0);
	if (!shim_threads_main()) {
		rec_dir_remove();
		return false;
	}
	rec_identity_clock();
	if (!rec_dir_publish())
		return false;
	shim.state = SHIM_RECORDING;
	say_path("recording to ");
	watch_start();
	return true;
}

void shim_forked_as(uint32_t which)
{
	struct raw_text t = { shim.process, strlen(shim.process), sizeof shim.process };

	if (t.n)
		text_str(&t, ".");
	text_num(&t, which);
	shim.forks = 0;
}

void shim_after_fork(void)
{
	shim.pid = (uint32_t)raw(SYS_getpid);
	if (shim_here != &always_here)
		*shim_here = 1;
	rec_lock_reset();
	say_after_fork();
	watch_after_fork();
	ctl_forked();
	rec_dir_forget();
	rec_forget(&rec_process);
	rec_forget_total();
	rec_modules_forget();
	shim_threads_forget();
	slots_forget();
	if (shim.state != SHIM_RECORDING && shim.state != SHIM_DORMANT)
		return;
	if (!shim_opt.follow) {
		shim.state = SHIM_OFF;
		return;
	}
	shim.state = SHIM_DORMANT;
	if (shim_opt.mode == SHIM_MODE_PATH)
		shim_start_trace();
}

static void write_end(int kind, int status)
{
	struct shim_thread *t = shim_self_known();
	struct trc_end *r = rec_begin(&rec_process, sizeof *r);

	if (!r)
		return;
	r->tsc = raw_tsc();
	r->status = status;
	r->thread = t ? t->index : 0;
	rec_commit(&rec_process, r, TRC_END, (unsigned)kind, sizeof *r);
}

static void fail_exit(int status)
{
	struct shim_fault f = { 0 };
	struct shim_thread *t = shim_self_known();
	uint64_t regs[TRC_NREGS] = { 0 };
	TEXT(text, 64);

	f.status = status & 255;
	if (t && tr_path_pos)
		f.path_pos = tr_path_pos(t);
	if (t)
		regs[TRC_RIP] = t->last_site;
	text_str(&text, "exit status ");
	text_num(&text, f.status);
	text_str(&text, ", which counts as a failure (fail_exit)");
	shim_failure(TRC_FAIL_EXIT, t, &f, regs, text.s, NULL, 0);
}

static bool is_kept(void)
{
	return shim.failed || shim_opt.keep == SHIM_KEEP_ALWAYS;
}

/* Under the lock. The other threads may be in the middle of a record: theirs stay open. */
static void end_trace(struct shim_thread *t, int kind, int status)
{
	/* Of a run that somebody ended, because it hung perhaps, nobody knows whether it failed. */
	if (!is_kept() && (kind != 1 || status == SIGPIPE)) {
		shim.state = SHIM_ENDED;
		rec_dir_remove();
		return;
	}
	write_end(kind, status);
	if (t)
		rec_close(&t->rec);
	rec_close(&rec_process);
	shim.state = SHIM_ENDED;
	say_path("trace: ");
}

void shim_process_end(int kind, int status)
{
	struct shim_thread *t = shim_self_known();
	uint64_t saved;

	if (shim.state != SHIM_RECORDING || !*shim_here || shim_is_other_process())
		return;
	if (tr_crash_end)
		tr_crash_end(t, kind, status);
	if (kind == 0)
		ctl_ending();
	if (kind == 0 && shim_options_fails(status))
		fail_exit(status);
	rec_lock(&saved);
	if (shim.state == SHIM_RECORDING)
		end_trace(t, kind, status);
	rec_unlock(&saved);
}

#define EXEC_NAME 256 /* bytes of it that are recorded */

void shim_exec_begin(const char *path)
{
	struct shim_thread *t = shim_self_known();
	char name[EXEC_NAME];
	size_t len = 0;
	uint64_t saved;

	while (path && len < sizeof name && raw_peek(name + len, (uint64_t)path + len, 1) && name[len])
		len++; /* it may be anything: the kernel has not looked yet */
	size_t size = sizeof(struct trc_exec) + len;

	if (shim.state != SHIM_RECORDING || shim_is_other_process())
		return;
	if (tr_crash_end)
		tr_crash_end(t, 2, 0);
	rec_lock(&saved);
	struct trc_exec *r = rec_begin(&rec_process, size);

	if (r) {
		r->tsc = raw_tsc();
		r->thread = t ? t->index : 0;
		r->path_len = (uint32_t)len;
		memcpy(r->path, name, len);
		rec_commit(&rec_process, r, TRC_EXEC, 0, size);
	}
	write_end(2, 0);
	/*
	 * Nothing of us survives a successful exec, so a trace that is not to be
	 * kept goes now. Should exec fail, the next event starts another; with more
	 * threads alive, or a translator at work, recording is over then.
	 */
	if (!is_kept()) {
		bool again = shim_opt.mode == SHIM_MODE_SYNC && shim.nlive == 1;

		shim.state = again ? SHIM_DORMANT : SHIM_ENDED;
		if (again) {
			rec_forget(&rec_process);
			if (t)
				rec_forget(&t->rec);
			slots_forget();
			rec_forget_total();
			rec_modules_forget();
		}
		rec_dir_remove();
	}
	rec_unlock(&saved);
}

void shim_exec_failed(void)
{
	static bool said;

	if (shim.state == SHIM_RECORDING) {
		shim_note(false, "exec failed; the program continued");
	} else if (shim.state == SHIM_ENDED && !said && !shim_is_other_process()) {
		said = true;
		shim_say(0, "exec failed after the trace was given up; recording stopped");
	}
}
