#include "analyzer/report/internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const executors[REPORT_EXECUTORS] = {
	[REPORT_CHECKER] = "checker", [REPORT_MACHINE] = "machine", [REPORT_NATIVE] = "native",
};

const char *rep_executor(enum report_executor x)
{
	return executors[x];
}

/* ---- values ---- */

static bool type_has(const struct sym_var *var, const char *word)
{
	return var && var->type && strstr(var->type, word);
}

static bool is_unsigned(const struct sym_var *var)
{
	return type_has(var, "unsigned") || type_has(var, "uint") || type_has(var, "size_t") ||
	       (var && var->type && var->type[0] == 'u' && (isdigit((unsigned char)var->type[1]) || !strcmp(var->type, "usize")));
}

/*
 * Bits of the value. A location that others touch with wider accesses is wider than
 * the variable that it begins with and is named after.
 */
static unsigned value_bits(const struct sym_var *var)
{
	static const struct {
		const char *type;
		unsigned bits;
	} small[] = {
		{ "int", 32 },   { "unsigned int", 32 },   { "uint32_t", 32 },      { "int32_t", 32 },
		{ "short", 16 }, { "unsigned short", 16 }, { "short int", 16 },     { "bool", 8 },
		{ "u8", 8 }, { "i8", 8 }, { "u16", 16 }, { "i16", 16 }, { "u32", 32 }, { "i32", 32 }, /* Rust */
		{ "_Bool", 8 },  { "char", 8 },            { "unsigned char", 8 },  { "uint8_t", 8 },
	};
	unsigned width = var && var->width >= 1 && var->width <= 64 ? var->width : 64;

	for (size_t i = 0; var && var->type && i < sizeof small / sizeof *small; i++)
		if (!strcmp(var->type, small[i].type) && small[i].bits < width)
			return small[i].bits;
	return width;
}

/* The constant, or the flags that make up the value. False: it is neither. */
static bool enum_text(const char *names, uint64_t value, char *buf, size_t size)
{
	uint64_t left = value;
	size_t n = 0;

	buf[0] = '\0';
	for (const char *s = names; s && *s; s += strcspn(s, " "), s += *s == ' ') {
		size_t len = strcspn(s, "=");
		uint64_t one = strtoull(s + len + (s[len] == '='), NULL, 10);

		if (one == value) {
			snprintf(buf, size, "%.*s", (int)len, s);
			return true;
		}
		if (!one || (one & (one - 1)) || !(left & one) || n + len + 2 > size)
			continue;
		n += (size_t)snprintf(buf + n, size - n, "%s%.*s", n ? "|" : "", (int)len, s);
		left &= ~one;
	}
	return n && !left;
}

void rep_value(const struct report *r, const struct sym_var *var, uint64_t value, char *buf,
	       size_t size)
{
	unsigned width = value_bits(var);

	value >>= var && var->below < 64 ? var->below : 0;
	int64_t sign = (int64_t)(value << (64 - width)) >> (64 - width);

	value = value << (64 - width) >> (64 - width);

	if (r->format_value && r->format_value(r->format_arg, var, value, buf, size))
		return;
	if (var && enum_text(sym_enum_names(r->trace, var->type), value, buf, size))
		return;
	if (type_has(var, "*"))
		snprintf(buf, size, value ? "0x%" PRIx64 : "NULL", value);
	else if ((type_has(var, "bool") || type_has(var, "_Bool")) && value <= 1)
		snprintf(buf, size, "%s", value ? "true" : "false");
	else if (var && var->type && is_unsigned(var) && value <= UINT32_MAX)
		snprintf(buf, size, "%" PRIu64, value);
	else if (sign >= INT32_MIN && sign <= INT32_MAX && (!is_unsigned(var) || sign >= 0))
		snprintf(buf, size, "%" PRId64, sign);
	else if (var && var->width == EXPR_INT)
		snprintf(buf, size, "%" PRId64, (int64_t)value);
	else
		snprintf(buf, size, "0x%" PRIx64, value);
}

void rep_event_value(const struct report *r, const struct sym_event *e, uint64_t value, char *buf,
		     size_t size)
{
	rep_value(r, e->target < r->trace->nvars ? &r->trace->vars[e->target] : NULL, value, buf,
		  size);
}

/* ---- events ---- */

