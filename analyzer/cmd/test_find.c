/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tests that a command line runs, as ctest, meson or the test program itself lists them; else the command is the test. */
#include "analyzer/cmd/test.h"

#include "common/json_read.h"
#include "common/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONGEST_LIST (64u << 20) /* bytes that a list of tests may have */

typedef VEC(char *) words_t;

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- asking ---- */

/* What the command prints on its standard output; its status must be 0. */
static err_t ask(char **argv, char **text, size_t *n)
{
	int out[2], status = 0;
	ssize_t got;

	if (pipe2(out, O_CLOEXEC))
		return err_errno("pipe");
	pid_t pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		dup2(null, 0);
		dup2(out[1], 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(out[1]);
	*text = xcalloc(1, 1);
	for (*n = 0;; *n += (size_t)got) {
		*text = xrealloc(*text, *n + 65537);
		got = pid > 0 ? read(out[0], *text + *n, 65536) : 0;
		if (got <= 0 || *n > LONGEST_LIST)
			break;
	}
	(*text)[*n] = 0;
	close(out[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status))
		return NULL;
	free(*text);
	*text = NULL;
	return err_new(ERR_INPUT, "%s did not list its tests (its status was %d)", argv[0],
		       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static err_t ask_json(words_t *words, struct jv *out)
{
	char *text;
	size_t n;

	*out = (struct jv){ 0 };
	vec_push(words, NULL);
	TRY(ask(words->v, &text, &n));
	err_t e = err_wrap(jv_read(text, n, out), "%s", words->v[0]);
	free(text);
	return e;
}

static void add_words(struct test_case *t, const struct jv *command)
{
	for (size_t i = 0; command && i < command->n; i++)
		vec_push(&t->argv, xstrdup(jv_text(&command->items[i])));
}

static void add_test(struct test_suite *s, struct test_case *t)
{
	if (!t->argv.n && !t->skipped)
		t->skipped = "it has no command";
	vec_push(&t->argv, NULL);
	vec_push(&t->env, NULL);
	vec_push(&s->tests, *t);
}

/* ---- ctest ---- */

static void ctest_property(struct test_case *t, const char *name, const struct jv *value)
{
	if (!strcmp(name, "WORKING_DIRECTORY") && *jv_text(value))
		t->directory = xstrdup(jv_text(value));
	else if (!strcmp(name, "DISABLED") && value && value->number)
		t->skipped = "it is disabled";
	else if (!strcmp(name, "WILL_FAIL") && value && value->number)
		t->skipped = "it is meant to fail (WILL_FAIL)";
	for (size_t i = 0; !strcmp(name, "ENVIRONMENT") && value && i < value->n; i++)
		vec_push(&t->env, xstrdup(jv_text(&value->items[i])));
}

static err_t find_ctest(char **argv, struct test_suite *s)
{
	words_t words = { 0 };
	struct jv all;

	for (char **a = argv; *a; a++)
		vec_push(&words, *a);
	vec_push(&words, (char *)"--show-only=json-v1");
	err_t e = ask_json(&words, &all);
	const struct jv *tests = jv_get(&all, "tests");

	for (size_t i = 0; !e && tests && i < tests->n; i++) {
		const struct jv *properties = jv_get(&tests->items[i], "properties");
		struct test_case t = { .name = xstrdup(jv_text(jv_get(&tests->items[i], "name"))) };

		add_words(&t, jv_get(&tests->items[i], "command"));
		for (size_t k = 0; properties && k < properties->n; k++)
			ctest_property(&t, jv_text(jv_get(&properties->items[k], "name")),
				       jv_get(&properties->items[k], "value"));
		add_test(s, &t);
	}
	jv_free(&all);
	vec_free(&words);
	s->kind = "ctest";
	return e;
}

/* ---- meson ---- */

static const char *meson_directory(char **argv)
{
	for (char **a = argv; *a; a++)
		if (!strncmp(*a, "-C", 2))
			return (*a)[2] ? *a + 2 : a[1] ? a[1] : ".";
	return ".";
}

static err_t find_meson(char **argv, struct test_suite *s)
{
	words_t words = { 0 };
	struct jv all;

	vec_push(&words, argv[0]);
	vec_push(&words, (char *)"introspect");
	vec_push(&words, (char *)"--tests");
	vec_push(&words, (char *)meson_directory(argv));
	err_t e = ask_json(&words, &all);

	for (size_t i = 0; !e && all.kind == JV_ARRAY && i < all.n; i++) {
		const struct jv *env = jv_get(&all.items[i], "env");
		const char *directory = jv_text(jv_get(&all.items[i], "workdir"));
		struct test_case t = { .name = xstrdup(jv_text(jv_get(&all.items[i], "name"))),
				       .directory = *directory ? xstrdup(directory) : NULL };

		add_words(&t, jv_get(&all.items[i], "cmd"));
		for (size_t k = 0; env && env->kind == JV_OBJECT && k < env->n; k++)
			vec_push(&t.env, xasprintf("%s=%s", env->keys[k], jv_text(&env->items[k])));
		add_test(s, &t);
	}
	jv_free(&all);
	vec_free(&words);
	s->kind = "meson";
	return e;
}

/* ---- googletest ---- */

/* Its options stand in the program, or in the library it is linked with; that one says so in the program's list of libraries. */
static bool is_googletest(const char *path)
{
	int fd = strchr(path, '/') ? newfile_open_regular(AT_FDCWD, path, true) : -1;
	struct stat st;
	bool found = false;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 4) {
		char *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		if (p != MAP_FAILED) {
			found = !memcmp(p, "\177ELF", 4) && (memmem(p, (size_t)st.st_size, "gtest_list_tests", 16) ||
							       memmem(p, (size_t)st.st_size, "libgtest", 8));
			munmap(p, (size_t)st.st_size);
		}
	}
	if (fd >= 0)
		close(fd);
	return found;
}

static void add_googletest(struct test_suite *s, char **argv, const char *suite, const char *name)
{
	struct test_case t = { .name = xasprintf("%s%s", suite, name) };

	for (char **a = argv; *a; a++)
		vec_push(&t.argv, xstrdup(*a));
	vec_push(&t.argv, xasprintf("--gtest_filter=%s%s", suite, name));
	add_test(s, &t);
}

/* "Suite." in a line of its own, then "  Name" for each test; what follows a '#' is a remark. */
static err_t find_googletest(char **argv, struct test_suite *s)
{
	words_t words = { 0 };
	char *text = NULL, suite[512] = "";
	size_t n;

	for (char **a = argv; *a; a++)
		vec_push(&words, *a);
	vec_push(&words, (char *)"--gtest_list_tests");
	vec_push(&words, NULL);
	err_t e = ask(words.v, &text, &n);
	for (char *line = e ? NULL : strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		bool test = *line == ' ';

		line += strspn(line, " ");
		line[strcspn(line, " #\r")] = 0;
		if (test && *suite && strncmp(line, "DISABLED_", 9))
			add_googletest(s, argv, suite, line);
		else if (!test)
			snprintf(suite, sizeof suite, "%s", *line && line[strlen(line) - 1] == '.' ? line : "");
	}
	free(text);
	vec_free(&words);
	s->kind = "googletest";
	return e;
}

/* ---- any ---- */

static void find_command(char **argv, struct test_suite *s)
{
	struct test_case t = { .name = xstrdup(base_name(argv[0])) };

	for (char **a = argv; *a; a++)
		vec_push(&t.argv, xstrdup(*a));
	add_test(s, &t);
	s->kind = "command";
}

err_t test_find(char **argv, struct test_suite *s)
{
	err_t e = NULL;

	*s = (struct test_suite){ 0 };
	if (!strcmp(base_name(argv[0]), "ctest"))
		e = find_ctest(argv, s);
	else if (!strcmp(base_name(argv[0]), "meson"))
		e = find_meson(argv, s);
	else if (is_googletest(argv[0]))
		e = find_googletest(argv, s);
	else
		find_command(argv, s);
	if (!e && !s->tests.n)
		e = err_new(ERR_NOANSWER, "%s lists no tests", argv[0]);
	return e;
}

void test_suite_free(struct test_suite *s)
{
	for (size_t i = 0; i < s->tests.n; i++) {
		struct test_case *t = &s->tests.v[i];

		for (size_t k = 0; k < t->argv.n; k++)
			free(t->argv.v[k]);
		for (size_t k = 0; k < t->env.n; k++)
			free(t->env.v[k]);
		for (size_t k = 0; k < t->failures.n; k++) {
			free(t->failures.v[k].text);
			free(t->failures.v[k].trace);
		}
		vec_free(&t->argv);
		vec_free(&t->env);
		vec_free(&t->failures);
		free(t->name);
		free(t->directory);
		free(t->error);
	}
	vec_free(&s->tests);
}
