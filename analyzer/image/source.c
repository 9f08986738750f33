/* Lines of source text, from files that are read once. */
#include "analyzer/image/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct img_source {
	char *name;            /* as asked for */
	char *text;            /* lines ended by NUL; NULL: not found */
	VEC(const char *) line;
};

/* Larger than any source file; keeps a recorded "/dev/zero" harmless. */
#define MAX_SOURCE (64 << 20)

struct text {
	char *bytes; /* NULL: not found */
	size_t n;
	time_t changed;
};

static bool slurp(const char *path, struct text *t)
{
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || st.st_size > MAX_SOURCE)
		return false;
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	t->bytes = xmalloc((size_t)st.st_size + 1);
	t->n = fread(t->bytes, 1, (size_t)st.st_size, f);
	t->bytes[t->n] = '\0';
	t->changed = st.st_mtime;
	fclose(f);
	return true;
}

/* Below dir, the whole path and every shorter tail of it. */
static bool slurp_below(const char *dir, const char *file, struct text *t)
{
	bool found = false;

	for (const char *tail = file; tail && !found; tail = strchr(tail, '/')) {
		tail += strspn(tail, "/");
		char *path = xasprintf("%s/%s", dir, tail);

		found = slurp(path, t);
		free(path);
	}
	return found;
}

/* A relative name means: from the directory some unit of the program was compiled in. */
static bool slurp_from_build_dirs(struct img_set *set, const char *file, struct text *t)
{
	for (size_t i = 0; i < set->modules.n; i++) {
		Dwarf *dwarf = img_is_runtime(set->modules.v[i]) ? NULL :
			       img_module_dwarf(set->modules.v[i]);
		const char *last = NULL;
		Dwarf_CU *cu = NULL;
		Dwarf_Die die, split;
		uint8_t type;

		while (dwarf && dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, &split) == 0) {
			Dwarf_Attribute attr;
			const char *dir = dwarf_formstring(dwarf_attr(&die, DW_AT_comp_dir, &attr));

			/* Most units of a program were compiled in one directory. */
			if (!dir || (last && !strcmp(last, dir)))
				continue;
			last = dir;
			char *path = xasprintf("%s/%s", dir, file);
			bool found = slurp(path, t);

			free(path);
			if (found)
				return true;
		}
	}
	return false;
}

static void find_source(struct img_set *set, const char *file, struct text *t)
{
	const char *list = getenv("CSCHED_SOURCE_PATH");
	char *copy, *rest, *dir;
	bool found = file[0] == '/' ? slurp(file, t) :
		     slurp_from_build_dirs(set, file, t) || slurp(file, t);

	if (found || !list)
		return;
	rest = copy = xstrdup(list);
	while (!found && (dir = strsep(&rest, ":")))
		if (*dir)
			found = slurp_below(dir, file, t);
	free(copy);
}

/* Text written after the last build is not the text that was recorded. */
static void warn_if_newer(struct img_set *set, const char *file, time_t changed)
{
	time_t built = 0;
	struct stat st;

	for (size_t i = 0; i < set->modules.n; i++) {
		const struct img_module *m = set->modules.v[i];

		if (m->code.path && !img_is_runtime(m) && stat(m->code.path, &st) == 0 &&
		    st.st_mtime > built)
			built = st.st_mtime;
	}
	if (built && changed > built)
		img_note(set, "%s was changed after the program was built: its lines may differ",
			 file);
}

static struct img_source *load(struct img_set *set, const char *file)
{
	struct img_source *s = xcalloc(1, sizeof *s);
	struct text t = { 0 };

	find_source(set, file, &t);
	if (t.bytes)
		warn_if_newer(set, file, t.changed);
	s->name = xstrdup(file);
	s->text = t.bytes;
	for (char *p = t.bytes; p && p < t.bytes + t.n;) {
		char *end = memchr(p, '\n', (size_t)(t.bytes + t.n - p));

		vec_push(&s->line, p);
		if (!end)
			break;
		*end = '\0';
		if (end > p && end[-1] == '\r')
			end[-1] = '\0';
		p = end + 1;
	}
	vec_push(&set->sources, s);
	return s;
}

const char *img_source_line(struct img_set *set, const char *file, unsigned line)
{
	struct img_source *s = NULL;

	if (!file || !line)
		return NULL;
	for (size_t i = 0; i < set->sources.n && !s; i++)
		if (!strcmp(set->sources.v[i]->name, file))
			s = set->sources.v[i];
	if (!s)
		s = load(set, file);
	return line <= s->line.n ? s->line.v[line - 1] : NULL;
}

void img_sources_free(struct img_set *set)
{
	for (size_t i = 0; i < set->sources.n; i++) {
		struct img_source *s = set->sources.v[i];

		free(s->name);
		free(s->text);
		vec_free(&s->line);
		free(s);
	}
	vec_free(&set->sources);
}