static char *source_of(const struct report *r, const struct sym_frame *f)
{
	const char *line = NULL;
	size_t n;

	if (r->source_line && f && rep_frame_file(f) && f->line)
		line = r->source_line(r->source_arg, f->file, f->line);
	if (!line)
		return NULL;
	line += strspn(line, " \t\r");
	n = strlen(line);
	while (n && strchr(" \t\r\n", line[n - 1]))
		n--;
	if (!n)
		return NULL;
	char *copy = xasprintf("%.*s", (int)(n > 400 ? 400 : n), line);

	/* Alignment of comments would only tear a column apart. */
	char *to = copy;

	for (const char *c = copy; *c; c++) {
		bool blank = *c == ' ' || *c == '\t';

		if (!blank || to == copy || to[-1] != ' ')
			*to++ = blank ? ' ' : *c;
	}
	*to = 0;
	return copy;
}

void rep_view(const struct report *r, const struct sched_order *o, struct sched_ref ref,
	      struct rep_view *v)
{
	const struct sym_trace *t = r->trace;
	uint64_t value;
	char buf[128];

	v->e = order_event_at(t, ref);
	v->place = dsp_place(t, v->e);
	v->thread = t->threads[ref.thread].id;
	v->verb = dsp_verb(v->e->op);
	v->subject = dsp_subject(t, v->e);
	v->via = dsp_via(t, v->e);
	v->where = dsp_where(t, ref);
	v->value = NULL;
	v->source = source_of(r, v->place);
	if (!r->redact && o && order_value(t, o, ref, &value)) {
		rep_event_value(r, v->e, value, buf, sizeof buf);
		v->value = xstrdup(buf);
	}
}

void rep_view_shown(const struct report *r, enum dsp_which w, const struct dsp_event *e,
		    struct rep_view *v)
{
	rep_view(r, e->has_value ? rep_order(r, w) : NULL, e->ref, v);
}

void rep_view_free(struct rep_view *v)
{
	free(v->via);
	free(v->where);
	free(v->value);
	free(v->source);
}

bool rep_same_line(const struct report *r, struct sched_ref a, struct sched_ref b)
{
	const struct sym_frame *x = dsp_place(r->trace, order_event_at(r->trace, a));
	const struct sym_frame *y = dsp_place(r->trace, order_event_at(r->trace, b));

	return a.thread == b.thread && x && y && x->file && y->file && x->line == y->line &&
	       !strcmp(x->file, y->file);
}

/* What happens at the failure point, in words, on either side. */
static void failure_action(struct strbuf *b, const struct report *r, const struct dsp_event *e,
			   enum dsp_which w)
{
	static const char *const fails[SYM_FAIL_KINDS] = {
		[SYM_FAIL_ASSERT] = "assertion fails", [SYM_FAIL_ABORT] = "aborts",
		[SYM_FAIL_SIGNAL] = "crashes", [SYM_FAIL_EXCEPTION] = "throws",
		[SYM_FAIL_DEADLOCK] = "waits for ever", [SYM_FAIL_HANG] = "hangs",
		[SYM_FAIL_EXIT] = "exits", [SYM_FAIL_USER] = "fails",
	};
	const char *text = r->trace->failure.text;
	bool panic = text && !strncmp(text, "panicked", 8);
	bool assertion = r->trace->failure.kind == SYM_FAIL_ASSERT && !panic;
	/* It went another way: whether it comes by this point, and how often, is not in the symbolic trace. */
	bool passed = r->alternate_proof.by[REPORT_MACHINE].agreed > 0;

	char buf[16];
	const char *signal = r->trace->failure.kind == SYM_FAIL_SIGNAL ? rep_signal(r, buf) : NULL;

	if (w == DSP_FAILING)
		strbuf_str(b, signal ? signal : panic ? "panics" : fails[r->trace->failure.kind % SYM_FAIL_KINDS]);
	else if (e->executed)
		strbuf_str(b, assertion ? "assertion holds" : "does not fail");
	else
		strbuf_str(b, passed ? "does not fail" : "is not reached");
}

