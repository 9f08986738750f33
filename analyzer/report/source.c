/* Source lines from disk, for people who have the source where the compiler had it. */
#include "analyzer/report/internal.h"

#include <string.h>

#define MAX_FILE (8u << 20)

struct source_file {
	char *name;
	char *text;   /* NULL: not to be had */
	char **lines; /* point into text */
	size_t nlines;
};

struct report_source {
	VEC(char *) dirs;
	VEC(struct source_file) files;
};

struct report_source *report_source_new(const char *const *dirs, size_t ndirs)
{
	struct report_source *s = xcalloc(1, sizeof *s);

	for (size_t i = 0; i < ndirs; i++)
		vec_push(&s->dirs, xstrdup(dirs[i]));
	return s;
}

void report_source_free(struct report_source *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->dirs.n; i++)
		free(s->dirs.v[i]);
	for (size_t i = 0; i < s->files.n; i++) {
		free(s->files.v[i].name);
		free(s->files.v[i].text);
		free(s->files.v[i].lines);
	}
	vec_free(&s->dirs);
	vec_free(&s->files);
	free(s);
}

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "re");
	struct strbuf b = { 0 };
	char buf[4096];
	size_t n;

	if (!f)
		return NULL;
	while (b.n < MAX_FILE && (n = fread(buf, 1, sizeof buf, f)) > 0)
		strbuf_add(&b, buf, n);
	/* A directory opens but does not read; a NUL means this is no source. */
	bool bad = ferror(f) || !b.n || memchr(b.s, 0, b.n);

	fclose(f);
	if (bad) {
		strbuf_free(&b);
		return NULL;
	}
	return strbuf_take(&b);
}

/* The path itself, then below each directory with ever fewer leading parts. */
static char *find_text(struct report_source *s, const char *name)
{
	char *text = slurp(name);

	for (size_t i = 0; !text && i < s->dirs.n; i++) {
		for (const char *tail = name; !text && tail; tail = strchr(tail, '/')) {
			while (*tail == '/')
				tail++;
			char *path = xasprintf("%s/%s", s->dirs.v[i], tail);

			text = slurp(path);
			free(path);
		}
	}
	return text;
}

static void split(struct source_file *f)
{
	VEC(char *) lines = { 0 };

	for (char *at = f->text; at && *at;) {
		char *end = strchr(at, '\n');

		vec_push(&lines, at);
		if (end)
			*end = 0;
		at = end ? end + 1 : NULL;
	}
	f->lines = lines.v;
	f->nlines = lines.n;
}

const char *report_source_line(void *source, const char *file, unsigned line)
{
	struct report_source *s = source;
	struct source_file *f = NULL;

	for (size_t i = 0; i < s->files.n && !f; i++)
		if (!strcmp(s->files.v[i].name, file))
			f = &s->files.v[i];
	if (!f) {
		struct source_file fresh = { .name = xstrdup(file), .text = find_text(s, file) };

		split(&fresh);
		vec_push(&s->files, fresh);
		f = &s->files.v[s->files.n - 1];
	}
	return line >= 1 && line <= f->nlines ? f->lines[line - 1] : NULL;
}
