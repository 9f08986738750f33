/* Failures that came from outside: a signal that another process sent. Where the program's handler raises it again, the failure is still the signal that came first. */
#include "analyzer/explain/explain.h"
#include "analyzer/trace_image.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Who sent it; 0: the program itself, or the processor. -1: a process that cannot be seen from the program's. */
static int32_t sender(const struct trc *t, int32_t code, int32_t pid)
{
	const char *own = trc_identity(t, "pid");

	if (code != SI_USER && code != SI_QUEUE)
		return 0;
	return own && atoi(own) == pid ? 0 : pid ? pid : -1;
}

err_t explain_from_outside(const struct trc *t)
{
	const struct trc_failure *f = t->failure;
	/* si_pid stands where si_addr does for faults. */
	int32_t from = f->rec.flags == TRC_FAIL_SIGNAL ? sender(t, f->code, (int32_t)f->address) : 0;

	if (!from)
		return NULL;
	char *who = from > 0 ? xasprintf("process %d", (int)from) : xstrdup("another process");
	char *what = trace_failure_text(f);
	err_t e = err_new(ERR_NOANSWER, "%s: the signal came from %s; why, the trace does not tell, and no order of the "
			  "threads is known to bring it about", what, who);

	free(what);
	free(who);
	return e;
}
