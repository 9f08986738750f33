/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Declarations of a C header, for a library without debug information: the compiler says which of the
 * exported names the header declares, and gives their types as debug information.
 */
#include "analyzer/testgen/api_internal.h"

#include "analyzer/hunt/files.h"
#include "common/strbuf.h"

#include <dwarf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLE "csched_type_of_"

#define MOST_FLAGS 64 /* words of $CPPFLAGS */

/* argv and the words of $CPPFLAGS, which say where headers are; malloc'd, the words in *words. */
static char **with_flags(char **argv, char **words)
{
	const char *flags = getenv("CPPFLAGS");
	char **all = xcalloc(32 + MOST_FLAGS, sizeof *all), *save = NULL;
	unsigned n = 0;

	for (; argv[n]; n++)
		all[n] = argv[n];
	*words = xstrdup(flags ? flags : "");
	for (char *w = strtok_r(*words, " \t\n", &save); w && n < 31 + MOST_FLAGS; w = strtok_r(NULL, " \t\n", &save))
		all[n++] = w;
	return all;
}

/* Runs the compiler; its messages go to `said`. */
static bool compile(char **given, const char *said)
{
	char *words, **argv = with_flags(given, &words);
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		int fd = open(said, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		dup2(fd, 1);
		dup2(fd, 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	bool good = pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
	free(argv);
	free(words);
	return good;
}

/* header: a path, or a name for #include <...>. */
static void include(FILE *f, const char *header)
{
	char full[PATH_MAX];

	if (realpath(header, full))
		fprintf(f, "#include \"%s\"\n", full);
	else
		fprintf(f, "#include <%s>\n", header);
}

/* gcc -aux-info prints one declaration a line: the name is what stands before the '('. */
static bool declares(const char *text, const char *symbol)
{
	size_t n = strlen(symbol);

	for (const char *p = strstr(text, symbol); p; p = strstr(p + 1, symbol))
		if ((p[-1] == ' ' || p[-1] == '*') && p[n] == ' ' && p[n + 1] == '(')
			return true;
	return false;
}

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "re");
	struct strbuf b = { 0 };
	char part[65536];
	size_t n;

	strbuf_str(&b, " ");
	while (f && (n = fread(part, 1, sizeof part, f)) > 0)
		strbuf_add(&b, part, n);
	if (f)
		fclose(f);
	return strbuf_take(&b);
}

static void take_type(struct api *a, Dwarf_Die *variable)
{
	const char *name = dwarf_diename(variable);
	Dwarf_Attribute at;
	Dwarf_Die pointer, type;

	if (!name || strncmp(name, VARIABLE, sizeof VARIABLE - 1) || !dwarf_attr(variable, DW_AT_type, &at) ||
	    !dwarf_formref_die(&at, &pointer) || !dwarf_attr(&pointer, DW_AT_type, &at) ||
	    !dwarf_formref_die(&at, &type))
		return;
	for (size_t i = 0; i < a->functions.n; i++) {
		struct api_function *f = &a->functions.v[i];

		if (!strcmp(f->symbol, name + sizeof VARIABLE - 1) && !f->result.spelling)
			api_read_signature(a, &type, f);
	}
}

static void take_types(struct api *a, const char *object)
{
	int fd = open(object, O_RDONLY | O_CLOEXEC);
	Dwarf *dw = fd >= 0 ? dwarf_begin(fd, DWARF_C_READ) : NULL;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die, child;
	uint8_t type;

	while (dw && !dwarf_get_units(dw, cu, &cu, NULL, &type, &die, NULL)) {
		if (dwarf_child(&die, &child))
			continue;
		do {
			if (dwarf_tag(&child) == DW_TAG_variable)
				take_type(a, &child);
		} while (!dwarf_siblingof(&child, &child));
	}
	dwarf_end(dw);
	if (fd >= 0)
		close(fd);
}

static err_t with_compiler(struct api *a, const char *header, const char *dir)
{
	char source[PATH_MAX], object[PATH_MAX], list[PATH_MAX], said[PATH_MAX];

	snprintf(source, sizeof source, "%s/h.c", dir);
	snprintf(object, sizeof object, "%s/h.so", dir);
	snprintf(list, sizeof list, "%s/list", dir);
	snprintf(said, sizeof said, "%s/said", dir);
	FILE *f = fopen(source, "we");
	if (!f)
		return err_errno("%s", source);
	include(f, header);
	fclose(f);
	char *first[] = { "gcc", "-w", "-fsyntax-only", "-D_GNU_SOURCE", "-aux-info", list, source, NULL };
	if (!compile(first, said)) {
		char *text = slurp(said);
		err_t e = err_new(ERR_INPUT, "--header %s cannot be compiled: %.300s", header, text);

		free(text);
		return e;
	}
	char *text = slurp(list);
	f = fopen(source, "we");
	if (!f) {
		free(text);
		return err_errno("%s", source);
	}
	include(f, header);
	for (size_t i = 0; i < a->functions.n; i++)
		if (declares(text, a->functions.v[i].symbol))
			fprintf(f, "__typeof__(%s) *" VARIABLE "%s;\n", a->functions.v[i].symbol,
				a->functions.v[i].symbol);
	fclose(f);
	free(text);
	char *second[] = { "gcc", "-w", "-g", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", object, source, NULL };
	if (!compile(second, said))
		return err_new(ERR_INPUT, "--header %s: its declarations cannot be compiled", header);
	take_types(a, object);
	return NULL;
}

err_t api_read_header(struct api *a, const char *header)
{
	char dir[PATH_MAX - 64];

	TRY(files_make_work("csched-header", dir, sizeof dir));
	err_t e = with_compiler(a, header, dir);
	files_remove_tree(dir);
	return e;
}
