/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that forbids itself system calls (seccomp, system call dispatch): from then on one of ours could be its death. So
 * recording ends before that, in this process and those it will make, and nobody of us is under way in the kernel.
 */
#include "preload/silence.h"

#include "preload/raw.h"
#include "preload/shim.h"
#include "preload/signals.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MAX 2000u    /* pauses until nobody is under way any more: a second */
#define PAUSE_NS 500000l

const char *silence_environment(char **envp, const char *name)
{
	size_t n = strlen(name);

	for (; envp && *envp; envp++)
		if (strlen(*envp) > n && !memcmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

static void drop_environment(char **envp, const char *name)
{
	size_t n = strlen(name);
	char **to = envp;

	for (; envp && *envp; envp++)
		if (strlen(*envp) <= n || memcmp(*envp, name, n) || (*envp)[n] != '=')
			*to++ = *envp;
	if (to)
		*to = NULL;
}

/* Takes the entries that end in libcsched.so out of LD_PRELOAD, in place. */
static void drop_preload(char **envp)
{
	static const char ours[] = "libcsched.so";
	char *list = (char *)silence_environment(envp, "LD_PRELOAD"), *to = list;

	if (!list)
		return;
	for (char *p = list; *p;) {
		char *end = p;

		while (*end && *end != ':' && *end != ' ')
			end++;
		size_t n = (size_t)(end - p);
		bool is_ours = n >= sizeof ours - 1 &&
			       !memcmp(end - (sizeof ours - 1), ours, sizeof ours - 1);

		if (!is_ours && n) {
			if (to != list)
				*to++ = ':';
			memmove(to, p, n);
			to += n;
		}
		p = *end ? end + 1 : end;
	}
	*to = 0;
	if (to == list)
		drop_environment(envp, "LD_PRELOAD");
}

void silence_environment_ours(char **envp)
{
	drop_environment(envp, "CSCHED_OPTIONS");
	drop_preload(envp);
}

const char *silence_reason(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	bool seccomp = nr == SYS_seccomp && (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER);
	bool filter = nr == SYS_seccomp ? a == SECCOMP_SET_MODE_FILTER : b == SECCOMP_MODE_FILTER;

	seccomp |= nr == SYS_prctl && a == PR_SET_SECCOMP;
	/* Without a filter it fails: that is how libseccomp asks what the kernel can do. */
	if (seccomp && (!filter || c))
		return "the program restricts its own system calls (seccomp)";
	if (nr == SYS_prctl && a == PR_SET_SYSCALL_USER_DISPATCH && b)
		return "the program catches its own system calls";
	/* Faults and single steps of ours would look like the program's to whoever watches it. */
	if (nr == SYS_ptrace && a == PTRACE_TRACEME)
		return "the process lets its parent trace it";
	return NULL;
}

uint32_t silence_busy;

void silence_wait(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (unsigned i = 0; i < WAIT_MAX; i++) {
		if (!__atomic_load_n(&silence_busy, __ATOMIC_SEQ_CST) &&
		    !__atomic_load_n(&shim.nhelpers, __ATOMIC_SEQ_CST))
			return;
		raw(SYS_nanosleep, &pause, NULL);
	}
}

/*
 * The last moment for system calls of ours. What the program does from here on, its children included, is not
 * recorded.
 */
void shim_fall_silent(void)
{
	struct shim_thread *t = shim_self_known();
	uint64_t saved;

	rec_lock(&saved);
	bool recording = shim.state == SHIM_RECORDING && !shim_is_other_process();

	shim.state = SHIM_OFF;
	if (recording && (shim.failed || shim_opt.keep == SHIM_KEEP_ALWAYS)) {
		if (t)
			rec_close(&t->rec);
		rec_close(&rec_process);
	} else if (recording) {
		rec_dir_remove();
	}
	rec_unlock(&saved);
	silence_environment_ours(environ);
}

void silence_sync(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	const char *why = signals_active() ? silence_reason(nr, a, b, c) : NULL;
	TEXT(note, 200);

	if (!why || (*shim_here && shim_is_other_process())) /* a vfork child: its parent goes on */
		return;
	text_str(&note, "recording ended: ");
	text_str(&note, why);
	shim_note(true, note.s);
	shim_fall_silent();
	signals_stop();
	silence_wait();
}
