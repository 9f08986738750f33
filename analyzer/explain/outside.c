/* Failures that came from outside: a signal that another process sent, also where the program's handler has raised it again. */
#include "analyzer/explain/explain.h"
#include "analyzer/trace_image.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { RSI = 6 }; /* of a record's registers: a handler's second argument */

/* Who sent it; 0: the program itself, or the processor. -1: a process that cannot be seen from the program's. */
static int32_t sender(const struct trc *t, int32_t code, int32_t pid)
{
	const char *own = trc_identity(t, "pid");

	if (code != SI_USER && code != SI_QUEUE)
		return 0;
	return own && atoi(own) == pid ? 0 : pid ? pid : -1;
}

/* The siginfo that the handler was given lies in its frame. */
static int32_t handled_sender(const struct trc *t, const struct trc_signal *s)
{
	uint64_t at = s->regs[RSI] - s->frame;
	siginfo_t info;

	if (at > s->frame_len || s->frame_len - at < sizeof info)
		return 0;
	memcpy(&info, s->bytes + at, sizeof info);
	return sender(t, info.si_code, info.si_pid);
}

/* The failing thread is still in a handler of this signal, and that came from outside. */
static int32_t raised_again(const struct trc *t)
{
	const struct trc_thread_info *info = trc_thread_at(t, t->failure->thread);
	VEC(int32_t) active = { 0 }; /* handlers: who sent theirs */
	const struct trc_rec *rec = NULL;
	struct trc_iter it;
	int32_t from = 0; /* of a handler from which it has just returned: what was blocked meanwhile strikes there */

	if (!info || !info->rec_stream)
		return 0;
	trc_iter_init(&it, info->rec_stream);
	for (;;) {
		err_t e = trc_next(&it, &rec);

		if (e || !rec) {
			err_free(e);
			break;
		}
		const struct trc_signal *s = (const struct trc_signal *)rec;
		if (rec->type == TRC_SIGNAL || rec->type == TRC_ENTER)
			from = 0;
		if (rec->type == TRC_SIGNAL)
			vec_push(&active, rec->flags == (unsigned)t->failure->signal ? handled_sender(t, s) : 0);
		else if (rec->type == TRC_ENTER && rec->flags == SYS_rt_sigreturn && active.n)
			from = active.v[--active.n];
	}
	for (size_t i = 0; i < active.n; i++)
		from = active.v[i] ? active.v[i] : from;
	vec_free(&active);
	return from;
}

err_t explain_from_outside(const struct trc *t)
{
	const struct trc_failure *f = t->failure;
	/* si_pid stands where si_addr does for faults. */
	int32_t from = f->rec.flags == TRC_FAIL_SIGNAL ? sender(t, f->code, (int32_t)f->address) : 0;
	bool again = !from && f->signal && (f->rec.flags == TRC_FAIL_SIGNAL || f->rec.flags == TRC_FAIL_ABORT);

	if (again)
		from = raised_again(t);
	if (!from)
		return NULL;
	char *who = from > 0 ? xasprintf("process %d", (int)from) : xstrdup("another process");
	char *what = trace_failure_text(f);
	err_t e = err_new(ERR_NOANSWER, "%s: the signal came from %s%s; why, the trace does not tell, and no order of the "
			  "threads is known to bring it about", what, who,
			  again ? ", and the program's handler raised it again" : "");

	free(what);
	free(who);
	return e;
}
