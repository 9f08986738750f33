/*
 * Take-off: the constructor. Decides whether to record at all, resolves every
 * real function, reads the options, starts the trace, and in path mode hands the
 * program over to the translator as its very last act.
 *
 * The object is linked with -z initfirst: constructors of other libraries run
 * after this one and are recorded. On the way out the on_exit() handler that is
 * registered here runs after everything else.
 */
#include "preload/asleep.h"
#include "preload/control/control.h"
#include "preload/failure.h"
#include "preload/interpose/real.h"
#include "preload/process.h"
#include "preload/raw.h"
#include "preload/say.h"
#include "preload/shim.h"
#include "preload/signals.h"
#include "preload/silence.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/auxv.h>

extern const void *__cxa_current_exception_type(void) __attribute__((weak));

/*
 * Set-uid and the like. Asked of the loader: it has moved the environment, behind
 * which the auxiliary vector once stood, and the kernel hides /proc/self/auxv.
 */
static bool is_secure(void)
{
	return getauxval(AT_SECURE);
}

/*
 * The request RUNNING_ON_VALGRIND, instructions that do nothing elsewhere. What valgrind runs and
 * judges must not hold us: neither can it run our code cache, nor are our accesses the program's.
 */
static bool under_valgrind(void)
{
	volatile uint64_t request[6] = { 0x1001 };
	uint64_t answer = 0;

	__asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(answer) : "a"(request) : "cc", "memory");
	return answer;
}

/* Inherited over exec. */
static bool clock_is_forbidden(void)
{
	int how = PR_TSC_ENABLE;

	return !raw(SYS_prctl, PR_GET_TSC, &how, 0, 0, 0) && how != PR_TSC_ENABLE;
}

static void at_exit(int status, void *arg)
{
	(void)arg;
	shim_event(SHIM_AT(TRC_OP_PROCESS_EXIT, TRC_AT_DONE), 0, 0, status, SHIM_NO_THREAD, 0);
}

static void choose_mode(void)
{
	if (shim_opt.mode == SHIM_MODE_PATH && !(tr_available && tr_available()))
		shim_opt.mode = SHIM_MODE_SYNC;
}

static void say_without_translator(void)
{
	const char *why = tr_why_not ? tr_why_not() : NULL;
	TEXT(text, 200);

	text_str(&text, "recording sync operations only: ");
	text_str(&text, why ? why : "this build has no translator");
	shim_degrade(text.s);
}

static bool started;

/* libc's own: a sanitizer's is in front of it, and has not begun before us. */
static void register_end(void)
{
	int (*real_on_exit)(void (*)(int, void *), void *) = dlsym(RTLD_NEXT, "on_exit");

	if (real_on_exit)
		real_on_exit(at_exit, NULL);
}

__attribute__((constructor)) static void shim_init(int argc, char **argv, char **envp)
{
	static struct failure_symbols symbols;
	static char options[2048]; /* the environment may be changed by the program */

	(void)argc;
	real_resolve();
	if (started || is_secure())
		return;
	started = true;
	const char *given = silence_environment(envp, "CSCHED_OPTIONS");
	struct raw_text copy = { options, 0, sizeof options };

	text_str(&copy, given ? given : "");
	say_start();
	shim_options_parse(options);
	if (clock_is_forbidden()) {
		say_in_tree("the time-stamp counter is forbidden (PR_SET_TSC): the program is not recorded");
		return;
	}
	if (under_valgrind()) {
		say_in_tree("valgrind runs the program: it is not recorded");
		return;
	}
	bool wanted_path = shim_opt.mode == SHIM_MODE_PATH;

	say_keep();
	choose_mode();
	process_start(options);
	if (getauxval(AT_BASE)) /* else the loader was called by name and has taken its own arguments out */
		rec_started_with(argv);
	symbols.abort_msg = dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE");
	/* Not by dlsym(): where there is none it allocates its message with a malloc of the
	 * program's (clang's ThreadSanitizer) that has not begun yet. */
	symbols.current_exception_type = __cxa_current_exception_type;
	failure_start(&symbols);
	asleep_start();
	if (!shim_opt.follow) {
		silence_environment_ours(envp);
	}
	if (!shim_start_trace())
		return;
	if (wanted_path && shim_opt.mode == SHIM_MODE_SYNC)
		say_without_translator();
	register_end();
	real_ready();
	ctl_init();
	if (shim_opt.mode == SHIM_MODE_SYNC) {
		shim_self()->last_sp = (uint64_t)__builtin_frame_address(0);
		signals_start();
		signals_thread_start(shim_self());
	} else {
		tr_takeover();
	}
}
