/* Failures: what is written about them, and the two lines that are said. */
#include "preload/failure.h"

#include "preload/control/control.h"

#include "preload/event.h"
#include "preload/raw.h"
#include "preload/said.h"
#include "preload/stacks.h"

#include <signal.h>

/* Resolved in the constructor: a dying process must not take the loader's locks. */
static const struct failure_symbols *symbols;

void failure_start(const struct failure_symbols *s)
{
	symbols = s;
}

static void write_failure(enum trc_failure_kind kind, const struct shim_thread *t,
			  const struct shim_fault *f, const uint64_t *regs, const char *text,
			  const void *detail, size_t detail_len)
{
	size_t text_len = strlen(text);
	size_t size = sizeof(struct trc_failure) + text_len + detail_len;
	struct trc_failure *r = rec_begin(&rec_process, size);

	if (!r)
		return;
	r->tsc = raw_tsc();
	r->thread = t ? t->index : 0;
	r->signal = f->signal;
	r->code = f->code;
	r->status = f->status;
	r->address = f->address;
	if (regs)
		memcpy(r->regs, regs, sizeof r->regs);
	r->path_pos = f->path_pos;
	r->text_len = (uint32_t)text_len;
	r->detail_len = (uint32_t)detail_len;
	memcpy(r->data, text, text_len);
	memcpy(r->data + text_len, detail, detail_len);
	rec_commit(&rec_process, r, TRC_FAILURE, kind, size);
}

static void tell(const struct shim_thread *t, const char *text)
{
	TEXT(line, 1024);

	if (t) {
		text_str(&line, t->id);
		text_str(&line, ": ");
	}
	text_str(&line, text);
	shim_say(0, line.s);
	line.n = 0;
	text_str(&line, "next: csched explain ");
	text_str(&line, rec_dir_path());
	shim_say(0, line.s);
}

/* Under the lock. False: there is one already, or nothing is recorded. */
static bool begin_failure(enum trc_failure_kind kind, const struct shim_thread *t, const struct shim_fault *f,
			  const uint64_t *regs, const char *text, const void *detail, size_t detail_len)
{
	if (shim.state != SHIM_RECORDING || shim.failed)
		return false;
	shim.failed = true;
	write_failure(kind, t, f, regs, text, detail, detail_len);
	stacks_write_failing(t, regs);
	if (ctl.enforcing)
		ctl_enforce_failed();
	return true;
}

/* Said and completed when it is certain that this is the failure. */
static void complete(const struct shim_thread *t, const char *text)
{
	stacks_write_others(t);
	rec_modules(raw_tsc(), 0);
	tell(t, text);
}

void shim_failure(enum trc_failure_kind kind, struct shim_thread *t, const struct shim_fault *f,
		  const uint64_t regs[TRC_NREGS], const char *text, const void *detail,
		  size_t detail_len)
{
	uint64_t saved;

	csched_at_failure(kind, regs);
	if (shim.state == SHIM_OFF || shim_is_other_process())
		return;
	rec_lock(&saved);
	shim_failure_settle(true); /* what came first stands */
	if (begin_failure(kind, t, f, regs, text, detail, detail_len))
		complete(t, text);
	rec_unlock(&saved);
}

void shim_failure_assert(struct shim_thread *t, const struct shim_fault *f,
			 const uint64_t regs[TRC_NREGS], const struct shim_assertion *a)
{
	static char detail_buf[2048]; /* under the lock */
	struct raw_text detail = { detail_buf, 0, sizeof detail_buf };
	TEXT(text, 700);
	uint64_t saved;

	rec_lock(&saved);
	text_str(&text, "assertion `");
	text_str(&text, a->expression);
	text_str(&text, "' failed at ");
	text_str(&text, a->file);
	text_str(&text, ":");
	text_num(&text, a->line);
	text_str(&detail, a->expression);
	text_strn(&detail, "", 1);
	text_str(&detail, a->file);
	text_strn(&detail, "", 1);
	text_num(&detail, a->line);
	text_strn(&detail, "", 1);
	text_str(&detail, a->function ? a->function : "");
	shim_failure(TRC_FAIL_ASSERT, t, f, regs, text.s, detail.s, detail.n);
	rec_unlock(&saved);
}

void shim_failure_user(struct shim_thread *t, const struct shim_fault *f,
		       const uint64_t regs[TRC_NREGS], const char *why)
{
	TEXT(text, 700);

	text_str(&text, "the program says: ");
	text_str(&text, why ? why : "(nothing)");
	shim_failure(TRC_FAIL_USER, t, f, regs, text.s, why, why ? strlen(why) : 0);
}

/* ---- signals ---- */

