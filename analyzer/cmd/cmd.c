/* Option parsing and help, from one table per command. */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/nearest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELP_COLUMN 24

int cmd_fail(const char *name, err_t e)
{
	if (!e)
		return 0;
	int status = e->code;

	/* It may hold names from the trace, or from a command line that somebody pasted. */
	char *safe = term_text_of(e->msg, strlen(e->msg));

	fflush(stdout);
	fprintf(stderr, "csched %s: %s\n", name, safe);
	free(safe);
	err_free(e);
	return status;
}

struct term cmd_term(const struct cmd_common *common)
{
	struct term t;

	term_init(&t, stdout, common->color);
	return t;
}

/* ---- help ---- */

static void help_option(const struct cmd_option *o)
{
	char left[80];
	const char *line = o->help;

	snprintf(left, sizeof left, "  %c%c%s--%s%s%s", o->letter ? '-' : ' ',
		 o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
		 o->arg ? " " : "", o->arg ? o->arg : "");
	printf("%-*s", HELP_COLUMN, left);
	if (strlen(left) >= HELP_COLUMN)
		printf("\n%*s", HELP_COLUMN, "");
	for (const char *end; (end = strchr(line, '\n')); line = end + 1)
		printf("%.*s\n%*s", (int)(end - line), line, HELP_COLUMN, "");
	puts(line);
}

static const struct cmd_option json_option = {
	"json", 0, NULL, CMD_FLAG, NULL, "print the answer as JSON (see csched(1))"
};
static const struct cmd_option color_option = {
	"color", 0, "WHEN", CMD_TEXT, NULL, "auto (default), always or never"
};
static const struct cmd_option help_option_itself = {
	"help", 'h', NULL, CMD_FLAG, NULL, "this text"
};

static void help(const struct cmd_spec *spec)
{
	printf("usage: csched %s %s\n\n%s\n\noptions:\n", spec->name, spec->usage, spec->summary);
	for (const struct cmd_option *o = spec->options; o && o->name; o++)
		help_option(o);
	if (spec->extra_help)
		fputs(spec->extra_help, stdout);
	if (spec->common) {
		help_option(&json_option);
		help_option(&color_option);
	}
	help_option(&help_option_itself);
	if (spec->more)
		printf("\n%s", spec->more);
}

/* ---- parsing ---- */

/* Where the parser stands. */
struct parser {
	const struct cmd_spec *spec;
	int argc;
	char **argv;
	int i;
	bool help;
};

static err_t set_uint(const char *name, const char *text, uint64_t *to)
{
	char *end;

	errno = 0;
	*to = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-')
		return err_new(ERR_USAGE, "--%s: '%s' is not a number", name, text);
	return NULL;
}

static err_t set_num(const char *name, const char *text, double *to)
{
	char *end;

	*to = strtod(text, &end);
	if (end == text || *end || !isfinite(*to) || *to < 0)
		return err_new(ERR_USAGE, "--%s: '%s' is not a number", name, text);
	return NULL;
}

static err_t apply(struct parser *p, const struct cmd_option *o, const char *value)
{
	if (o == &help_option_itself) {
		p->help = true;
		return NULL;
	}
	if (o == &json_option) {
		p->spec->common->json = true;
		return NULL;
	}
	if (o == &color_option) {
		if (term_when_parse(value, &p->spec->common->color))
			return NULL;
		return err_new(ERR_USAGE, "--color: '%s' is not auto, always or never", value);
	}
	switch (o->kind) {
	case CMD_FLAG:
		*(bool *)o->to = true;
		return NULL;
	case CMD_TEXT:
		*(const char **)o->to = value;
		return NULL;
	case CMD_UINT:
		return set_uint(o->name, value, o->to);
	case CMD_NUM:
		return set_num(o->name, value, o->to);
	case CMD_CALL: {
		const struct cmd_call *c = o->to;

		return c->set(c->arg, o->name, value);
	}
	}
	return NULL;
}

static bool names(const struct cmd_option *o, const char *name, size_t len, char letter)
{
	return name ? strlen(o->name) == len && !memcmp(o->name, name, len)
		    : letter && o->letter == letter;
}

