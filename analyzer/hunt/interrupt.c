#include "analyzer/hunt/interrupt.h"

#include <signal.h>
#include <stddef.h>

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
#define NSIGNALS (sizeof signals / sizeof *signals)

static struct sigaction old[NSIGNALS];
static unsigned depth; /* catching nests: a hunt does it, and the command around it */
static volatile sig_atomic_t pending;

static void note(int sig)
{
	pending = sig;
}

void interrupt_catch(void)
{
	struct sigaction act = { .sa_handler = note };

	if (depth++)
		return;
	pending = 0;
	for (size_t i = 0; i < NSIGNALS; i++) {
		sigaction(signals[i], NULL, &old[i]);
		if (old[i].sa_handler != SIG_IGN)
			sigaction(signals[i], &act, NULL);
	}
}

int interrupt_pending(void)
{
	return pending;
}

void interrupt_release(void)
{
	if (!depth || --depth)
		return;
	for (size_t i = 0; i < NSIGNALS; i++)
		sigaction(signals[i], &old[i], NULL);
}

void interrupt_obey(void)
{
	interrupt_release();
	if (depth || !pending)
		return;
	/* Whoever caught it before us has nothing left to do. */
	signal(pending, SIG_DFL);
	raise(pending);
}
