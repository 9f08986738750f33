/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands beyond gdb's own: a table of words. */
#include "analyzer/debug/monitor.h"

#include "analyzer/term.h"

#include <inttypes.h>
#include <string.h>

#define OUTPUT_MAX (256u << 10) /* bytes of the program's output that are shown: its end */

struct monitor {
	struct dbg *d;
	const struct stub_help *help;
	const char *rest; /* of the line */
	struct strbuf *out;
};

static void on_when(struct monitor *m)
{
	char *at = dbg_position(m->d);

	strbuf_fmt(m->out, "%s (instruction %" PRIu64 " of the %s's %" PRIu64 ")\n", at, m->d->now,
		   m->d->order ? "order" : "run", m->d->end);
	free(at);
}

static void complain(struct monitor *m, err_t e)
{
	strbuf_fmt(m->out, "%s\n", e->msg);
	err_free(e);
}

static void on_goto(struct monitor *m)
{
	struct dbg_place at;
	err_t e = dbg_parse(m->d, m->rest, &at);

	if (!e)
		e = dbg_go(m->d, at.time);
	if (e) {
		complain(m, e);
		return;
	}
	on_when(m);
	/* gdb does not know that the registers are others now. */
	strbuf_str(m->out, "Type 'maintenance flush register-cache' to see it (the command 'csched-goto' does both).\n");
}

static const struct dbg_event *events(struct monitor *m, size_t *n)
{
	if (!m->d->events.n && m->help && m->help->events)
		m->help->events(m->help->arg, m->d);
	*n = m->d->events.n;
	if (!*n)
		strbuf_str(m->out, "The report of this trace has no events.\n");
	return m->d->events.v;
}

static err_t find_event(struct monitor *m, const char *text, struct dbg_place *out)
{
	char *end;
	size_t n;
	const struct dbg_event *v = events(m, &n);
	unsigned long i = strtoul(text, &end, 10);

	if (*end || !i || i > n)
		return err_new(ERR_USAGE, "'%s' is no event: expected a number from 1 to %zu ('monitor event' lists them)", text, n);
	*out = v[i - 1].at;
	return NULL;
}

/* gdb asks for a step next, and is there. */
static void on_jump(struct monitor *m)
{
	struct dbg_place at;
	bool event = *m->rest == '#';
	err_t e = event ? find_event(m, m->rest + 1, &at) : dbg_parse(m->d, m->rest, &at);

	m->d->jumps = true;
	m->d->jump = e ? (struct dbg_place){ m->d->now, UINT32_MAX } : at; /* the step that comes moves nothing */
	if (e)
		complain(m, e);
}

static void on_event(struct monitor *m)
{
	struct dbg_place at;
	size_t n;
	const struct dbg_event *v;

	if (!*m->rest) {
		v = events(m, &n);
		for (size_t i = 0; i < n; i++)
			strbuf_fmt(m->out, "%zu: %s\n", i + 1, v[i].text);
		return;
	}
	err_t e = find_event(m, m->rest, &at);
	if (!e)
		e = dbg_go(m->d, at.time);
	if (e)
		complain(m, e);
	else
		on_when(m);
}

static void on_mark(struct monitor *m)
{
	if (*m->rest) {
		dbg_mark(m->d, m->rest);
		on_when(m);
		return;
	}
	for (size_t i = 0; i < m->d->marks.n; i++)
		strbuf_fmt(m->out, "%s: instruction %" PRIu64 " of the run\n", m->d->marks.v[i].name,
			   m->d->marks.v[i].time);
	if (!m->d->marks.n)
		strbuf_str(m->out, "There are no marks; 'monitor mark NAME' makes one.\n");
}

static void on_explain(struct monitor *m)
{
	char *text = m->help && m->help->explain ? m->help->explain(m->help->arg) : NULL;

	strbuf_str(m->out, text && *text ? text : "There is no report for this trace.\n");
	free(text);
}

/* ---- what the program had printed ---- */

struct printed {
	struct monitor *m;
	struct strbuf text;
};

#define SYS_WRITE 1
#define SYS_WRITEV 20