static const struct cmd_option *find(const struct cmd_spec *spec, const char *name, size_t len,
				     char letter)
{
	const struct cmd_option *shared[] = { &help_option_itself,
					      spec->common ? &json_option : NULL,
					      spec->common ? &color_option : NULL };

	for (const struct cmd_option *o = spec->options; o && o->name; o++)
		if (names(o, name, len, letter))
			return o;
	for (size_t i = 0; i < 3; i++)
		if (shared[i] && names(shared[i], name, len, letter))
			return shared[i];
	return NULL;
}

static err_t no_option(const struct cmd_spec *spec, const char *name, size_t len)
{
	struct nearest near;

	nearest_begin(&near, name, len);
	for (const struct cmd_option *o = spec->options; o && o->name; o++)
		nearest_try(&near, o->name);
	if (near.found)
		return err_new(ERR_USAGE, "no option --%.*s (did you mean --%s?); see csched %s --help", (int)len, name,
			       near.found, spec->name);
	return err_new(ERR_USAGE, "no option --%.*s; see csched %s --help", (int)len, name, spec->name);
}

/* --name, --name=value, --name value; moves p->i past it. */
static err_t long_option(struct parser *p)
{
	const char *name = p->argv[p->i] + 2, *eq = strchr(name, '=');
	size_t len = eq ? (size_t)(eq - name) : strlen(name);
	const struct cmd_option *o = find(p->spec, name, len, 0);

	p->i++;
	if (!o)
		return no_option(p->spec, name, len);
	if (!o->arg && eq)
		return err_new(ERR_USAGE, "--%s takes no argument", o->name);
	if (!o->arg)
		return apply(p, o, NULL);
	if (!eq && p->i >= p->argc)
		return err_new(ERR_USAGE, "--%s needs an argument (%s)", o->name, o->arg);
	return apply(p, o, eq ? eq + 1 : p->argv[p->i++]);
}

/* -ab, -o VALUE, -oVALUE; moves p->i past it. */
static err_t short_options(struct parser *p)
{
	const char *s = p->argv[p->i++] + 1;

	for (; *s; s++) {
		const struct cmd_option *o = find(p->spec, NULL, 0, *s);

		if (!o)
			return err_new(ERR_USAGE, "no option -%c; see csched %s --help", *s,
				       p->spec->name);
		if (!o->arg) {
			TRY(apply(p, o, NULL));
			continue;
		}
		if (!s[1] && p->i >= p->argc)
			return err_new(ERR_USAGE, "-%c needs an argument (%s)", *s, o->arg);
		return apply(p, o, s[1] ? s + 1 : p->argv[p->i++]);
	}
	return NULL;
}

static err_t parse(struct parser *p, struct cmd_args *args)
{
	const struct cmd_spec *spec = p->spec;

	for (p->i = 1; p->i < p->argc;) {
		char *a = p->argv[p->i];
		bool taken = false;

		if (args->dashes || a[0] != '-' || !a[1]) {
			args->v[args->n++] = a;
			p->i++;
			if (spec->command_line)
				args->dashes = true;
			continue;
		}
		if (!strcmp(a, "--")) {
			args->dashes = true;
			p->i++;
			continue;
		}
		if (spec->extra)
			TRY(spec->extra(spec->extra_arg, p->argc, p->argv, &p->i, &taken));
		if (!taken)
			TRY(a[1] == '-' ? long_option(p) : short_options(p));
	}
	args->v[args->n] = NULL;
	return NULL;
}

bool cmd_parse(const struct cmd_spec *spec, int argc, char **argv, struct cmd_args *args,
	       int *status)
{
	struct parser p = { .spec = spec, .argc = argc, .argv = argv };

	*args = (struct cmd_args){ .v = argv };
	*status = cmd_fail(spec->name, parse(&p, args));
	if (*status)
		return false;
	if (p.help) {
		help(spec);
		return false;
	}
	if (args->n >= spec->min_args && args->n <= spec->max_args)
		return true;
	fprintf(stderr, "usage: csched %s %s\n", spec->name, spec->usage);
	*status = ERR_USAGE;
	return false;
}
