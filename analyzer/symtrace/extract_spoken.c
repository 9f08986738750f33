/*
 * Names as who wrote the program knows them. Debug information tells how the C++
 * library keeps its containers; `names[10]' is what the source says, not
 * `names._M_impl._M_start[10]'. Members that begin with _M_ are the library's own; those that hold what a member function
 * gives are called by it (`names.size()'), the others are the container.
 */
#include "analyzer/symtrace/extract_internal.h"

#include "common/strbuf.h"

#include <string.h>

/* One step of a path: "->name[3]". */
struct step {
	const char *sep, *name, *index, *end;
};

/* False: the path is over. */
static bool next_step(const char **at, struct step *s)
{
	if (!**at)
		return false;
	s->sep = s->name = *at;
	if (*s->name == '.')
		s->name++;
	else if (!strncmp(s->name, "->", 2))
		s->name += 2;
	s->index = s->name + strcspn(s->name, *s->name == '{' ? "}" : ".[-");
	s->index += *s->index == '}';
	s->end = s->index;
	while (*s->end == '[') {
		s->end += strcspn(s->end, "]");
		s->end += *s->end == ']';
	}
	/* Anything else is no path as we write them: all of it is one step. */
	if (s->end == *at || (*s->end && *s->end != '.' && strncmp(s->end, "->", 2)))
		s->end = s->index = s->name + strlen(s->name);
	*at = s->end;
	return true;
}

static bool is_internal(const struct step *s)
{
	return !strncmp(s->name, "_M_", 3) || !strncmp(s->name, "{_M_", 4);
}

static bool is_one_of(const struct step *s, const char *const *names, size_t n)
{
	size_t len = (size_t)(s->index - s->name);

	for (size_t i = 0; i < n; i++)
		if (strlen(names[i]) == len && !strncmp(names[i], s->name, len))
			return true;
	return false;
}

/* What is indexed with these are the container's elements. */
static bool holds_elements(const struct step *s)
{
	static const char *const names[] = { "_M_start", "_M_elems", "_M_p", "_M_cur" };

	return is_one_of(s, names, sizeof names / sizeof *names);
}

/* What the program would call to see it; NULL: nothing. */
static const char *seen_by(const struct step *s)
{
	static const struct {
		const char *name, *call;
	} members[] = {
		{ "_M_finish", "size()" }, { "_M_node_count", "size()" }, { "_M_element_count", "size()" },
		{ "_M_string_length", "size()" }, { "_M_size", "size()" }, { "_M_end_of_storage", "capacity()" },
		{ "_M_allocated_capacity", "capacity()" }, { "_M_bucket_count", "bucket_count()" },
		{ "_M_use_count", "use_count()" }, { "{_M_use_count", "use_count()" },
	};
	size_t len = s->name ? (size_t)(s->index - s->name) : 0;

	for (size_t i = 0; i < sizeof members / sizeof *members && len; i++)
		if (strlen(members[i].name) <= len && !strncmp(members[i].name, s->name, strlen(members[i].name)) &&
		    (*s->name == '{' || strlen(members[i].name) == len))
			return members[i].call;
	return NULL;
}

const char *ext_spoken_type(const char *name)
{
	static const char counter[] = ".use_count()";
	size_t n = strlen(name), k = sizeof counter - 1;

	return n > k && !strcmp(name + n - k, counter) ? "int" : NULL;
}

static bool is_beyond_first(const struct step *s)
{
	return s->index != s->end && strncmp(s->index, "[0]", 3);
}

/* The library's part of the path, from `at` on. */
static void say_internals(struct strbuf *b, const char *at)
{
	struct step s, last = { 0 };
	bool element = false; /* which one of the container's is said */

	while (next_step(&at, &s)) {
		last = (struct step){ 0 };
		if (!is_internal(&s)) {
			strbuf_add(b, s.sep, (size_t)(s.end - s.sep));
		} else if (s.index != s.end && holds_elements(&s)) {
			strbuf_add(b, s.index, (size_t)(s.end - s.index));
			element = true;
		} else if (*at && is_beyond_first(&s) && !element) {
			/* A node, and what lies behind the part of it whose type is known. */
			strbuf_str(b, "[...]");
			element = true;
		} else if (!element) {
			last = s;
		}
	}
	if (seen_by(&last))
		strbuf_fmt(b, ".%s", seen_by(&last));
}

char *ext_spoken(char *text)
{
	const char *at = text;
	struct step s;
	bool first = true;

	while (next_step(&at, &s)) {
		if (!first && is_internal(&s)) {
			struct strbuf b = { 0 };

			strbuf_add(&b, text, (size_t)(s.sep - text));
			say_internals(&b, s.sep);
			free(text);
			return strbuf_take(&b);
		}
		first = false;
	}
	return text;
}
