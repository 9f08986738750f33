/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb's remote protocol in front of a recorded run. Each kind of packet is a row of a table. The past cannot be
 * changed: what would write answers with an error and the reason.
 */
#include "analyzer/debug/stub.h"

#include "analyzer/debug/monitor.h"
#include "analyzer/debug/packet.h"
#include "analyzer/debug/registers.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_MAX (PACKET_MAX / 2 - 8) /* bytes that fit into an answer */
#define UNCHANGING "E.the recorded run cannot be changed; use 'replay --native --gdb' to run the program itself"

struct stub {
	struct dbg *d;
	struct packets p;
	const struct stub_help *help;
	uint32_t general, running; /* threads that Hg and Hc chose; NO: whoever stands there */
	bool leaves;
};

#define NO UINT32_MAX

static void answer(struct stub *s, const char *text)
{
	packet_send(&s->p, text, strlen(text));
}

static void answer_buf(struct stub *s, struct strbuf *b)
{
	packet_send(&s->p, b->s ? b->s : "", b->n);
	strbuf_free(b);
}


/* gdb's thread numbers begin at 1. */
static uint32_t current(const struct stub *s, uint32_t chosen)
{
	struct dbg_stop at;

	if (chosen != NO && mach_thread_alive(s->d->run, chosen))
		return chosen;
	dbg_where(s->d, &at);
	return at.thread;
}

static uint32_t parse_thread(const struct stub *s, const char *text)
{
	unsigned long id;

	if (*text == 'p') { /* pPID.TID */
		text = strchr(text, '.');
		if (!text++)
			return NO;
	}
	if (*text == '-')
		return NO;
	id = strtoul(text, NULL, 16);
	return id && id <= mach_thread_count(s->d->run) ? (uint32_t)(id - 1) : NO;
}

/* ---- stops ---- */

static void stop_reply(struct stub *s, const struct dbg_stop *at)
{
	const struct trc_failure *f = s->d->t->failure;
	struct strbuf b = { 0 };
	int sig = at->reason == DBG_JUMPED ? 0 : SIGTRAP;

	s->general = s->running = at->thread;
	if (at->reason == DBG_FAILURE && f)
		sig = f->signal ? f->signal : SIGABRT;
	if (at->reason == DBG_INTERRUPTED)
		sig = SIGINT;
	/* gdb counts signals in its own way; these are alike in both. */
	if (sig && sig != SIGTRAP && sig != SIGINT && sig != SIGABRT && sig != SIGSEGV && sig != SIGFPE && sig != SIGILL)
		sig = sig == SIGBUS ? 10 : SIGABRT;
	strbuf_fmt(&b, "T%02xthread:%x;", sig, at->thread + 1);
	registers_expedited(s->d->run, at->thread, &b);
	if (at->reason == DBG_BREAKPOINT)
		strbuf_str(&b, "swbreak:;");
	if (at->reason == DBG_WATCHPOINT)
		strbuf_fmt(&b, "%s:%" PRIx64 ";", at->how == MACH_WRITE ? "watch" :
			   at->how == MACH_READ ? "rwatch" : "awatch", at->address);
	if (at->reason == DBG_BEGIN || at->reason == DBG_END)
		strbuf_fmt(&b, "replaylog:%s;", at->reason == DBG_BEGIN ? "begin" : "end");
	answer_buf(s, &b);
}

static void on_why(struct stub *s, const char *body)
{
	struct dbg_stop at;

	(void)body;
	dbg_where(s->d, &at);
	if (at.reason == DBG_END)
		at.reason = DBG_STEPPED;
	stop_reply(s, &at);
}

static void move(struct stub *s, bool step, bool back, uint32_t thread)
{
	struct dbg_stop at;
	err_t e = step ? dbg_step(s->d, thread, back, &at) : dbg_continue(s->d, back, &at);

	if (e) {
		fprintf(stderr, "csched debug: %s\n", e->msg);
		err_free(e);
		dbg_where(s->d, &at);
	}
	stop_reply(s, &at);
}

static void on_continue(struct stub *s, const char *body)
{
	(void)body;
	move(s, false, false, NO);
}

static void on_step(struct stub *s, const char *body)
{
	(void)body;
	move(s, true, false, current(s, s->running));
}

static void on_back(struct stub *s, const char *body)
{
	move(s, body[1] == 's', true, current(s, s->running));
}

/* vCont;s:p1.2;c : the first action that steps says which thread; the others go with it. */
static void on_vcont(struct stub *s, const char *body)
{
	const char *step = strstr(body, ";s");

	if (!strcmp(body, "vCont?")) {
		answer(s, "vCont;c;C;s;S");
		return;
	}
	if (!step)
		step = strstr(body, ";S");
	if (!step) {
		move(s, false, false, NO);
		return;
	}
	const char *colon = step + 2 + strcspn(step + 2, ":;");
	uint32_t thread = *colon == ':' ? parse_thread(s, colon + 1) : NO;

	move(s, true, false, current(s, thread == NO ? s->running : thread));
}