void rep_action(struct strbuf *b, const struct report *r, const struct dsp_event *e,
		const struct rep_view *v, enum dsp_which w)
{
	if (v->e->op == SYM_FAIL) {
		failure_action(b, r, e, w);
		return;
	}
	if (v->via)
		strbuf_fmt(b, "%s() ", v->via);
	strbuf_str(b, v->verb);
	if (*v->subject)
		strbuf_fmt(b, " %s", v->subject);
	if (v->value && e->executed)
		strbuf_fmt(b, " = %s", v->value);
	if (e->buffered)
		strbuf_str(b, ", seen only now");
	if (e->executed)
		return;
	if (w == DSP_ALTERNATE)
		strbuf_str(b, r->answer->alternates[0].path_differs ? ": not reached" : ": later");
	else if (!e->failure)
		strbuf_str(b, ": not yet");
	else
		strbuf_str(b, strncmp(v->verb, "waits", 5) ? ": waits for ever" : " for ever");
}

/* ---- sentences ---- */

static void blocked_words(struct strbuf *b, const struct report *r)
{
	const struct sym_trace *t = r->trace;

	for (size_t i = 0; i < t->failure.nblocked && i < 4; i++) {
		struct sched_ref ref = {t->failure.blocked[i].thread, t->failure.blocked[i].event};
		const struct sym_event *e = order_event_at(t, ref);
		char *where;

		if (!e)
			continue;
		where = dsp_where(t, ref);
		strbuf_fmt(b, "%s %s waits for `%s' at %s", i ? "," : ":",
			   t->threads[ref.thread].id, dsp_subject(t, e), where);
		free(where);
	}
	if (t->failure.nblocked > 4)
		strbuf_fmt(b, ", and %zu more", t->failure.nblocked - 4);
}

/* What the program itself wrote (an assertion's text) stays: it is source. */
char *report_hidden_text(enum sym_failure_kind kind, const char *text)
{
	struct strbuf b = { 0 };

	/* What csched_fail() was given may quote the program's memory. */
	if (kind == SYM_FAIL_USER)
		return xstrdup("the program's own failure (its text is left out)");
	if (kind != SYM_FAIL_SIGNAL && kind != SYM_FAIL_DEADLOCK && kind != SYM_FAIL_HANG)
		return xstrdup(text);
	while (*text) {
		if (strncmp(text, "0x", 2)) {
			strbuf_char(&b, *text++);
			continue;
		}
		strbuf_str(&b, "0x...");
		text += 2 + strspn(text + 2, "0123456789abcdef");
	}
	return strbuf_take(&b);
}

char *rep_failure_text(const struct report *r)
{
	const char *text = r->failure.text;

	if (!text)
		return NULL;
	return r->redact ? report_hidden_text(r->trace->failure.kind, text) : xstrdup(text);
}

const char *rep_confidence_name(enum report_confidence c)
{
	static const char *const names[] = {
		[REPORT_NO_ANSWER] = "none", [REPORT_UNCONFIRMED] = "unconfirmed", [REPORT_ALWAYS] = "always",
		[REPORT_CONFIRMED] = "confirmed", [REPORT_PROVED] = "proved",
	};

	return names[c];
}

char *rep_confidence(const struct report *r)
{
	static const char *const words[] = {
		[REPORT_NO_ANSWER] = "no cause found", [REPORT_UNCONFIRMED] = "unconfirmed",
		[REPORT_ALWAYS] = "fails in every order tried", [REPORT_CONFIRMED] = "confirmed by execution",
		[REPORT_PROVED] = "proved",
	};
	const char *word = r->confidence == REPORT_ALWAYS && r->dsp->deterministic ? "fails in every order" :
										    words[r->confidence];

	if (!r->answer->found || (r->confidence == REPORT_NO_ANSWER && !r->confidence_text))
		return NULL;
	if (!r->confidence_text)
		return xasprintf("Confidence: %s.", word);
	return xasprintf("Confidence: %s. %c%s.", word, toupper((unsigned char)r->confidence_text[0]),
			 r->confidence_text + 1);
}

const char *rep_because(const struct report *r)
{
	return r->confidence == REPORT_UNCONFIRMED ? "It may fail because" : "It fails because";
}

