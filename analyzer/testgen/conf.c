/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * testgen.conf: what the user knows better than the debug information. One statement a line:
 *   leave-out FUNCTION | only FUNCTION | number N | text WORDS | constructor|method|destructor|initialiser FUNCTION |
 *   setup FUNCTION | values FUNCTION PARAMETER VALUE... | length FUNCTION PARAMETER PARAMETER |
 *   set FUNCTION PARAMETER MEMBER VALUE | takes FUNCTION PARAMETER | borrows FUNCTION PARAMETER | returns FUNCTION owned|borrowed
 * Parameters are numbered from 1.
 */
#include "analyzer/testgen/api.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_AMONG "testgen.conf names others with `only'"

static struct api_function *named(struct api *a, const char *name)
{
	for (size_t i = 0; i < a->functions.n; i++) {
		struct api_function *f = &a->functions.v[i];

		if (!strcmp(f->symbol, name) || !strcmp(f->name, name))
			return f;
	}
	return NULL;
}

/* The parameter that is the object; a constructor has none. */
static bool give_role(struct api_function *f, enum api_role role)
{
	if (role == API_CONSTRUCTOR) {
		f->object = f->result.object;
		f->role = role;
		return f->result.kind == API_OBJECT;
	}
	for (unsigned i = 0; i < f->nparams; i++)
		if (f->params[i].kind == API_OBJECT) {
			f->object = f->params[i].object;
			f->self = i;
			f->role = role;
			return true;
		}
	return false;
}

/* ---- statements about a function ---- */

/* The next word, or text in quotation marks, of the line; NULL: there is none. It is cut out. */
static char *next_word(char **at, bool *quoted)
{
	char *word = *at + strspn(*at, " \t"), *end;

	if (!*word)
		return NULL;
	*quoted = *word == '"';
	word += *quoted;
	end = *quoted ? strchr(word, '"') : word + strcspn(word, " \t");
	if (!end)
		return NULL;
	*at = end + (*end != 0);
	*end = 0;
	return word;
}

static struct api_type *parameter(struct api_function *f, char **rest)
{
	bool quoted;
	char *word = next_word(rest, &quoted), *end;
	unsigned long n = word ? strtoul(word, &end, 10) : 0;

	return word && !*end && n >= 1 && n <= f->nparams ? &f->params[n - 1] : NULL;
}

static err_t values(struct api_function *f, char *rest)
{
	struct api_type *t = parameter(f, &rest);
	bool quoted;
	char *word, *end;

	if (!t)
		return err_new(ERR_INPUT, "values FUNCTION PARAMETER VALUE...: '%s' has parameters 1 to %u", f->name, f->nparams);
	while ((word = next_word(&rest, &quoted))) {
		int64_t v = strtoll(word, &end, 0);

		if (quoted)
			vec_push(&t->texts, xstrdup(word));
		else if (*word && !*end)
			vec_push(&t->numbers, v);
		else
			return err_new(ERR_INPUT, "'%s' is neither a number nor a text in quotation marks", word);
	}
	return t->numbers.n || t->texts.n ? NULL : err_new(ERR_INPUT, "there is no value");
}

static err_t length(struct api_function *f, char *rest)
{
	struct api_type *pointer = parameter(f, &rest), *t = parameter(f, &rest);

	if (!pointer || !t || t->kind != API_INT)
		return err_new(ERR_INPUT, "length FUNCTION POINTER NUMBER: two parameters of '%s', 1 to %u, the second one an integer",
			       f->name, f->nparams);
	t->length_of = (unsigned)(pointer - f->params) + 1;
	return NULL;
}

static err_t takes(struct api_function *f, char *rest)
{
	struct api_type *t = parameter(f, &rest);

	if (!t || t->kind != API_OBJECT)
		return err_new(ERR_INPUT, "takes FUNCTION PARAMETER: one of '%s' that is an object", f->name);
	t->takes = true;
	return NULL;
}

/* It works on the object and leaves it whole, whatever its name says. */
static err_t borrows(struct api_function *f, char *rest)
{
	struct api_type *t = parameter(f, &rest);

	if (!t || t->kind != API_OBJECT)
		return err_new(ERR_INPUT, "borrows FUNCTION PARAMETER: one of '%s' that is an object", f->name);
	t->takes = false;
	f->object = t->object;
	f->self = (unsigned)(t - f->params);
	f->role = API_METHOD;
	return NULL;
}

static err_t returns(struct api_function *f, char *rest)
{
	bool quoted, owned;
	char *word = next_word(&rest, &quoted);

	if (f->result.kind != API_OBJECT || !word || (strcmp(word, "owned") && strcmp(word, "borrowed")))
		return err_new(ERR_INPUT, "returns FUNCTION owned|borrowed: '%s' has to return an object", f->name);
	owned = !strcmp(word, "owned");
	f->result.takes = !owned;
	if (owned) {
		f->object = f->result.object;
		f->role = API_CONSTRUCTOR;
	} else if (f->role == API_CONSTRUCTOR) {
		f->object = API_NONE;
		f->role = API_PLAIN;
	}
	return NULL;
}

