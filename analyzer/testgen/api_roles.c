/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which functions make, use and end objects of a type; finding objects and functions by name. */
#include "analyzer/testgen/api_internal.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

char *api_demangle(const char *symbol)
{
	typedef char *demangle_fn(const char *, char *, size_t *, int *);
	static demangle_fn *fn;
	static bool tried;
	char *text = NULL;
	int status;

	if (strncmp(symbol, "_Z", 2) || strlen(symbol) > 4096)
		return xstrdup(symbol);
	if (!tried) {
		void *lib = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);

		fn = lib ? (demangle_fn *)dlsym(lib, "__cxa_demangle") : NULL;
		tried = true;
	}
	text = fn ? fn(symbol, NULL, NULL, &status) : NULL;
	return text ? text : xstrdup(symbol);
}

char *api_demangle_bare(const char *symbol)
{
	char *s = api_demangle(symbol);
	int depth = 0;

	for (char *p = s; *p; p++) {
		depth += *p == '<';
		depth -= *p == '>' && depth > 0;
		if (!depth && *p == '(' && strncmp(p, "(anonymous", 10) && (p < s + 8 || strncmp(p - 8, "operator", 8))) {
			*p = 0;
			break;
		}
	}
	return s;
}

void api_leave_out(struct api_function *f, const char *why)
{
	if (!f->left_out)
		f->left_out = xstrdup(why);
}

const char *api_role_name(enum api_role r)
{
	static const char *const names[] = { "function", "constructor", "constructor (fills a pointer)",
					     "constructor (initialises memory)", "method", "destructor" };
	return names[r];
}

/* Is `word` in the name, at the ends of its parts: "queue_free" has "free", "freeze" has not. */
static bool has_word(const char *name, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = strcasestr(name, word); p; p = strcasestr(p + 1, word)) {
		bool begins = p == name || !isalpha((unsigned char)p[-1]) ||
			      (islower((unsigned char)p[-1]) && isupper((unsigned char)*p));
		if (begins && !islower((unsigned char)p[n]))
			return true;
	}
	return false;
}

static bool has_any(const char *name, const char *const *words)
{
	for (; *words; words++)
		if (has_word(name, *words))
			return true;
	return false;
}

static const char *const ends[] = { "free", "destroy", "delete", "close", "release", "unref", "fini", "cleanup",
				    "deinit", "dispose", "term", "end", "finalize", "decref", NULL };
static const char *const begins[] = { "init", "initialize", "setup", "construct", "ctor", "create", "open", NULL };

/* "list_free" and "list_destroy", but not "list_delete_item". */
static bool has_last(const char *name, const char *const *words)
{
	size_t length = strlen(name);

	for (; *words; words++) {
		size_t n = strlen(*words);

		if (length >= n && !strcasecmp(name + length - n, *words) && has_word(name, *words))
			return true;
	}
	return false;
}

static bool is_special(const char *symbol, char kind, char variant)
{
	const char *p = symbol + strlen(symbol);

	/* _ZN...C1E...: the last such pair that follows the class name. */
	for (p = strchr(symbol, kind); p; p = strchr(p + 1, kind))
		if (p[1] == variant && p[2] == 'E' && p > symbol + 2)
			return true;
	return false;
}

static void cxx_role(struct api_function *f)
{
	if (is_special(f->symbol, 'C', '2') || is_special(f->symbol, 'D', '2') || is_special(f->symbol, 'D', '0'))
		api_leave_out(f, "a variant of another constructor or destructor");
	if (!f->nparams || f->params[0].kind != API_OBJECT) {
		if (f->result.kind == API_OBJECT && !f->result.is_const && strncmp(f->symbol, "_ZNK", 4)) {
			f->object = f->result.object;
			f->role = API_CONSTRUCTOR;
		}
		return;
	}
	f->object = f->params[0].object;
	f->self = 0;
	f->role = is_special(f->symbol, 'C', '1') || is_special(f->symbol, 'C', '2') ? API_INITIALISER :
		  strstr(f->symbol, "D1E") || strstr(f->symbol, "D2E") || strstr(f->symbol, "D0E") ? API_DESTRUCTOR :
		  API_METHOD;
}

static int first_param(const struct api_function *f, enum api_kind kind)
{
	for (unsigned i = 0; i < f->nparams; i++)
		if (f->params[i].kind == kind)
			return (int)i;
	return -1;
}

static unsigned count_objects(const struct api_function *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->nparams; i++)
		n += f->params[i].kind == API_OBJECT;
	return n;
}