/* ---- registers and memory ---- */

static void on_registers(struct stub *s, const char *body)
{
	struct strbuf b = { 0 };

	(void)body;
	if (registers_all(s->d->run, current(s, s->general), &b))
		answer_buf(s, &b);
	else
		answer(s, "E01");
}

static void on_register(struct stub *s, const char *body)
{
	struct strbuf b = { 0 };

	if (registers_one(s->d->run, current(s, s->general), (unsigned)strtoul(body + 1, NULL, 16), &b))
		answer_buf(s, &b);
	else
		answer(s, "E01");
}

/* As much of it as is mapped. */
static void on_memory(struct stub *s, const char *body)
{
	char *end;
	uint64_t address = strtoull(body + 1, &end, 16), n = *end == ',' ? strtoull(end + 1, NULL, 16) : 0;
	uint8_t *bytes;
	struct strbuf b = { 0 };

	if (n > MEMORY_MAX)
		n = MEMORY_MAX;
	bytes = xmalloc(n + 1);
	while (n && !mach_read(s->d->run, address, bytes, n)) {
		/* Down to the last page that is there. */
		uint64_t past = (address + n - 1) & 4095;

		n = past + 1 < n ? n - past - 1 : 0;
	}
	if (n) {
		packet_hex(&b, bytes, n);
		answer_buf(s, &b);
	} else {
		answer(s, "E14");
	}
	free(bytes);
}

static void on_write(struct stub *s, const char *body)
{
	(void)body;
	answer(s, UNCHANGING);
}

/* Z0,ADDRESS,KIND  z2,ADDRESS,SIZE */
static void on_point(struct stub *s, const char *body)
{
	bool set = *body == 'Z';
	char *end;
	uint64_t address, size;

	if (body[1] < '0' || body[1] > '4' || body[2] != ',') {
		answer(s, "");
		return;
	}
	address = strtoull(body + 3, &end, 16);
	size = *end == ',' ? strtoull(end + 1, NULL, 16) : 1;
	if (body[1] <= '1') {
		dbg_break(s->d, address, set);
	} else {
		struct mach_span span = { address, address + (size ? size : 1),
					  body[1] == '2' ? MACH_WRITE : body[1] == '3' ? MACH_READ :
					  MACH_READ | MACH_WRITE };

		if (span.hi < span.lo) {
			answer(s, "E22");
			return;
		}
		dbg_watch(s->d, span, set);
	}
	answer(s, "OK");
}

/* ---- threads ---- */

static void on_choose(struct stub *s, const char *body)
{
	*(body[1] == 'c' ? &s->running : &s->general) = parse_thread(s, body + 2);
	answer(s, "OK");
}

static void on_alive(struct stub *s, const char *body)
{
	uint32_t thread = parse_thread(s, body + 1);

	answer(s, thread != NO && mach_thread_alive(s->d->run, thread) ? "OK" : "E01");
}

static bool is_listed(const struct stub *s, uint32_t thread)
{
	struct dbg_stop at;

	dbg_where(s->d, &at);
	return mach_thread_alive(s->d->run, thread) || at.thread == thread;
}

static void thread_list(struct stub *s)
{
	struct strbuf b = { 0 };

	for (uint32_t i = 0; i < mach_thread_count(s->d->run); i++)
		if (is_listed(s, i))
			strbuf_fmt(&b, "%s%x", b.n ? "," : "m", i + 1);
	if (b.n < PACKET_MAX)
		answer_buf(s, &b);
	else
		answer(s, "l"); /* so many are read as qXfer:threads */
	strbuf_free(&b);
}

static void xml_text(struct strbuf *b, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '&' || c == '<' || c == '>' || c == '"' || c == '\'')
			strbuf_fmt(b, "&#%u;", c);
		else
			strbuf_char(b, c < 0x20 || c >= 0x7f ? '?' : (char)c);
	}
}

static void describe_threads(struct stub *s, struct strbuf *b)
{
	strbuf_str(b, "<?xml version=\"1.0\"?><threads>");
	for (uint32_t i = 0; i < mach_thread_count(s->d->run); i++) {
		const char *name = i < s->d->t->threads.n ? s->d->t->threads.v[i].name : NULL;

		if (!is_listed(s, i))
			continue;
		strbuf_fmt(b, "<thread id=\"%x\" name=\"%s%s", i + 1, trc_thread_id(s->d->t, i), name ? " " : "");
		xml_text(b, name ? name : "");
		strbuf_str(b, "\"/>");
	}
	strbuf_str(b, "</threads>");
}

/* ---- queries ---- */

