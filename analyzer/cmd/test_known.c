/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Failures that are known: suppressed for a reason until a day, or in the baseline. */
#include "analyzer/cmd/test.h"

#include "common/escape.h"
#include "common/newfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_fingerprint(const char *s)
{
	size_t n = strlen(s), digits = strspn(s, "0123456789abcdef");

	return (n == 12 && digits == n) ||
	       (n == 22 && !strncmp(s, "point-", 6) && strspn(s + 6, "0123456789abcdef") == 16);
}

static bool is_date(const char *s)
{
	static const unsigned days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	unsigned year, month, day;
	int n = 0;

	return strlen(s) == 10 && strspn(s, "0123456789-") == 10 && sscanf(s, "%4u-%2u-%2u%n", &year, &month, &day, &n) == 3 &&
	       n == 10 && month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1];
}

/* The next word of a line; the rest of it is in *line. */
static char *word(char **line)
{
	char *w = *line + strspn(*line, " \t"), *end = w + strcspn(w, " \t");

	*line = *end ? end + 1 + strspn(end + 1, " \t") : end;
	*end = 0;
	return w;
}

struct where {
	const char *path;
	unsigned line;
};

static err_t wrong(const struct where *at, const char *what, const char *text)
{
	return err_new(ERR_INPUT, "%s:%u: '%s' is %s", at->path, at->line, text, what);
}

static err_t take_suppression(struct test_known *k, char *line, const struct where *at, const char *today)
{
	struct test_known_entry e = { .line = at->line };
	char *print = word(&line), *until = word(&line);

	if (!is_fingerprint(print))
		return wrong(at, "no fingerprint (12 hexadecimal digits, as csched prints it)", print);
	if (!is_date(until))
		return wrong(at, "no day like 2027-01-31, until when the failure is suppressed", until);
	if (!*line)
		return wrong(at, "suppressed without a reason: FINGERPRINT YYYY-MM-DD REASON", print);
	e.fingerprint = xstrdup(print);
	e.reason = xstrdup(line);
	memcpy(e.until, until, sizeof e.until);
	e.expired = strcmp(until, today) < 0;
	vec_push(&k->v, e);
	return NULL;
}

static err_t take_baseline(struct test_known *k, char *line, const struct where *at)
{
	struct test_known_entry e = { .line = at->line };
	char *print = word(&line);

	if (!is_fingerprint(print))
		return wrong(at, "no fingerprint", print);
	e.fingerprint = xstrdup(print);
	e.reason = xstrdup("in the baseline");
	vec_push(&k->v, e);
	return NULL;
}

static err_t each_line(struct test_known *k, const char *path, const char *today)
{
	int fd = newfile_open_regular(AT_FDCWD, path, true);
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	struct where at = { path, 0 };
	char *line = NULL;
	size_t room = 0;
	err_t e = f ? NULL : err_errno("%s", path);

	while (!e && getline(&line, &room, f) >= 0) {
		char *text = line + strspn(line, " \t");

		at.line++;
		text[strcspn(text, "\r\n")] = 0;
		if (*text && *text != '#')
			e = today ? take_suppression(k, text, &at, today) : take_baseline(k, text, &at);
	}
	free(line);
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	return e;
}

err_t test_known_suppressions(struct test_known *k, const char *path, const char *today)
{
	return each_line(k, path, today);
}

err_t test_known_baseline(struct test_known *k, const char *path)
{
	return each_line(k, path, NULL);
}

static err_t write_lines(FILE *f, void *arg)
{
	const struct test_suite *s = arg;

	fputs("# csched test: failures that were known\n", f);
	for (size_t i = 0; i < s->tests.n; i++)
		for (size_t k = 0; k < s->tests.v[i].failures.n; k++) {
			const struct test_failure *x = &s->tests.v[i].failures.v[k];

			if (x->first != i)
				continue;
			fprintf(f, "%s ", x->fingerprint);
			escape_line(f, s->tests.v[i].name);
			fputs(": ", f);
			escape_line(f, x->text);
			fputc('\n', f);
		}
	return NULL;
}

err_t test_known_write(const struct test_suite *s, const char *path)
{
	return newfile_write(path, NEWFILE_GIVEN, 0666, write_lines, (void *)s);
}

const char *test_known_reason(struct test_known *k, const char *fingerprint)
{
	const char *reason = NULL;

	for (size_t i = 0; i < k->v.n; i++)
		if (!strcmp(k->v.v[i].fingerprint, fingerprint)) {
			k->v.v[i].used = true;
			if (!k->v.v[i].expired)
				reason = k->v.v[i].reason;
		}
	return reason;
}

void test_known_free(struct test_known *k)
{
	for (size_t i = 0; i < k->v.n; i++) {
		free(k->v.v[i].fingerprint);
		free(k->v.v[i].reason);
	}
	vec_free(&k->v);
}
