/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads stacks line by line. The formats are told apart by how a frame begins; what follows the function's
 * name (a source line, a module) is looked for in any order, because versions differ in it.
 */
#include "analyzer/testgen/stack.h"

#include "common/pack.h"

#include <ctype.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *stack_kind_name(enum stack_kind k)
{
	static const char *const names[STACK_KINDS] = { "unknown", "crash", "abort", "arithmetic", "deadlock", "use-after-free",
							"overrun", "data race" };

	return names[k];
}

static char *part(const char *s, size_t n)
{
	char *p = xmalloc(n + 1);

	memcpy(p, s, n);
	p[n] = 0;
	return p;
}

static bool hex(const char **p, uint64_t *out)
{
	char *end;

	if ((*p)[0] != '0' || (*p)[1] != 'x' || !isxdigit((unsigned char)(*p)[2]))
		return false;
	*out = strtoull(*p, &end, 16);
	*p = end;
	return true;
}

static const char *blanks(const char *p)
{
	return p + strspn(p, " \t");
}

/* ---- what stands behind a function's name ---- */

/* The length of a function's name: it ends at a blank or a parenthesis outside <> and outside operator(). */
static size_t name_length(const char *p)
{
	int depth = 0;
	size_t i;

	for (i = 0; p[i]; i++) {
		if (p[i] == '<' && i && p[i - 1] != '-')
			depth++;
		else if (p[i] == '>' && depth)
			depth--;
		else if (!depth && !strncmp(p + i, "(anonymous namespace)", 21))
			i += 20;
		else if (!depth && !strncmp(p + i, "operator()", 10))
			i += 9;
		else if (!depth && (p[i] == ' ' || p[i] == '(' || p[i] == '\t'))
			break;
	}
	return i;
}

/* FILE:LINE or FILE:LINE:COLUMN at the end of a word. */
static bool source_in(const char *word, size_t n, struct stack_frame *f)
{
	size_t end = n, digits;
	unsigned line = 0;

	for (int round = 0; round < 2; round++) {
		for (digits = end; digits && isdigit((unsigned char)word[digits - 1]); digits--)
			;
		if (digits == end || !digits || word[digits - 1] != ':')
			break;
		line = (unsigned)strtoul(word + digits, NULL, 10);
		end = digits - 1;
	}
	if (end == n || !end || !line || f->file)
		return false;
	f->file = part(word, end);
	f->line = line;
	return true;
}

/* "MODULE+0xOFFSET", or "MODULE + 0xOFFSET" without the blanks. */
static bool module_in(const char *word, size_t n, struct stack_frame *f)
{
	for (size_t i = n; i-- > 1;)
		if (word[i] == '+' && word[i + 1] == '0' && word[i + 2] == 'x') {
			f->module = part(word, i);
			f->offset = strtoull(word + i + 1, NULL, 16);
			f->has_offset = true;
			return true;
		}
	return false;
}

static void location(const char *p, struct stack_frame *f)
{
	while (*(p = blanks(p))) {
		if (!strncmp(p, "at ", 3) || !strncmp(p, "from ", 5) || !strncmp(p, "- ", 2) || !strncmp(p, "in ", 3)) {
			bool source = p[0] == 'a';
			p = blanks(strchr(p, ' '));
			size_t n = strcspn(p, " \t)");
			if (!source_in(p, n, f) && !source && n && !f->module)
				f->module = part(p, n);
			p += n;
			continue;
		}
		bool inside = *p == '(';
		p += inside;
		if (inside && (!strncmp(p, "in ", 3) || !strncmp(p, "BuildId", 7))) {
			bool module = *p == 'i';
			p = blanks(p + strcspn(p, " "));
			size_t n = strcspn(p, ")");
			if (module && !f->module)
				f->module = part(p, n);
			p += n + (p[n] == ')');
			continue;
		}
		size_t n = strcspn(p, inside ? ")" : " \t)");
		char joined[STACK_LINE];
		size_t k = 0;
		for (size_t i = 0; i < n && k < sizeof joined - 1; i++)
			if (p[i] != ' ')
				joined[k++] = p[i];
		joined[k] = 0;
		if (!source_in(joined, k, f) && !f->module)
			module_in(joined, k, f);
		p += n;
		p += *p == ')';
	}
}

