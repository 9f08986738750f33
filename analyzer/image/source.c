/* Lines of source text, from files that are read once. */
#include "analyzer/image/internal.h"
#include "common/door.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Takes fd. */
static bool slurp(int fd, struct text *t)
{
	struct stat st;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > MAX_SOURCE) {
		close(fd);
		return false;
	}
	t->bytes = xmalloc((size_t)st.st_size + 1);
	for (ssize_t n; t->n < (size_t)st.st_size; t->n += (size_t)n)
		if ((n = read(fd, t->bytes + t->n, (size_t)st.st_size - t->n)) <= 0)
			break;
	t->bytes[t->n] = '\0';
	t->changed = st.st_mtime;
	close(fd);
	return true;
}

static bool slurp_at(struct img_set *set, const char *path, struct text *t)
{
	int fd = door_open(DOOR_SOURCE, path);

	if (fd < 0 && errno == EPERM && !set->source_refused) {
		set->source_refused = true;
		img_note(set, "%s and the like are not shown: they lie outside of the program's own tree; --source-root "
			      "DIR shows them", path);
	}
	return slurp(fd, t);
}

/* Calls visit() for each directory some unit of the program was compiled in. */
static bool each_build_dir(struct img_set *set, bool (*visit)(struct img_module *, const char *, void *), void *arg)
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
			if (visit(set->modules.v[i], dir, arg))
				return true;
		}
	}
	return false;
}

/* Debug information is believed where its program lies on this disk. */
static bool tell_build_dir(struct img_module *m, const char *dir, void *arg)
{
	(void)arg;
	if (m->on_disk)
		door_open(DOOR_COMPILED, dir);
	return false;
}

struct wanted {
	const char *file;
	struct text *text;
};

static bool slurp_from(struct img_module *m, const char *dir, void *arg)
{
	struct wanted *w = arg;
	char *path = xasprintf("%s/%s", dir, w->file);
	bool found = slurp_at(m->set, path, w->text);

	free(path);
	return found;
}

/* A relative name means: from the directory some unit of the program was compiled in. */
static void find_source(struct img_set *set, const char *file, struct text *t)
{
	if (!set->build_dirs_told)
		each_build_dir(set, tell_build_dir, NULL);
	set->build_dirs_told = true;
	if (file[0] != '/' && each_build_dir(set, slurp_from, &(struct wanted){ file, t }))
		return;
	if (!slurp_at(set, file, t))
		slurp(door_open(DOOR_SOURCE_TAIL, file), t);
}

/* Text written after the last build is not the text that was recorded. */
static void warn_if_newer(struct img_set *set, const char *file, time_t changed)
{
	time_t built = 0;
	struct stat st;

	for (size_t i = 0; i < set->modules.n; i++) {
		const struct img_module *m = set->modules.v[i];

		if (m->code.elf && m->code.fd >= 0 && !img_is_runtime(m) && fstat(m->code.fd, &st) == 0 &&
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
