/* Source lines from disk, for people who have the source where the compiler had it: common/door.h. */
#include "analyzer/report/internal.h"
#include "common/door.h"

#include <string.h>

#define MAX_FILE (8u << 20)

struct source_file {
	char *name;
	char *text;   /* NULL: not to be had */
	char **lines; /* point into text */
	size_t nlines;
};

struct report_source {
	VEC(struct source_file) files;
};

struct report_source *report_source_new(void)
{
	return xcalloc(1, sizeof(struct report_source));
}

void report_source_free(struct report_source *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->files.n; i++) {
		free(s->files.v[i].name);
		free(s->files.v[i].text);
		free(s->files.v[i].lines);
	}
	vec_free(&s->files);
	free(s);
}

static char *slurp(int fd)
{
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	struct strbuf b = { 0 };
	char buf[4096];
	size_t n;

	if (!f)
		return NULL;
	while (b.n < MAX_FILE && (n = fread(buf, 1, sizeof buf, f)) > 0)
		strbuf_add(&b, buf, n);
	/* A NUL means this is no source. */
	bool bad = ferror(f) || !b.n || memchr(b.s, 0, b.n);

	fclose(f);
	if (bad) {
		strbuf_free(&b);
		return NULL;
	}
	return strbuf_take(&b);
}

/* The path itself, then below each directory with ever fewer leading parts; see common/door_source.c. */
static char *find_text(const char *name)
{
	char *text = slurp(door_open(DOOR_SOURCE, name));

	return text ? text : slurp(door_open(DOOR_SOURCE_TAIL, name));
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
		struct source_file fresh = { .name = xstrdup(file), .text = find_text(file) };

		split(&fresh);
		vec_push(&s->files, fresh);
		f = &s->files.v[s->files.n - 1];
	}
	return line >= 1 && line <= f->nlines ? f->lines[line - 1] : NULL;
}
