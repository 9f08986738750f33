/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * testgen.conf: what the user knows better than the debug information. One statement a line:
 *   leave-out FUNCTION | number N | text WORDS | constructor|method|destructor|initialiser FUNCTION | setup FUNCTION
 */
#include "analyzer/testgen/api.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static err_t statement(struct api *a, struct api_conf *c, const char *key, char *value)
{
	static const struct { const char *key; enum api_role role; } roles[] = {
		{ "constructor", API_CONSTRUCTOR }, { "initialiser", API_INITIALISER }, { "method", API_METHOD },
		{ "destructor", API_DESTRUCTOR },
	};
	char *end;

	if (!strcmp(key, "number")) {
		int64_t v = strtoll(value, &end, 0);

		if (!*value || *end)
			return err_new(ERR_INPUT, "'%s' is not a number", value);
		vec_push(&c->numbers, v);
		return NULL;
	}
	if (!strcmp(key, "text")) {
		vec_push(&c->texts, xstrdup(value));
		return NULL;
	}
	struct api_function *f = named(a, value);
	bool known = !strcmp(key, "leave-out") || !strcmp(key, "setup");
	for (size_t i = 0; i < 4; i++)
		known |= !strcmp(key, roles[i].key);
	if (!known)
		return err_new(ERR_INPUT, "'%s' is no statement; there are leave-out, setup, number, text, constructor, "
			       "initialiser, method and destructor", key);
	if (!f)
		return err_new(ERR_INPUT, "the library exports no function '%s'", value);
	if (!strcmp(key, "leave-out"))
		api_leave_out(f, "testgen.conf says so");
	if (!strcmp(key, "setup"))
		vec_push(&c->setup, xstrdup(f->symbol));
	for (size_t i = 0; i < 4; i++)
		if (!strcmp(key, roles[i].key) && !give_role(f, roles[i].role))
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
