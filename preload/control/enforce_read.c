/* Schedule files (common/control_format.h), without libc. */
#include "preload/control/enforce.h"

#include "preload/raw.h"

#include <fcntl.h>

#define NAME_MAX_ 1024 /* 255 bytes, each of them may be escaped */

bool ctl_word(const char **p, char *out, size_t size)
{
	size_t n = 0;

	while (**p == ' ')
		(*p)++;
	while (**p && **p != ' ' && **p != '\n' && n + 1 < size)
		out[n++] = *(*p)++;
	out[n] = 0;
	return n > 0 && (**p == ' ' || **p == '\n' || !**p);
}

bool ctl_number(const char **p, unsigned base, uint64_t *v)
{
	char digits[24];

	*v = 0;
	if (!ctl_word(p, digits, sizeof digits))
		return false;
	for (char *d = digits; *d; d++) {
		unsigned x = *d >= 'a' ? (unsigned)(*d - 'a' + 10) : (unsigned)(*d - '0');

		if (x >= base)
			return false;
		*v = *v * base + x;
	}
	return true;
}

bool enf_same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static const char when_names[][8] = { "before", "after", "again", "inside", "middle", "woken" };

static unsigned hex_digit(char c)
{
	return c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
}

/* %XX is what could not stand in a word (common/escape.h). */
static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		bool escaped = *s == '%' && hex_digit(s[1]) < 16 && hex_digit(s[2]) < 16;

		*to++ = escaped ? (char)(hex_digit(s[1]) << 4 | hex_digit(s[2])) : *s;
		s += escaped ? 3 : 1;
	}
	*to = 0;
}

static bool parse_end(const char **p, struct enf_end *e)
{
	char module[NAME_MAX_], when[8];

	if (!ctl_word(p, e->thread, sizeof e->thread) || !ctl_word(p, module, sizeof module) ||
	    !ctl_number(p, 16, &e->offset) || !ctl_number(p, 10, &e->n) || !ctl_word(p, when, sizeof when))
		return false;
	unescape(module);
	e->module = ctl_module_hash(module);
	for (unsigned i = 0; i < sizeof when_names / sizeof *when_names; i++)
		if (enf_same(when, when_names[i])) {
			e->when = (enum enf_when)i;
			return true;
		}
	return false;
}

static bool parse_line(struct enf_schedule *s, const char *p)
{
	char keyword[12];

	if (*p == '#' || *p == '\n' || !*p)
		return true;
	if (!ctl_word(&p, keyword, sizeof keyword))
		return false;
	if (enf_same(keyword, "yield")) {
		s->yields = true;
		return true;
	}
	if (enf_same(keyword, "process"))
		return ctl_word(&p, s->process, sizeof s->process);
	if (s->nedges == CTL_MAX_EDGES)
		return false;
	struct enf_edge *e = &s->edges[s->nedges];
	e->turn = enf_same(keyword, "turn");
	e->meet = enf_same(keyword, "meet");
	e->then = enf_same(keyword, "then");
	if ((!e->turn && !e->meet && !e->then && !enf_same(keyword, "edge")) || !ctl_number(&p, 10, &e->id) ||
	    (!e->turn && !parse_end(&p, &e->source)) || !parse_end(&p, &e->target))
		return false;
	s->waits |= enf_in_wait(&e->target) || enf_in_wait(&e->source);
	s->turns |= e->turn;
	s->nedges++;
	return true;
}

static bool parse(struct enf_schedule *s, const char *p)
{
	size_t n = strlen(CTL_SCHEDULE_MAGIC);

	if (memcmp(p, CTL_SCHEDULE_MAGIC, n) || p[n] != '\n')
		return false;
	for (p += n + 1; *p;) {
		if (!parse_line(s, p))
			return false;
		while (*p && *p != '\n')
			p++;
		p += *p == '\n';
	}
	return s->nedges > 0;
}

const char *ctl_read_text(const char *path)
{
	static char text[1 << 20] RAW_LARGE;
	long fd = raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;

	for (long got = 1; !raw_failed(fd) && got > 0 && n < sizeof text - 1; n += got > 0 ? (size_t)got : 0)
		got = raw(SYS_read, fd, text + n, sizeof text - 1 - n);
	if (!raw_failed(fd))
		raw(SYS_close, fd);
	text[n] = 0;
	return n > 0 && n < sizeof text - 1 ? text : NULL;
}

bool enf_read(const char *path, struct enf_schedule *out)
{
	const char *text = ctl_read_text(path);

	return text && parse(out, text);
}
