#include "analyzer/term.h"

#include "common/utf8.h"

#include <inttypes.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

bool term_when_parse(const char *s, enum term_when *when)
{
	static const char *const names[] = { "auto", "always", "never" };

	for (int i = 0; i < 3; i++) {
		if (!strcmp(s, names[i])) {
			*when = (enum term_when)i;
			return true;
		}
	}
	return false;
}

static unsigned columns(int fd)
{
	const char *env = getenv("COLUMNS");
	struct winsize w;
	unsigned long n = env ? strtoul(env, NULL, 10) : 0;

	if (n >= 20 && n <= 1000)
		return (unsigned)n;
	if (!ioctl(fd, TIOCGWINSZ, &w) && w.ws_col >= 20)
		return w.ws_col;
	return 80;
}

void term_init(struct term *t, FILE *f, enum term_when when)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	t->f = f;
	t->tty = isatty(fileno(f));
	t->width = columns(fileno(f));
	t->unicode = !strcmp(nl_langinfo(CODESET), "UTF-8");
	t->color = when == TERM_ALWAYS ||
		   (when == TERM_AUTO && t->tty && !(no_color && *no_color) && term &&
		    strcmp(term, "dumb"));
}

const char *term_style(const struct term *t, enum term_style style)
{
	static const char *const codes[] = {
		[TERM_PLAIN] = "\033[0m",   [TERM_BOLD] = "\033[1m",  [TERM_DIM] = "\033[2m",
		[TERM_RED] = "\033[31m",    [TERM_GREEN] = "\033[32m", [TERM_YELLOW] = "\033[33m",
		[TERM_BLUE] = "\033[34m",   [TERM_MAGENTA] = "\033[35m", [TERM_CYAN] = "\033[36m",
	};

	return t->color ? codes[style] : "";
}

void term_print(const struct term *t, enum term_style style, const char *fmt, ...)
{
	va_list ap;

	if (style != TERM_PLAIN)
		fputs(term_style(t, style), t->f);
	va_start(ap, fmt);
	vfprintf(t->f, fmt, ap);
	va_end(ap);
	if (style != TERM_PLAIN)
		fputs(term_style(t, TERM_PLAIN), t->f);
}

void term_text(struct strbuf *b, const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint32_t c;
		size_t len = utf8_shown(s + i, n - i, &c);

		if (len)
			strbuf_add(b, s + i, len);
		else if (s[i] == '\n' || s[i] == '\t')
			strbuf_str(b, s[i] == '\n' ? "\\n" : "\\t");
		else
			strbuf_fmt(b, "\\x%02x", (unsigned char)s[i]);
		i += len ? len : 1;
	}
}

char *term_text_of(const char *s, size_t n)
{
	struct strbuf b = { 0 };

	term_text(&b, s, n);
	return strbuf_take(&b);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Is it time for another line? */
static bool progress_due(struct progress *p)
{
	if (!p->state) {
		p->state = isatty(2) ? 2 : 1;
		/* Work that is over in a blink shows nothing. */
		p->last_ns = now_ns() + 400000000u;
	}
	if (p->state == 1)
		return false;
	uint64_t now = now_ns();

	if (now < p->last_ns || now - p->last_ns < 100000000u)
		return false;
	p->last_ns = now;
	p->shown = true;
	return true;
}

void progress_at(struct progress *p, uint64_t done, uint64_t total)
{
	if (!progress_due(p))
		return;
	if (total)
		fprintf(stderr, "\r\033[K%s: %" PRIu64 "%%", p->what,
			(uint64_t)(100.0 * (double)done / (double)total));
	else
		fprintf(stderr, "\r\033[K%s: %" PRIu64, p->what, done);
	fflush(stderr);
}

void progress_words(struct progress *p, const char *fmt, ...)
{
	va_list ap;

	if (!progress_due(p))
		return;
	fprintf(stderr, "\r\033[K%s: ", p->what);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fflush(stderr);
}

void progress_end(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