static const struct {
	int signal, code; /* code 0: any other */
	const char *text;
	bool address;
} reasons[] = {
	{ SIGSEGV, SEGV_MAPERR, "segmentation fault: nothing is mapped at ", true },
	{ SIGSEGV, SEGV_ACCERR, "segmentation fault: no permission at ", true },
	{ SIGSEGV, SI_KERNEL, "segmentation fault: address outside the canonical range", false },
	{ SIGSEGV, 0, "segmentation fault (SIGSEGV)", false },
	{ SIGBUS, BUS_ADRALN, "bus error: misaligned access at ", true },
	{ SIGBUS, BUS_ADRERR, "bus error: no memory backs ", true },
	{ SIGBUS, 0, "bus error (SIGBUS)", false },
	{ SIGFPE, FPE_INTDIV, "integer division by zero at ", true },
	{ SIGFPE, FPE_INTOVF, "integer overflow at ", true },
	{ SIGFPE, 0, "arithmetic exception (SIGFPE)", false },
	{ SIGILL, ILL_ILLOPN, "illegal instruction at ", true },
	{ SIGILL, 0, "illegal instruction (SIGILL)", false },
	{ SIGABRT, 0, "aborted (SIGABRT)", false },
	{ SIGSYS, 0, "bad system call (SIGSYS)", false },
	{ SIGTRAP, 0, "trap (SIGTRAP)", false },
};

static void word_signal(struct raw_text *text, const struct shim_fault *f)
{
	for (unsigned i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
		if (reasons[i].signal != f->signal ||
		    (reasons[i].code && reasons[i].code != f->code))
			continue;
		text_str(text, reasons[i].text);
		if (reasons[i].address)
			text_hex(text, f->address);
		if (f->code <= 0)
			text_str(text, ", sent by a process");
		return;
	}
	text_str(text, "killed by signal ");
	text_num(text, f->signal);
}

/* glibc leaves what it said before abort() in a length-prefixed string. */
static size_t abort_message(char *buf, size_t size)
{
	struct {
		uint32_t size;
		char text[];
	} *msg = symbols && symbols->abort_msg ? *symbols->abort_msg : NULL;
	size_t n = msg ? raw_peek(buf, (uint64_t)msg->text, size) : 0;
	size_t len = 0;

	while (len < n && buf[len] && buf[len] != '\n')
		len++;
	return len;
}

/* The mangled name of the exception being handled, which at abort() is the uncaught one. */
static size_t exception_name(char *buf, size_t size)
{
	const uint64_t *type = symbols && symbols->current_exception_type ?
				       symbols->current_exception_type() : NULL;
	uint64_t name = 0;
	size_t len = 0;

	if (!type || raw_peek(&name, (uint64_t)(type + 1), sizeof name) != sizeof name)
		return 0;
	size_t n = raw_peek(buf, name, size);

	while (len < n && buf[len])
		len++;
	/* Types without linkage are marked with an asterisk that is not part of the name. */
	if (len && buf[0] == '*')
		memmove(buf, buf + 1, --len);
	return len;
}

/*
 * "St12out_of_range" is std::out_of_range, "N2db5ErrorE" db::Error. What is not made of plain names
 * (templates) stays as the compiler wrote it; the mangled name is in the record's detail, too.
 */
static void word_type(struct raw_text *text, const char *s, size_t n)
{
	TEXT(out, 400);
	bool nested = n > 2 && s[0] == 'N' && s[n - 1] == 'E';
	size_t i = nested, end = n - nested;

	if (i + 2 < end && s[i] == 'S' && s[i + 1] == 't') {
		text_str(&out, "std::");
		i += 2;
	}
	for (bool first = true; i < end; first = false) {
		size_t len = 0;

		while (i < end && s[i] >= '0' && s[i] <= '9' && len < n)
			len = 10 * len + (size_t)(s[i++] - '0');
		if (!len || len > end - i || (!first && !nested)) {
			text_strn(text, s, n);
			return;
		}
		if (!first)
			text_str(&out, "::");
		text_strn(&out, s + i, len);
		i += len;
	}
	text_str(text, out.s);
}

struct wording {
	enum trc_failure_kind kind;
	struct raw_text text;
	char text_buf[700], detail[256];
	size_t detail_len;
};

/* What the thread itself wrote about its end; NULL: the thread is not known. */
static void word_end(struct wording *w, const struct shim_thread *t)
{
	TEXT(message, 300);

	if (t && said_glib(&message, t)) {
		text_str(&w->text, "aborted: ");
		text_str(&w->text, message.s);
	} else if (t && said_last(&message, t)) {
		text_str(&w->text, "aborted (SIGABRT), after it wrote `");
		text_str(&w->text, message.s);
		text_str(&w->text, "'");
	} else {
		text_str(&w->text, "aborted (SIGABRT)");
	}
}