/* Skips the values of a frame's parameters: "(f=0x0, level=2)". */
static const char *past_arguments(const char *p)
{
	int depth = 0;

	p = blanks(p);
	if (*p != '(')
		return p;
	/* What looks like a place is none: "(logger.c:44)", "(lib.so+0x12)", "(in /lib.so)", "(lib.so + 0x12)". */
	size_t n = strcspn(p, ")");
	bool place = !strncmp(p, "(in ", 4) || memmem(p, n, "+0x", 3) || memmem(p, n, " + 0x", 5);
	for (size_t i = 1; i + 1 < n && !place; i++)
		place = p[i] == ':' && isdigit((unsigned char)p[i + 1]) && !memchr(p, '=', n) && !memchr(p, ',', n) &&
			p[i - 1] != ':';
	if (place)
		return p;
	for (; *p; p++) {
		depth += *p == '(';
		depth -= *p == ')';
		if (!depth)
			return p + 1;
	}
	return p;
}

static void function_and_place(const char *p, struct stack_frame *f)
{
	p = blanks(p);
	if (!strncmp(p, "in ", 3))
		p = blanks(p + 3);
	size_t n = name_length(p);
	bool unknown = !n || !strncmp(p, "??", 2) || !strncmp(p, "???", 3) || (n == 3 && !strncmp(p, "n/a", 3)) ||
		       *p == '(' || *p == '<';

	if (!unknown || *p == '?' || !strncmp(p, "n/a", 3)) {
		if (!unknown) {
			const char *plus = memchr(p, '+', n);

			/* lldb's and libunwind's "name+0x12" */
			f->function = part(p, plus && plus > p && plus[1] == '0' ? (size_t)(plus - p) : n);
		}
		p += n;
		/* parameters in the name, as demanglers write them, and their values */
		p = past_arguments(p);
		p = past_arguments(p);
		if (!strncmp(p, " const", 6))
			p += 6;
	}
	location(p, f);
}

/* ---- how frames begin ---- */

/* "#3  0x... in f (...) at x.c:1": gdb, AddressSanitizer, ThreadSanitizer, systemd, eu-stack. */
static bool numbered(const char *p, struct stack_frame *f, unsigned *number)
{
	uint64_t address;
	char *end;

	if (*p != '#' || !isdigit((unsigned char)p[1]))
		return false;
	*number = (unsigned)strtoul(p + 1, &end, 10);
	p = blanks(end);
	hex(&p, &address);
	function_and_place(p, f);
	return true;
}

/* "at 0x4846F2: f (x.c:1)" and "by 0x...": valgrind. */
static bool valgrind(const char *p, struct stack_frame *f, unsigned *number)
{
	uint64_t address;

	if (strncmp(p, "at 0x", 5) && strncmp(p, "by 0x", 5))
		return false;
	*number = *p == 'a' ? 0 : 1;
	p += 3;
	if (!hex(&p, &address) || *p++ != ':')
		return false;
	function_and_place(p, f);
	return true;
}

/* "lib.so(f+0x12) [0x7f...]" and "lib.so(+0x12)[0x...]": glibc's backtrace_symbols(). */
static bool glibc(const char *p, struct stack_frame *f)
{
	const char *open = strchr(p, '('), *close = open ? strchr(open, ')') : NULL;
	const char *address = close ? blanks(close + 1) : NULL;

	if (!address || *address != '[' || address[1] != '0' || address[2] != 'x' || open == p)
		return false;
	f->module = part(p, (size_t)(open - p));
	const char *plus = memchr(open, '+', (size_t)(close - open));
	if (!plus)
		plus = close;
	if (plus > open + 1)
		f->function = part(open + 1, (size_t)(plus - open - 1));
	else if (plus < close) {
		f->offset = strtoull(plus + 1, NULL, 16);
		f->has_offset = true;
	}
	return true;
}

/* "0x7f...: (f+0x12)" or "0x7f... <f+0x12>": libunwind's examples. */
static bool libunwind(const char *p, struct stack_frame *f)
{
	uint64_t address;

	if (!hex(&p, &address) || *p != ':')
		return false;
	p = blanks(p + 1);
	if (*p != '(' && *p != '<')
		return false;
	size_t n = strcspn(++p, "+)>");
	f->function = n ? part(p, n) : NULL;
	return n > 0;
}

/* ---- lines ---- */