/* qXfer:OBJECT:read:ANNEX:OFFSET,LENGTH */
static void on_transfer(struct stub *s, const char *body)
{
	const char *range = strrchr(body, ':');
	struct strbuf b = { 0 }, part = { 0 };
	uint64_t offset, n;
	char *end;

	if (!strncmp(body, "qXfer:features:read:target.xml:", 31))
		registers_describe(&b);
	else if (!strncmp(body, "qXfer:threads:read::", 20))
		describe_threads(s, &b);
	if (!b.n) {
		answer(s, "");
		return;
	}
	offset = strtoull(range + 1, &end, 16);
	n = *end == ',' ? strtoull(end + 1, NULL, 16) : 0;
	if (n > MEMORY_MAX)
		n = MEMORY_MAX;
	if (offset > b.n)
		offset = b.n;
	if (n > b.n - offset)
		n = b.n - offset;
	strbuf_char(&part, offset + n < b.n ? 'm' : 'l');
	strbuf_add(&part, b.s + offset, n);
	strbuf_free(&b);
	answer_buf(s, &part);
}

static void on_monitor(struct stub *s, const char *body)
{
	char line[512];
	size_t n = packet_unhex(body + 6, line, sizeof line - 1);
	struct strbuf text = { 0 }, b = { 0 };

	line[n] = 0;
	monitor_command(s->d, s->help, line, &text);
	/* In pieces that fit into a packet. */
	for (size_t at = 0; at < text.n; at += MEMORY_MAX) {
		strbuf_char(&b, 'O');
		packet_hex(&b, text.s + at, text.n - at < MEMORY_MAX ? text.n - at : MEMORY_MAX);
		answer_buf(s, &b);
	}
	strbuf_free(&text);
	answer(s, "OK");
}

static void on_supported(struct stub *s, const char *body)
{
	char text[256];

	(void)body;
	snprintf(text, sizeof text, "PacketSize=%x;qXfer:features:read+;qXfer:threads:read+;ReverseStep+;"
		 "ReverseContinue+;swbreak+;vContSupported+;QStartNoAckMode+", PACKET_MAX);
	answer(s, text);
}

static void on_no_ack(struct stub *s, const char *body)
{
	(void)body;
	answer(s, "OK");
	s->p.no_ack = true;
}

static void on_query_current(struct stub *s, const char *body)
{
	char text[32];

	(void)body;
	snprintf(text, sizeof text, "QC%x", current(s, NO) + 1);
	answer(s, text);
}

static void on_threads(struct stub *s, const char *body)
{
	(void)body;
	thread_list(s);
}

static void on_threads_over(struct stub *s, const char *body)
{
	(void)body;
	answer(s, "l");
}

/* gdb detaches at its end, and does not try to kill what it did not start. */
static void on_attached(struct stub *s, const char *body)
{
	(void)body;
	answer(s, "1");
}

static void on_symbols(struct stub *s, const char *body)
{
	(void)body;
	answer(s, "OK");
}

static void on_leave(struct stub *s, const char *body)
{
	if (*body != 'k')
		answer(s, "OK");
	s->leaves = true;
}

static void on_call_refused(struct stub *s, const char *body)
{
	(void)body;
	answer(s, "E.a recorded run cannot be restarted or ended; 'quit' or 'detach' leaves it");
}

static const struct row {
	const char *start;
	void (*serve)(struct stub *s, const char *body);
} rows[] = {
	{ "?", on_why },
	{ "qSupported", on_supported }, { "qXfer:", on_transfer }, { "qRcmd,", on_monitor },
	{ "qAttached", on_attached }, { "qSymbol", on_symbols }, { "qfThreadInfo", on_threads },
	{ "qsThreadInfo", on_threads_over }, { "QStartNoAckMode", on_no_ack },
	{ "vCont", on_vcont }, { "vKill", on_leave }, { "vRun", on_call_refused },
	{ "bc", on_back }, { "bs", on_back }, { "c", on_continue }, { "C", on_continue },
	{ "s", on_step }, { "S", on_step },
	{ "g", on_registers }, { "p", on_register }, { "m", on_memory },
	{ "G", on_write }, { "P", on_write }, { "M", on_write },
	{ "Z", on_point }, { "z", on_point },
	{ "H", on_choose }, { "T", on_alive }, { "D", on_leave }, { "k", on_leave },
};

static void serve(struct stub *s)
{
	const char *body = s->p.body;

	/* qC is the start of other queries. */
	if (!strcmp(body, "qC")) {
		on_query_current(s, body);
		return;
	}
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strncmp(body, rows[i].start, strlen(rows[i].start))) {
			rows[i].serve(s, body);
			return;
		}
	answer(s, ""); /* that is: not understood */
}

/* Whom the machine's progress callback asks; one client at a time. */
static struct stub *serving;

bool stub_interrupted(void *arg, uint64_t insns, double part)
{
	(void)arg;
	(void)insns;
	(void)part;
	if (serving && packet_interrupted(&serving->p))
		serving->d->interrupted = true;
	return serving && serving->d->interrupted;
}

void stub_serve(struct dbg *d, int fd, const struct stub_help *help)
{
	struct stub *s = xcalloc(1, sizeof *s);

	s->d = d;
	s->p.fd = fd;
	s->help = help;
	s->general = s->running = NO;
	serving = s;
	signal(SIGPIPE, SIG_IGN);
	while (!s->leaves && packet_read(&s->p))
		serve(s);
	serving = NULL;
	free(s);
}