static void c_role(struct api *a, struct api_function *f)
{
	int object = first_param(f, API_OBJECT), out = first_param(f, API_OUT);

	if (object >= 0) {
		const struct api_type *t = &f->params[object];

		f->object = t->object;
		f->self = (unsigned)object;
		f->role = API_METHOD;
		if (count_objects(f) == 1 && !t->is_const && has_last(f->name, ends))
			f->role = API_DESTRUCTOR;
		else if (!object && !t->is_const && a->objects.v[t->object].size && has_any(f->name, begins) &&
			 f->result.kind != API_OBJECT)
			f->role = API_INITIALISER;
	} else if (out >= 0) {
		f->object = f->params[out].object;
		f->self = (unsigned)out;
		f->role = has_last(f->name, ends) ? API_DESTRUCTOR : API_FILLER;
		if (f->role == API_DESTRUCTOR)
			api_leave_out(f, "it ends an object through a pointer to its pointer");
	} else if (f->result.kind == API_OBJECT && !f->result.is_const) {
		f->object = f->result.object;
		f->role = API_CONSTRUCTOR;
	}
}

static bool returns_text_owned(const struct api_function *f)
{
	return f->result.kind == API_STRING && f->cxx;
}

/* Parts of the C++ library that were compiled into this one, and what templates made. */
static bool is_library_code(const struct api_function *f)
{
	const char *template = strchr(f->name, '<'), *params = strchr(f->name, '(');

	return f->cxx && (!strncmp(f->name, "std::", 5) || !strncmp(f->name, "__gnu_cxx::", 11) ||
			  (template && template < params) || !strncmp(f->name, "void std::", 10) ||
			  !strncmp(f->name, "operator ", 9));
}

static void check_usable(struct api_function *f)
{
	f->is_theirs = is_library_code(f);
	if (f->is_theirs)
		api_leave_out(f, "it comes from a template or the C++ library");
	if (!f->result.spelling) {
		api_leave_out(f, "no debug information");
		return;
	}
	for (unsigned i = 0; i < f->nparams; i++)
		if (f->params[i].kind == API_OTHER)
			api_leave_out(f, f->params[i].trouble);
	if (f->result.kind == API_OTHER)
		api_leave_out(f, "it returns something this program does not know");
	if (returns_text_owned(f) && f->nparams == API_PARAMS)
		api_leave_out(f, "it has too many parameters");
	if (strchr(f->symbol, '.'))
		api_leave_out(f, "the compiler changed its parameters");
	if (!strcmp(f->symbol, "main"))
		api_leave_out(f, "it is the program itself");
	if (!strcmp(f->symbol, "_init") || !strcmp(f->symbol, "_fini"))
		api_leave_out(f, "it belongs to the loader");
}

/* Functions that take no object share what the library keeps in its own variables. */
static void share_globals(struct api *a)
{
	a->globals = api_object_named(a, "global variables", false, false);
	for (size_t i = 0; i < a->functions.n; i++) {
		struct api_function *f = &a->functions.v[i];

		if (f->result.spelling && f->object == API_NONE)
			f->object = a->globals;
	}
}

bool api_is_move(const struct api *a, const struct api_function *f, int object)
{
	if (f->left_out)
		return false;
	if (object != a->globals)
		return f->object == object && f->role == API_METHOD;
	return f->role == API_PLAIN || f->role == API_CONSTRUCTOR || f->role == API_FILLER;
}

/*
 * conn_open(conn **, const options *): what the caller fills in is no object that the function is a method of. It is one
 * that no function makes, and the function makes one of another type, which says so or which nothing else makes.
 */
static void prefer_making(struct api *a)
{
	static const char *const makes[] = { "new", "alloc", "make", "create", "open", "init", "start", "begin", "connect", NULL };

	for (size_t i = 0; i < a->functions.n; i++) {
		struct api_function *f = &a->functions.v[i];
		int out = first_param(f, API_OUT);
		int made = out >= 0 ? f->params[out].object : f->result.kind == API_OBJECT && !f->result.is_const ?
			   f->result.object : API_NONE;

		if (f->cxx || f->role != API_METHOD || made == API_NONE || made == f->object || api_is_made(a, f->object) ||
		    !api_has_methods(a, made) || (!has_any(f->name, makes) && api_is_made(a, made)))
			continue;
		f->object = made;
		f->self = out >= 0 ? (unsigned)out : 0;
		f->role = out >= 0 ? API_FILLER : API_CONSTRUCTOR;
	}
}

void api_assign_roles(struct api *a)
{
	for (size_t i = 0; i < a->functions.n; i++) {
		struct api_function *f = &a->functions.v[i];

		check_usable(f);
		if (!f->result.spelling)
			continue;
		if (f->cxx)
			cxx_role(f);
		else
			c_role(a, f);
	}
	prefer_making(a);
	share_globals(a);
}