static void add_bytes(struct printed *p, uint64_t address, uint64_t n)
{
	uint8_t piece[4096];

	while (n) {
		size_t k = n < sizeof piece ? n : sizeof piece;

		if (!mach_read(p->m->d->run, address, piece, k))
			return;
		strbuf_add(&p->text, piece, k);
		address += k;
		n -= k;
	}
	if (p->text.n > 2 * OUTPUT_MAX) { /* only its end is shown */
		memmove(p->text.s, p->text.s + p->text.n - OUTPUT_MAX, OUTPUT_MAX);
		p->text.n = OUTPUT_MAX;
	}
}

static void on_syscall(void *arg, uint32_t thread, const struct trc_enter *enter, const struct trc_leave *leave)
{
	struct printed *p = arg;
	uint64_t left;

	(void)thread;
	if (!leave || leave->result <= 0 || (enter->args[0] != 1 && enter->args[0] != 2))
		return;
	left = (uint64_t)leave->result;
	if (enter->rec.flags == SYS_WRITE)
		add_bytes(p, enter->args[1], left);
	for (uint64_t i = 0; enter->rec.flags == SYS_WRITEV && i < enter->args[2] && i < 1024 && left; i++) {
		uint64_t v[2];

		if (!mach_read(p->m->d->run, enter->args[1] + 16 * i, v, sizeof v))
			return;
		if (v[1] > left)
			v[1] = left;
		add_bytes(p, v[0], v[1]);
		left -= v[1];
	}
}

static bool is_far_enough(void *arg)
{
	struct printed *p = arg;

	return mach_time(p->m->d->run) >= p->m->d->now;
}

static void on_output(struct monitor *m)
{
	struct printed p = { .m = m };
	const struct mach_hooks hooks = { .arg = &p, .syscall = on_syscall, .stop = is_far_enough,
					  .symbols_from = UINT64_MAX };
	err_t e = mach_again(m->d->run, 0, &hooks, NULL);

	if (!e)
		e = dbg_go(m->d, m->d->now);
	/* Every byte of it is the program's: lines stay lines, the rest is made harmless. */
	for (size_t at = 0; at < p.text.n;) {
		size_t n = strcspn(p.text.s + at, "\n");

		n = n < p.text.n - at ? n : p.text.n - at;
		term_text(m->out, p.text.s + at, n);
		strbuf_char(m->out, '\n');
		at += n + 1;
	}
	if (!p.text.n)
		strbuf_str(m->out, "The program had printed nothing by then.\n");
	if (e)
		strbuf_fmt(m->out, "%s\n", e->msg);
	err_free(e);
	strbuf_free(&p.text);
}

static void on_help(struct monitor *m);

static const struct word {
	const char *name, *arg, *help;
	void (*run)(struct monitor *m);
} words[] = {
	{ "when", "", "the position: THREAD:N, that thread having executed N instructions", on_when },
	{ "goto", " POSITION", "go to THREAD:N, 'begin', 'end' or a mark", on_goto },
	{ "mark", " [NAME]", "remember this position; without a name, list them", on_mark },
	{ "jump", " POSITION", "be at a position, or at event #N, after the next step: what csched-goto and csched-event use", on_jump },
	{ "event", " [N]", "go to the N-th event of the report; without a number, list them", on_event },
	{ "explain", "", "print what csched explain says about the run", on_explain },
	{ "output", "", "what the program had printed by now", on_output },
	{ "help", "", "this list", on_help },
};

static void on_help(struct monitor *m)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		strbuf_fmt(m->out, "monitor %s%s -- %s\n", words[i].name, words[i].arg, words[i].help);
}

void monitor_command(struct dbg *d, const struct stub_help *help, const char *line, struct strbuf *out)
{
	struct monitor m = { .d = d, .help = help, .out = out };
	size_t n = strcspn(line, " ");

	m.rest = line + n + strspn(line + n, " ");
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i].name) == n && !memcmp(words[i].name, line, n)) {
			words[i].run(&m);
			return;
		}
	strbuf_str(out, "csched does not know that; it knows:\n");
	on_help(&m);
}