/* MEMBER of the structure that the parameter points to gets a number, a buffer, or a buffer that begins with a text. */
static err_t set(struct api *a, struct api_function *f, char *rest)
{
	struct api_type *t = parameter(f, &rest);
	bool quoted = false, ignored;
	char *member = next_word(&rest, &ignored), *value = member ? next_word(&rest, &quoted) : NULL, *end;
	const struct api_field *field = NULL;

	if (!t || t->kind != API_OBJECT || !value)
		return err_new(ERR_INPUT, "set FUNCTION PARAMETER MEMBER VALUE: a parameter of '%s' that is an object, a member of it, and "
			       "a number, buffer, or a text in quotation marks", f->name);
	const struct api_object *o = &a->objects.v[t->object];
	for (size_t i = 0; i < o->fields.n; i++)
		if (!strcmp(o->fields.v[i].name, member))
			field = &o->fields.v[i];
	if (!field)
		return err_new(ERR_INPUT, "'%s' has no member '%s' that is known", o->name, member);
	struct api_set s = { .offset = field->offset, .size = field->size, .buffer = quoted || !strcmp(value, "buffer") };
	s.number = s.buffer ? 0 : strtoll(value, &end, 0);
	if (!s.buffer && *end)
		return err_new(ERR_INPUT, "'%s' is neither a number nor buffer nor a text in quotation marks", value);
	if (s.buffer && field->size != sizeof(void *))
		return err_new(ERR_INPUT, "'%s' is no pointer", member);
	if (t->sets.n == API_SETS)
		return err_new(ERR_INPUT, "at most %d members of one parameter can be set", API_SETS);
	s.text = quoted ? xstrdup(value) : NULL;
	s.member = xstrdup(member);
	vec_push(&t->sets, s);
	return NULL;
}

/* ---- all statements ---- */

static err_t pools(struct api_conf *c, const char *key, const char *value)
{
	char *end;
	int64_t v = strtoll(value, &end, 0);

	if (!strcmp(key, "text")) {
		vec_push(&c->texts, xstrdup(value));
		return NULL;
	}
	if (!*value || *end)
		return err_new(ERR_INPUT, "'%s' is not a number", value);
	vec_push(&c->numbers, v);
	return NULL;
}

/* Functions that are named so are all that is called. */
static err_t keep_only(struct api *a, struct api_conf *c, struct api_function *f)
{
	for (size_t i = 0; i < a->functions.n && !c->only; i++)
		if (!a->functions.v[i].left_out) {
			api_leave_out(&a->functions.v[i], NOT_AMONG);
		}
	c->only = true;
	if (f->left_out && !strcmp(f->left_out, NOT_AMONG)) {
		free(f->left_out);
		f->left_out = NULL;
	}
	return NULL;
}

static const struct {
	const char *key;
	enum api_role role;                          /* not API_PLAIN: this is what the function is */
	err_t (*about)(struct api_function *, char *);
} statements[] = {
	{ "leave-out", API_PLAIN, NULL }, { "only", API_PLAIN, NULL }, { "setup", API_PLAIN, NULL },
	{ "constructor", API_CONSTRUCTOR, NULL }, { "initialiser", API_INITIALISER, NULL },
	{ "method", API_METHOD, NULL }, { "destructor", API_DESTRUCTOR, NULL }, { "values", API_PLAIN, values },
	{ "length", API_PLAIN, length }, { "takes", API_PLAIN, takes }, { "borrows", API_PLAIN, borrows },
	{ "returns", API_PLAIN, returns }, { "set", API_PLAIN, NULL },
};
#define NSTATEMENTS (sizeof statements / sizeof *statements)

static err_t statement(struct api *a, struct api_conf *c, const char *key, char *value)
{
	char *rest = value;
	size_t i = 0;
	bool quoted;

	if (!strcmp(key, "number") || !strcmp(key, "text"))
		return pools(c, key, value);
	while (i < NSTATEMENTS && strcmp(key, statements[i].key))
		i++;
	if (i == NSTATEMENTS)
		return err_new(ERR_INPUT, "'%s' is no statement; there are leave-out, only, setup, number, text, values, length, "
			       "set, takes, borrows, returns, constructor, initialiser, method and destructor", key);
	/* The name of a C++ function has spaces. */
	struct api_function *f = named(a, value);
	if (!f) {
		char *word = next_word(&rest, &quoted);

		f = word ? named(a, word) : NULL;
	} else {
		rest = value + strlen(value);
	}
	if (!f)
		return err_new(ERR_INPUT, "the library exports no function '%s'", value);
	if (!f->result.spelling)
		return err_new(ERR_INPUT, "nothing is known about the parameters of '%s'", value);
	if (!strcmp(key, "set"))
		return set(a, f, rest);
	if (statements[i].about)
		return statements[i].about(f, rest);
	if (!strcmp(key, "leave-out"))
		api_leave_out(f, "testgen.conf says so");
	if (!strcmp(key, "only"))
		return keep_only(a, c, f);
	if (!strcmp(key, "setup"))
		vec_push(&c->setup, xstrdup(f->symbol));
	if (statements[i].role != API_PLAIN && !give_role(f, statements[i].role))
		return err_new(ERR_INPUT, "'%s' cannot be a %s: it has no such object", value, key);
	return NULL;
}

err_t api_conf_read(const char *path, struct api *a, struct api_conf *out)
{
	FILE *f = fopen(path, "re");
	char line[1024];
	unsigned n = 0;
	err_t e = NULL;

	if (!f)
		return err_errno("%s", path);
	while (!e && fgets(line, sizeof line, f)) {
		char *key = line + strspn(line, " \t"), *value;

		n++;
		key[strcspn(key, "\r\n")] = 0;
		if (!*key || *key == '#')
			continue;
		value = key + strcspn(key, " \t");
		if (*value)
			*value++ = 0;
		value += strspn(value, " \t");
		e = err_wrap(statement(a, out, key, value), "%s:%u", path, n);
	}
	fclose(f);
	return e;
}

void api_conf_free(struct api_conf *c)
{
	for (size_t i = 0; i < c->texts.n; i++)
		free(c->texts.v[i]);
	for (size_t i = 0; i < c->setup.n; i++)
		free(c->setup.v[i]);
	vec_free(&c->numbers);
	vec_free(&c->texts);
	vec_free(&c->setup);
}