int api_find_object(const struct api *a, const char *name)
{
	static const char *const tags[] = { "struct ", "class ", "union " };
	size_t n;

	for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
		if (!strncmp(name, tags[i], strlen(tags[i])))
			name += strlen(tags[i]);
	for (n = strlen(name); n && (name[n - 1] == '*' || name[n - 1] == ' '); n--)
		;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < a->objects.n; i++) {
			const char *have = a->objects.v[i].name;
			const char *last = strrchr(have, ':');

			/* GQueue is what people call struct _GQueue; Logger what they call log::Logger. */
			if (pass && *have == '_')
				have++;
			else if (pass && last)
				have = last + 1;
			if (strlen(have) == n && !strncmp(have, name, n))
				return (int)i;
			for (size_t k = 0; pass && k < a->objects.v[i].aliases.n; k++)
				if (strlen(a->objects.v[i].aliases.v[k]) == n && !strncmp(a->objects.v[i].aliases.v[k], name, n))
					return (int)i;
		}
	return API_NONE;
}

const struct api_function *api_find_function(const struct api *a, const char *symbol)
{
	for (size_t i = 0; i < a->functions.n; i++)
		if (!strcmp(a->functions.v[i].symbol, symbol))
			return &a->functions.v[i];
	return NULL;
}

bool api_makes(const struct api_function *f, int object)
{
	return !f->left_out && f->object == object &&
	       (f->role == API_CONSTRUCTOR || f->role == API_FILLER || f->role == API_INITIALISER);
}

/* A function that works on an object of another type, and returns one of this. */
bool api_hands_out(const struct api_function *f, int object)
{
	return !f->left_out && f->role == API_METHOD && f->object != object && f->result.kind == API_OBJECT &&
	       f->result.object == object && !f->result.is_const && !f->result.takes;
}

bool api_is_made(const struct api *a, int object)
{
	for (size_t i = 0; i < a->functions.n; i++)
		if (api_makes(&a->functions.v[i], object) || api_hands_out(&a->functions.v[i], object))
			return true;
	return false;
}

bool api_has_methods(const struct api *a, int object)
{
	for (size_t i = 0; i < a->functions.n; i++)
		if (a->functions.v[i].object == object && a->functions.v[i].role == API_METHOD)
			return true;
	return false;
}

int api_next(const struct api *a, int object, enum api_role role, int from)
{
	for (size_t i = from < 0 ? 0 : (size_t)from; i < a->functions.n; i++) {
		const struct api_function *f = &a->functions.v[i];

		if (!f->left_out && f->object == object && f->role == role)
			return (int)i;
	}
	return API_NONE;
}

int api_likely_object(const struct api *a)
{
	int best = API_NONE;
	unsigned most = 0;

	for (size_t o = 0; o < a->objects.n; o++) {
		unsigned methods = 0;

		for (size_t i = 0; i < a->functions.n; i++) {
			const struct api_function *f = &a->functions.v[i];

			methods += !f->left_out && f->object == (int)o && f->role == API_METHOD;
		}
		if (methods > most && api_is_made(a, (int)o)) {
			most = methods;
			best = (int)o;
		}
	}
	return best;
}

static void free_type(struct api_type *t)
{
	free(t->name);
	free(t->spelling);
	free(t->trouble);
	for (size_t i = 0; i < t->texts.n; i++)
		free(t->texts.v[i]);
	for (size_t i = 0; i < t->sets.n; i++) {
		free(t->sets.v[i].member);
		free(t->sets.v[i].text);
	}
	vec_free(&t->sets);
	vec_free(&t->texts);
	vec_free(&t->numbers);
	vec_free(&t->values);
}

void api_free(struct api *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->functions.n; i++) {
		struct api_function *f = &a->functions.v[i];

		free(f->symbol);
		free(f->name);
		free(f->left_out);
		free(f->file);
		free_type(&f->result);
		for (unsigned p = 0; p < f->nparams; p++)
			free_type(&f->params[p]);
	}
	for (size_t i = 0; i < a->objects.n; i++) {
		struct api_object *o = &a->objects.v[i];

		free(o->name);
		for (size_t k = 0; k < o->aliases.n; k++)
			free(o->aliases.v[k]);
		vec_free(&o->aliases);
		free(o->c_name);
		for (size_t k = 0; k < o->fields.n; k++)
			free(o->fields.v[k].name);
		vec_free(&o->fields);
	}
	for (size_t i = 0; i < a->remarks.n; i++)
		free(a->remarks.v[i]);
	vec_free(&a->functions);
	vec_free(&a->objects);
	vec_free(&a->remarks);
	vec_free(&a->constants);
	free(a->path);
	free(a->module);
	free(a->soname);
	free(a);
}
