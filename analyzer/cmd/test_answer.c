/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What csched test says: a table, JSON, JUnit. */
#include "analyzer/cmd/test.h"

#include "common/json.h"
#include "common/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t test_new_failures(const struct test_suite *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->tests.n; i++) {
		n += s->tests.v[i].error != NULL;
		for (size_t k = 0; k < s->tests.v[i].failures.n; k++)
			n += !s->tests.v[i].failures.v[k].known;
	}
	return n;
}

static const char *verdict(const struct test_case *t)
{
	bool known = false;

	if (t->skipped)
		return "skipped";
	if (t->error)
		return "error";
	for (size_t i = 0; i < t->failures.n; i++) {
		if (!t->failures.v[i].known)
			return "failed";
		known = true;
	}
	return known ? "known" : "passed";
}

/* ---- text ---- */

static void print_safe(const char *text)
{
	char *safe = term_text_of(text, strlen(text));

	fputs(safe, stdout);
	free(safe);
}

static void print_failure(const struct test_suite *s, size_t i, const struct test_failure *f)
{
	printf("           %-22s ", f->fingerprint);
	print_safe(f->text);
	putchar('\n');
	if (f->first != i) {
		fputs("             the same bug as in ", stdout);
		print_safe(s->tests.v[f->first].name);
		putchar('\n');
	}
	if (f->known) {
		fputs("             known: ", stdout);
		print_safe(f->known);
		putchar('\n');
	}
	if (f->trace)
		printf("             csched explain %s\n", f->trace);
}

static void print_test(const struct test_suite *s, size_t i)
{
	const struct test_case *t = &s->tests.v[i];

	printf("  %-8s %5llu runs %6.1f s  ", verdict(t), (unsigned long long)t->runs, t->seconds);
	print_safe(t->name);
	if (t->skipped || t->error) {
		fputs(": ", stdout);
		print_safe(t->skipped ? t->skipped : t->error);
	}
	if (t->timeouts)
		printf(" (%llu runs ended by the time limit)", (unsigned long long)t->timeouts);
	if (t->always)
		fputs(" (without any perturbation, too)", stdout);
	putchar('\n');
	for (size_t k = 0; k < t->failures.n; k++)
		print_failure(s, i, &t->failures.v[k]);
}

/* What is wrong with the list of what is known: it is looked after, or it rots. */
static void print_known(const struct test_known *k)
{
	for (size_t i = 0; i < k->v.n; i++) {
		const struct test_known_entry *e = &k->v.v[i];

		if (e->expired)
			printf("suppression of %s has expired on %s (line %u): %s\n", e->fingerprint, e->until, e->line,
			       e->used ? "it counts again" : "it was not seen");
		else if (!e->used && *e->until)
			printf("suppression of %s (line %u) was not needed\n", e->fingerprint, e->line);
	}
}

static size_t count_bugs(const struct test_suite *s, bool known)
{
	size_t n = 0;

	for (size_t i = 0; i < s->tests.n; i++)
		for (size_t k = 0; k < s->tests.v[i].failures.n; k++)
			n += s->tests.v[i].failures.v[k].first == i && known == (s->tests.v[i].failures.v[k].known != NULL);
	return n;
}

void test_print(const struct test_suite *s, const struct test_known *k)
{
	size_t bugs = count_bugs(s, false), known = count_bugs(s, true);

	for (size_t i = 0; i < s->tests.n; i++)
		print_test(s, i);
	print_known(k);
	printf("%zu test%s (%s), %zu new bug%s, %zu known\n", s->tests.n, s->tests.n == 1 ? "" : "s", s->kind, bugs,
	       bugs == 1 ? "" : "s", known);
}

/* ---- JSON ---- */

static void json_failure(struct json *j, const struct test_suite *s, size_t i, const struct test_failure *f)
{
	json_object(j, NULL);
	json_str(j, "fingerprint", f->fingerprint);
	json_str(j, "text", f->text);
	json_str(j, "trace", f->trace);
	json_str(j, "known", f->known);
	json_str(j, "same_as", f->first != i ? s->tests.v[f->first].name : NULL);
	json_end(j);
}

static void json_test(struct json *j, const struct test_suite *s, size_t i)
{
	const struct test_case *t = &s->tests.v[i];

	json_object(j, NULL);
	json_str(j, "name", t->name);
	json_str(j, "verdict", verdict(t));
	json_str(j, "why", t->skipped ? t->skipped : t->error);
	json_uint(j, "runs", t->runs);
	json_uint(j, "timeouts", t->timeouts);
	json_num(j, "seconds", t->seconds);
	json_bool(j, "always_fails", t->always);
	json_array(j, "failures");
	for (size_t k = 0; k < t->failures.n; k++)
		json_failure(j, s, i, &t->failures.v[k]);
	json_end(j);
	json_end(j);
}

void test_print_json(const struct test_suite *s, const struct test_known *k)
{
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "suite", s->kind);
	json_uint(&j, "new_bugs", count_bugs(s, false));
	json_uint(&j, "known_bugs", count_bugs(s, true));
	json_array(&j, "tests");
	for (size_t i = 0; i < s->tests.n; i++)
		json_test(&j, s, i);
	json_end(&j);
	json_array(&j, "expired");
	for (size_t i = 0; i < k->v.n; i++)
		if (k->v.v[i].expired)
			json_str(&j, NULL, k->v.v[i].fingerprint);
	json_end(&j);
	json_end(&j);
	json_print(&j, stdout);
}

/* ---- JUnit ---- */

static struct found_case case_of(const struct test_case *t)
{
	struct found_case c = { "csched test", t->name, FOUND_NOTHING, t->seconds, NULL, NULL, NULL };

	if (t->error || t->skipped) {
		c.outcome = t->error ? FOUND_ERROR : FOUND_SKIPPED;
		c.text = t->error ? t->error : t->skipped;
	}
	for (size_t k = 0; k < t->failures.n; k++) {
		const struct test_failure *f = &t->failures.v[k];

		/* A new one before one that is known. */
		if (c.outcome == FOUND_FAILURE || (f->known && c.outcome == FOUND_SKIPPED))
			continue;
		c.outcome = f->known ? FOUND_SKIPPED : FOUND_FAILURE;
		c.text = f->known ? f->known : f->text;
		c.fingerprint = f->fingerprint;
		c.details = f->trace;
	}
	return c;
}

err_t test_junit(const struct found_options *o, const struct test_suite *s)
{
	struct found_case *cases = xcalloc(s->tests.n + 1, sizeof *cases);

	for (size_t i = 0; i < s->tests.n; i++)
		cases[i] = case_of(&s->tests.v[i]);
	err_t e = found_write(o, "csched test", cases, s->tests.n);
	free(cases);
	return e;
}