static const struct { const char *words; enum stack_kind kind; } said[] = {
	{ "DEADLYSIGNAL", STACK_CRASH }, { "SIGSEGV", STACK_CRASH }, { "SIGBUS", STACK_CRASH },
	{ "Segmentation fault", STACK_CRASH }, { "SEGV on", STACK_CRASH }, { "heap-use-after-free", STACK_FREED },
	{ "heap-buffer-overflow", STACK_OVERRUN }, { "attempting double-free", STACK_ABORT }, { "data race", STACK_RACE }, { "signal 11", STACK_CRASH }, { "Invalid read of", STACK_CRASH },
	{ "Invalid write of", STACK_CRASH }, { "Signal: 11", STACK_CRASH }, { "SIGABRT", STACK_ABORT },
	{ "Signal: 6", STACK_ABORT }, { "signal 6", STACK_ABORT }, { "Assertion", STACK_ABORT },
	{ "terminate called", STACK_ABORT }, { "double free", STACK_ABORT }, { "SIGFPE", STACK_ARITHMETIC },
	{ "Signal: 8", STACK_ARITHMETIC }, { "lock-order-inversion", STACK_DEADLOCK }, { "deadlock", STACK_DEADLOCK },
};

static void note_kind(struct stack *s, const char *line)
{
	/* What was said before the first frames is about the failure; a later word may be about anything. */
	for (size_t i = 0; i < sizeof said / sizeof *said && s->kind == STACK_UNKNOWN; i++)
		if (strstr(line, said[i].words))
			s->kind = said[i].kind;
}

/* valgrind says behind the frames what is wrong with the address. */
static void note_address(struct stack *s, const char *line)
{
	if (s->kind != STACK_CRASH || strncmp(line, "Address 0x", 10))
		return;
	if (strstr(line, " inside a block of size ") && strstr(line, "free'd"))
		s->kind = STACK_FREED;
	else if (strstr(line, " after a block of size ") || strstr(line, " before a block of size "))
		s->kind = STACK_OVERRUN;
}

static bool begins_thread(const char *p)
{
	return (!strncmp(p, "Thread ", 7) && (strchr(p, ':') || strstr(p, "LWP"))) || !strncmp(p, "TID ", 4) ||
	       !strncmp(p, "Stack trace of thread", 21) || !strncmp(p, "PID ", 4);
}

static bool is_secondary(const char *p)
{
	static const char *const heads[] = { "freed by", "previously allocated", "allocated by", "created by",
					     "Previous ", "Thread T", "Address 0x", "Block was alloc", "Mutex M" };

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
		if (!strncmp(p, heads[i], strlen(heads[i])))
			return !strstr(p, "SEGV");
	return false;
}

struct parser {
	struct stack *s;
	bool fresh;      /* a new thread begins with the next frame */
	bool secondary;
	unsigned last;   /* number of the last frame */
	unsigned number; /* gdb's, of the thread that begins */
	unsigned failed; /* gdb's, of the thread that got the signal; 0: not said */
	bool stopped;    /* the signal is no failure */
	unsigned line;
	bool in_frames;
};

static void free_frame(struct stack_frame *f)
{
	free(f->function);
	free(f->file);
	free(f->module);
}

/* gdb shows where a program is before it shows the stack: that frame comes twice. */
static void forget_shown(struct stack *s, const struct stack_frame *f)
{
	struct stack_thread *t = s->threads.n ? &s->threads.v[s->threads.n - 1] : NULL;

	if (!t || t->frames.n != 1 || t->secondary || !f->function || !t->frames.v[0].function ||
	    strcmp(f->function, t->frames.v[0].function) || f->line != t->frames.v[0].line)
		return;
	free_frame(&t->frames.v[0]);
	vec_free(&t->frames);
	s->threads.n--;
}

static void add_frame(struct parser *p, struct stack_frame *f, unsigned number, const char *format)
{
	struct stack *s = p->s;

	if (number == 0 && !p->fresh)
		forget_shown(s, f);
	if (!s->threads.n || p->fresh || number == 0) {
		struct stack_thread t = { .secondary = p->secondary, .number = p->number };

		if (s->threads.n < STACK_THREADS)
			vec_push(&s->threads, t);
		p->secondary = false;
	}
	p->fresh = false;
	p->in_frames = true;
	p->last = number;
	f->text_line = p->line;
	if (!s->format)
		s->format = format;
	struct stack_thread *t = &s->threads.v[s->threads.n - 1];
	if (t->frames.n < STACK_FRAMES) {
		vec_push(&t->frames, *f);
		return;
	}
	free_frame(f);
}

