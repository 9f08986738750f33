/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exit statuses and JUnit files of the commands that search. */
#include "analyzer/cmd/found.h"

#include "common/newfile.h"

#include <stdio.h>

int found_status(const struct found_options *o, bool found)
{
	return found == o->fail_if_found ? ERR_NOANSWER : 0;
}

/* ---- XML ---- */

/* Bytes of the UTF-8 character at s that XML 1.0 allows; 0: it is none. */
static unsigned xml_char(const unsigned char *s)
{
	if (*s < 0x80)
		return *s >= ' ' || *s == '\t' || *s == '\n';
	unsigned n = *s >= 0xc2 && *s < 0xe0 ? 2 : *s >= 0xe0 && *s < 0xf0 ? 3 : *s >= 0xf0 && *s < 0xf5 ? 4 : 0;
	for (unsigned i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] >= 0xa0) || (*s == 0xf0 && s[1] < 0x90) ||
	    (*s == 0xf4 && s[1] >= 0x90) || (*s == 0xef && s[1] == 0xbf && s[2] >= 0xbe))
		return 0;
	return n;
}

static void xml_text(FILE *f, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	while (*s) {
		unsigned n = xml_char(s);

		if (!n)
			fputs("\\?", f);
		else if (*s == '&')
			fputs("&amp;", f);
		else if (*s == '<')
			fputs("&lt;", f);
		else if (*s == '>')
			fputs("&gt;", f);
		else if (*s == '"')
			fputs("&quot;", f);
		else if (*s == '\n')
			fputs("&#10;", f);
		else if (*s == '\t')
			fputs("&#9;", f);
		else
			fwrite(s, 1, n, f);
		s += n ? n : 1;
	}
}

static void attribute(FILE *f, const char *name, const char *value)
{
	fprintf(f, " %s=\"", name);
	xml_text(f, value ? value : "");
	fputc('"', f);
}

static void element(FILE *f, const char *name, const struct found_case *c)
{
	fprintf(f, "      <%s", name);
	attribute(f, "message", c->text);
	if (c->outcome != FOUND_SKIPPED)
		attribute(f, "type", c->fingerprint ? c->fingerprint : name);
	fputc('>', f);
	if (c->details && c->outcome != FOUND_SKIPPED)
		xml_text(f, c->details);
	fprintf(f, "</%s>\n", name);
}

static void write_case(FILE *f, const struct found_case *c)
{
	static const char *const elements[] = { [FOUND_FAILURE] = "failure", [FOUND_SKIPPED] = "skipped",
						[FOUND_ERROR] = "error" };

	fputs("    <testcase", f);
	attribute(f, "classname", c->suite);
	attribute(f, "name", c->name);
	fprintf(f, " time=\"%.3f\">\n", c->seconds);
	if (c->outcome != FOUND_NOTHING)
		element(f, elements[c->outcome], c);
	fputs("    </testcase>\n", f);
}

static void totals(FILE *f, const char *name, const struct found_case *cases, size_t n)
{
	size_t of[4] = { 0 };
	double seconds = 0;

	for (size_t i = 0; i < n; i++) {
		of[cases[i].outcome]++;
		seconds += cases[i].seconds;
	}
	attribute(f, "name", name);
	fprintf(f, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\"", n,
		of[FOUND_FAILURE], of[FOUND_ERROR], of[FOUND_SKIPPED], seconds);
}

static void write_all(FILE *f, const char *command, const struct found_case *cases, size_t n)
{
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite", f);
	totals(f, command, cases, n);
	fputs(">\n", f);
	for (size_t i = 0; i < n; i++)
		write_case(f, &cases[i]);
	fputs("  </testsuite>\n</testsuites>\n", f);
}

/* ---- the file ---- */

err_t found_check(const struct found_options *o)
{
	struct newfile nf;

	if (!o->junit)
		return NULL;
	TRY(newfile_open(&nf, o->junit, NEWFILE_GIVEN, 0666));
	newfile_abandon(&nf);
	return NULL;
}

err_t found_write(const struct found_options *o, const char *command, const struct found_case *cases, size_t n)
{
	struct newfile nf;

	if (!o->junit)
		return NULL;
	TRY(newfile_open(&nf, o->junit, NEWFILE_GIVEN, 0666));
	write_all(nf.f, command, cases, n);
	return newfile_keep(&nf);
}
