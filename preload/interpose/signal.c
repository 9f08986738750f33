/*
 * Signal dispositions and masks, in sync mode only: the program must not see the
 * shim's handlers. In path mode the translator does this at the system call.
 */
#include "preload/interpose/real.h"
#include "preload/signals.h"

#include <errno.h>

static int as_errno(int err)
{
	if (err)
		errno = err;
	return err ? -1 : 0;
}

EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	if (!signals_active())
		return REAL(sigaction)(sig, act, old);
	return as_errno(signals_sigaction(sig, act, old));
}

#define SIGNAL(name)                                                              \
	EXPORT sighandler_t name(int sig, sighandler_t handler)                   \
	{                                                                         \
		sighandler_t prev = REAL(name)(sig, handler);                     \
                                                                                  \
		return signals_active() ? signals_after_signal(sig, prev) : prev; \
	}

SIGNAL(signal)
SIGNAL(bsd_signal)
SIGNAL(ssignal)
SIGNAL(sysv_signal)
SIGNAL(sigset)

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	if (!signals_active())
		return REAL(sigprocmask)(how, set, old);
	return as_errno(signals_mask(how, set, old));
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	if (!signals_active())
		return REAL(pthread_sigmask)(how, set, old);
	return signals_mask(how, set, old);
}

EXPORT int sigaltstack(const stack_t *ss, stack_t *old)
{
	if (!signals_active())
		return REAL(sigaltstack)(ss, old);
	return as_errno(signals_altstack(ss, old));
}