/* gdb breaks a long frame; eu-stack puts the source on a line of its own. */
static bool continues(struct parser *p, const char *line, const char *text)
{
	struct stack *s = p->s;

	if (!p->in_frames || line == text || !s->threads.n || !s->threads.v[s->threads.n - 1].frames.n)
		return false;
	struct stack_frame *f = &s->threads.v[s->threads.n - 1].frames.v[s->threads.v[s->threads.n - 1].frames.n - 1];
	if (!strncmp(text, "at ", 3) || *text == '/' || *text == '.') {
		location(text, f);
		return true;
	}
	return false;
}

static const char *without_prefix(const char *line)
{
	const char *p = blanks(line);

	/* valgrind's "==123== ", and dashes of systemd's journal */
	if (!strncmp(p, "==", 2) && isdigit((unsigned char)p[2])) {
		p += 2 + strspn(p + 2, "0123456789");
		p = !strncmp(p, "==", 2) ? p + 2 : line;
	}
	return blanks(p);
}

/* gdb: 'Thread 2 "app" received signal SIGSEGV', "[Current thread is 1 (Thread 0x...)]", "Thread 2 (Thread 0x... (LWP 12)):". */
static void note_thread(struct parser *p, const char *text)
{
	unsigned n;

	if (sscanf(text, "Thread %u \"", &n) == 1 && strstr(text, " received signal ")) {
		static const char *const stops[] = { "SIGINT", "SIGQUIT", "SIGTERM", "SIGALRM", "SIGTRAP", "SIGSTOP", "SIGTSTP" };

		p->failed = n;
		for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
			p->stopped |= strstr(text, stops[i]) != NULL;
	}
	if (sscanf(text, "[Current thread is %u ", &n) == 1 && !p->failed)
		p->failed = n;
	else if (sscanf(text, "Thread %u (", &n) == 1)
		p->number = n;
}