char *rep_headline(const struct report *r)
{
	static const char *const kinds[SYM_FAIL_KINDS] = {
		[SYM_FAIL_ASSERT] = "assertion failed", [SYM_FAIL_ABORT] = "aborted",
		[SYM_FAIL_SIGNAL] = "killed by a signal",
		[SYM_FAIL_EXCEPTION] = "uncaught exception", [SYM_FAIL_DEADLOCK] = "deadlock",
		[SYM_FAIL_HANG] = "hangs", [SYM_FAIL_EXIT] = "wrong exit status",
		[SYM_FAIL_USER] = "marked as failed",
	};
	const struct sym_failure *f = &r->trace->failure;
	struct strbuf b = { 0 };
	struct sched_ref ref;
	char *said = rep_failure_text(r);
	const char *text = said && *said ? said :
			   r->failure.signal ? r->failure.signal :
			   (unsigned)f->kind < SYM_FAIL_KINDS ? kinds[f->kind] : "failed";

	/* Who waits for what is said below, in names; what a signal is about comes behind its place. */
	bool about = !f->nblocked && f->kind == SYM_FAIL_SIGNAL && strstr(text, ": ");
	size_t first = f->nblocked || about ? strcspn(text, ":") : strlen(text);

	strbuf_fmt(&b, "%.*s", (int)first, text);
	if (f->nblocked) {
		blocked_words(&b, r);
	} else if (rep_failure_ref(r, &ref)) {
		const struct sym_frame *place = dsp_place(r->trace, order_event_at(r->trace, ref));
		char *where = dsp_where(r->trace, ref);

		strbuf_fmt(&b, " in %s", r->trace->threads[ref.thread].id);
		/* Some failures name their place themselves. */
		if (place && (place->file || strcmp(place->function, "?")) && !strstr(text, where))
			strbuf_fmt(&b, " at %s", where);
		if (place && rep_frame_file(place) && place->line)
			strbuf_fmt(&b, " (%s)", place->function);
		free(where);
	}
	if (about)
		strbuf_str(&b, text + first);
	free(said);
	return strbuf_take(&b);
}

const char *rep_title(const struct report *r, enum dsp_which w)
{
	const struct report_validation *v = &r->alternate_proof;

	if (w == DSP_FAILING)
		return "The failing order";
	if (!report_validated(v))
		return "An order without the cause (not confirmed)";
	return v->by[REPORT_MACHINE].fails_later ? "An order that avoids this failure" :
						   "A passing order";
}

char *rep_verdict(const struct report *r, enum dsp_which w)
{
	static const char *const by[REPORT_EXECUTORS] = {
		[REPORT_CHECKER] = "the model", [REPORT_MACHINE] = "replay",
		[REPORT_NATIVE] = "the real program",
	};
	const struct report_validation *v =
		w == DSP_FAILING ? &r->failing_proof : &r->alternate_proof;
	struct strbuf yes = { 0 }, no = { 0 };

	for (int x = 0; x < REPORT_EXECUTORS; x++) {
		const struct report_proof *p = &v->by[x];
		struct strbuf *b = p->agreed ? &yes : &no;

		if (!p->runs && p->why && strcmp(p->why, REP_NOT_ATTEMPTED))
			strbuf_fmt(&no, "%s%s: %s", no.n ? "; " : "", by[x], p->why);
		if (!p->runs)
			continue;
		strbuf_fmt(b, "%s%s", b->n ? " and " : p->agreed ? "verified by " : "not by ", by[x]);
		/* Of a single run that went elsewhere it is told where; that may be an address. */
		bool told = p->runs == 1 && !p->agreed && p->why && !r->redact;
		if (p->runs > 1 || (!p->agreed && !told))
			strbuf_fmt(b, " (%u of %u runs)", p->agreed, p->runs);
		if ((p->fails_later && p->why) || told)
			strbuf_fmt(b, " (%s)", p->why);
	}
	if (!yes.n)
		strbuf_str(&yes, "not verified by an execution");
	if (no.n)
		strbuf_fmt(&yes, "; %s", no.s);
	strbuf_free(&no);
	return strbuf_take(&yes);
}

char *rep_position(const struct report *r, struct sched_ref ref)
{
	uint64_t insns;

	if (!r->position || ref.thread >= r->trace->nthreads ||
	    !r->position(r->position_arg, ref.thread, ref.index, &insns))
		return NULL;
	return xasprintf("%s:%" PRIu64, r->trace->threads[ref.thread].id, insns);
}

const char *rep_advice_heading(const struct dsp *d)
{
	if (d->hint.trial.verdict == DSP_HOLDS)
		return "Suggested fix, tried on the program";
	return dsp_is_refuted(&d->hint) ? "Advice that was tried and did not help" : "Suggested fix";
}

const char *rep_second_advice(const struct dsp_hint *h)
{
	return dsp_is_refuted(h) ? "Tried without success: " : "Or: ";
}