static void word_failure(struct wording *w, const struct shim_fault *f, const struct shim_thread *t)
{
	TEXT(message, 300);

	w->kind = TRC_FAIL_SIGNAL;
	w->text = (struct raw_text){ w->text_buf, 0, sizeof w->text_buf };
	w->detail_len = 0;
	if (f->signal == SIGTRAP && t && said_glib(&message, t)) {
		text_str(&w->text, "trap (SIGTRAP): ");
		text_str(&w->text, message.s);
	} else if (f->signal != SIGABRT || f->code != SI_TKILL) {
		word_signal(&w->text, f);
	} else if ((w->detail_len = exception_name(w->detail, sizeof w->detail))) {
		w->kind = TRC_FAIL_EXCEPTION;
		text_str(&w->text, "uncaught exception of type ");
		word_type(&w->text, w->detail, w->detail_len);
		if (t && said_what(&message, t)) {
			text_str(&w->text, ": ");
			text_str(&w->text, message.s);
		}
	} else {
		w->kind = TRC_FAIL_ABORT;
		w->detail_len = abort_message(w->detail, sizeof w->detail);
		if (!w->detail_len)
			word_end(w, t);
		else
			text_str(&w->text, "aborted: ");
		text_strn(&w->text, w->detail, w->detail_len);
	}
}

void shim_failure_signal(struct shim_thread *t, const struct shim_fault *f,
			 const uint64_t regs[TRC_NREGS])
{
	struct wording w;

	word_failure(&w, f, t);
	shim_failure(w.kind, t, f, regs, w.text.s, w.detail, w.detail_len);
}

/* ---- signals that the program handles itself ---- */

/* Under the lock: what is to be said when it stands. */
static struct {
	const struct shim_thread *thread;
	enum trc_failure_kind kind;
	uint64_t regs[TRC_NREGS];
	char text[700];
} handled;

static void handle(struct shim_thread *t, const struct shim_fault *f, const uint64_t regs[TRC_NREGS], const struct wording *w)
{
	uint64_t saved;

	rec_lock(&saved);
	if (begin_failure(w->kind, t, f, regs, w->text.s, w->detail, w->detail_len)) {
		shim.in_handler = true;
		handled.thread = t;
		handled.kind = w->kind;
		memcpy(handled.regs, regs, sizeof handled.regs);
		memcpy(handled.text, w->text.s, w->text.n + 1);
	}
	rec_unlock(&saved);
}

void shim_failure_handled(struct shim_thread *t, const struct shim_fault *f, const uint64_t regs[TRC_NREGS])
{
	struct wording w;

	word_failure(&w, f, t);
	handle(t, f, regs, &w);
}

/* ---- Rust panics ---- */

/*
 * What Rust raises: the unwinder's header, a mark, and the fat pointer of the payload: its address, and a table of its
 * type's functions that begins with { drop, size, align }.
 */
enum { PANIC_PAYLOAD = 40, STR_SIZE = 16, STRING_SIZE = 24 };

/*
 * A payload is a &str (address, length) or a String (the same and a capacity, in whatever order): of its words the
 * address is the one that can be read, and the length the smallest of the others. Anything else has no text.
 */
static size_t panic_message(uint64_t exception, char *buf, size_t size)
{
	uint64_t fat[2] = { 0 }, type[3] = { 0 }, word[3] = { 0 }, len = UINT64_MAX, at = 0;
	char probe;

	if (raw_peek(fat, exception + PANIC_PAYLOAD, sizeof fat) != sizeof fat ||
	    raw_peek(type, fat[1], sizeof type) != sizeof type || (type[1] != STR_SIZE && type[1] != STRING_SIZE) ||
	    raw_peek(word, fat[0], type[1]) != type[1])
		return 0;
	for (unsigned i = 0; i < type[1] / sizeof *word; i++) {
		if (!at && word[i] >= 4096 && raw_peek(&probe, word[i], 1) == 1)
			at = word[i];
		else if (word[i] < len)
			len = word[i];
	}
	return at ? raw_peek(buf, at, len < size ? len : size) : 0;
}

void shim_failure_panic(struct shim_thread *t, const struct shim_fault *f,
			const uint64_t regs[TRC_NREGS], uint64_t exception)
{
	struct wording w = { .kind = TRC_FAIL_ASSERT };
	char message[300];
	size_t n = panic_message(exception, message, sizeof message);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)message[i] < ' ')
			message[i] = ' ';
	w.text = (struct raw_text){ w.text_buf, 0, sizeof w.text_buf };
	text_str(&w.text, n ? "panicked: " : "panicked");
	text_strn(&w.text, message, n);
	handle(t, f, regs, &w);
}

void shim_failure_withdraw(void)
{
	struct trc_withdrawn *r = rec_begin(&rec_process, sizeof *r);

	if (r) {
		r->tsc = raw_tsc();
		rec_commit(&rec_process, r, TRC_WITHDRAWN, 0, sizeof *r);
	}
	shim.failed = shim.deadlocked = shim.in_handler = false;
}

void shim_failure_settle(bool stands)
{
	uint64_t saved;

	if (!shim.in_handler || shim.state != SHIM_RECORDING)
		return;
	rec_lock(&saved);
	if (shim.in_handler && stands) {
		shim.in_handler = false;
		csched_at_failure(handled.kind, handled.regs);
		complete(handled.thread, handled.text);
	} else if (shim.in_handler) {
		shim_failure_withdraw();
	}
	rec_unlock(&saved);
}