/* It begins as a frame does: it was cut off, or damaged. */
static void note_odd(struct parser *p, const char *text)
{
	struct stack *s = p->s;
	bool numbered = *text == '#' && isdigit((unsigned char)text[1]);

	if (s->odd_line || (!numbered && strncmp(text, "at 0x", 5) && strncmp(text, "by 0x", 5)))
		return;
	s->odd_line = p->line;
	for (size_t i = 0; i < sizeof s->odd - 1 && text[i]; i++)
		s->odd[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
}

char *stack_odd_text(const struct stack *s)
{
	if (!s->odd_line)
		return xstrdup("");
	return xasprintf("; line %u, '%s', begins as a frame does, but no function, file or module follows as in '#0  0x7f12 in f (x=1) at "
			 "f.c:12'", s->odd_line, s->odd);
}

static void read_line(struct parser *p, char *line)
{
	struct stack_frame f = { 0 };
	unsigned number = 0;

	line[strcspn(line, "\r\n")] = 0;
	const char *text = without_prefix(line);
	bool prefixed = text != blanks(line);
	if (strstr(text, "<signal handler called>")) {
		/* The frames so far are the handler's: what failed lies below it. */
		struct stack_thread *t = p->s->threads.n ? &p->s->threads.v[p->s->threads.n - 1] : NULL;
		if (t)
			t->fails = true;
		return;
	}
	if (numbered(text, &f, &number)) {
		if (!f.function && !f.file && !f.module && !strstr(text, "??"))
			note_odd(p, text);
		add_frame(p, &f, number, "gdb, a sanitizer, systemd-coredump or eu-stack");
	} else if (valgrind(text, &f, &number)) {
		add_frame(p, &f, number, "valgrind");
	} else if (glibc(text, &f)) {
		add_frame(p, &f, 1, "glibc's backtrace_symbols()");
	} else if (libunwind(text, &f)) {
		add_frame(p, &f, 1, "libunwind");
	} else if (!continues(p, line, text)) {
		note_odd(p, text);
		note_thread(p, text);
		if (begins_thread(text))
			p->fresh = true;
		if (is_secondary(text)) {
			p->fresh = true;
			p->secondary = true;
		}
		if (!*text && !prefixed)
			p->in_frames = false;
		note_kind(p->s, text);
		note_address(p->s, text);
	}
}

/* ---- the whole ---- */

static const char *const waiting[] = { "__lll_lock_wait", "pthread_mutex_lock", "futex_wait", "__futex_abstimed_wait",
				       "pthread_rwlock", "__pthread_mutex_lock", "___pthread_mutex_lock" };

static const char *const idle[] = { "join", "nanosleep", "pause", "epoll_wait", "poll" };

static bool is_in(const struct stack_thread *t, const char *const *names, size_t n)
{
	for (size_t i = 0; i < t->frames.n && i < 5; i++)
		for (size_t k = 0; k < n; k++)
			if (t->frames.v[i].function && strstr(t->frames.v[i].function, names[k]))
				return true;
	return false;
}

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct { const char *function; enum stack_kind kind; } fatal[] = {
	{ "abort", STACK_ABORT }, { "raise", STACK_ABORT }, { "__assert_fail", STACK_ABORT },
	{ "__GI_raise", STACK_ABORT }, { "__GI_abort", STACK_ABORT }, { "__pthread_kill_implementation", STACK_ABORT },
	{ "__GI___assert_fail", STACK_ABORT },
};

static void judge(struct stack *s)
{
	unsigned waiters = 0, busy = 0;

	for (size_t i = 0; i < s->threads.n; i++) {
		struct stack_thread *t = &s->threads.v[i];
		bool sleeps = t->stopped || is_in(t, idle, COUNT(idle));

		if (!sleeps && is_in(t, waiting, COUNT(waiting)))
			waiters++;
		else if (!sleeps && !t->secondary)
			busy++;
		for (size_t k = 0; k < t->frames.n && k < 8 && t->frames.v[k].function; k++)
			for (size_t n = 0; n < sizeof fatal / sizeof *fatal; n++)
				if (!strcmp(t->frames.v[k].function, fatal[n].function)) {
					t->fails = true;
					if (s->kind == STACK_UNKNOWN)
						s->kind = fatal[n].kind;
				}
	}
	/* Who does neither wait nor sleep is what failed, or can still let the others go on. */
	if (s->kind == STACK_UNKNOWN && waiters > 1 && !busy)
		s->kind = STACK_DEADLOCK;
}

err_t stack_parse(FILE *f, const char *path, struct stack *out)
{
	struct parser p = { .s = out };
	char line[STACK_LINE], first[128] = "";
	int c;

	*out = (struct stack){ 0 };
	while (fgets(line, sizeof line, f)) {
		p.line++;
		if (!strchr(line, '\n'))
			while ((c = getc(f)) != EOF && c != '\n')
				;
		if (!first[0] && *blanks(line) && *blanks(line) != '\n') {
			const char *text = blanks(line);

			for (size_t i = 0; i < sizeof first - 1 && text[i] && text[i] != '\n'; i++) {
				first[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
				first[i + 1] = 0;
			}
		}
		read_line(&p, line);
	}
	for (size_t i = 0; i < out->threads.n && p.failed; i++) {
		struct stack_thread *t = &out->threads.v[i];

		t->fails |= t->number == p.failed && !p.stopped;
		t->stopped = t->number == p.failed && p.stopped;
	}
	judge(out);
	if (out->threads.n)
		return NULL;
	return err_new(ERR_INPUT, "%s: no line of %u is a frame of a stack%s%s%s; expected are lines like "
		       "'#0  0x7f12 in f (x=1) at f.c:12' (gdb, sanitizers, eu-stack), 'at 0x4846F2: f (f.c:12)' (valgrind), "
		       "'lib.so(f+0x12) [0x7f12]' (glibc), '0x7f12: (f+0x12)' (libunwind)", path, p.line,
		       first[0] ? ", which begin '" : "", first, first[0] ? "'" : "");
}

bool stack_is_trace(const char *path)
{
	struct stat st;

	return strcmp(path, "-") && !stat(path, &st) && (S_ISDIR(st.st_mode) || pack_is(path));
}

err_t stack_read(FILE *f, const char *path, struct stack *out)
{
	*out = (struct stack){ 0 };
	int c = getc(f);
	if (c == 0x7f) { /* ELF */
		elf_version(EV_CURRENT);
		err_t bad = stack_read_core(path, fileno(f), out);
		judge(out);
		return bad;
	}
	if (c != EOF)
		ungetc(c, f);
	return stack_parse(f, path, out);
}

void stack_free(struct stack *s)
{
	for (size_t i = 0; i < s->threads.n; i++) {
		for (size_t k = 0; k < s->threads.v[i].frames.n; k++) {
			free_frame(&s->threads.v[i].frames.v[k]);
		}
		vec_free(&s->threads.v[i].frames);
	}
	vec_free(&s->threads);
}
