/* pc -> the functions, inlined ones included, and lines it belongs to. */
#include "analyzer/image/internal.h"

#include <string.h>

struct spot {
	const char *file;
	unsigned line, column;
};

static struct spot spot_at(struct img_unit *u, uint64_t vaddr)
{
	struct spot s = { 0 };
	Dwarf_Line *line = u ? dwarf_getsrc_die(&u->skeleton, vaddr) : NULL;
	int v;

	if (!line)
		return s;
	s.file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &v) == 0 && v > 0)
		s.line = (unsigned)v;
	if (dwarf_linecol(line, &v) == 0 && v > 0)
		s.column = (unsigned)v;
	return s;
}

static uint64_t attr_number(Dwarf_Die *die, unsigned at)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	return dwarf_attr(die, at, &attr) && dwarf_formudata(&attr, &v) == 0 ? v : 0;
}

const char *img_file_name(Dwarf_Die *unit, uint64_t index)
{
	Dwarf_Files *files;
	size_t n;

	if (dwarf_getsrcfiles(unit, &files, &n) || index >= n)
		return NULL;
	const char *name = dwarf_filesrc(files, index, NULL, NULL);

	/* Before DWARF 5 there is no file 0, and libdw calls it so. */
	return name && strcmp(name, "???") != 0 ? name : NULL;
}

static struct spot call_site(struct img_unit *u, Dwarf_Die *inlined)
{
	struct spot s = { .line = (unsigned)attr_number(inlined, DW_AT_call_line),
			  .column = (unsigned)attr_number(inlined, DW_AT_call_column) };

	s.file = img_file_name(&u->skeleton, attr_number(inlined, DW_AT_call_file));
	return s;
}

static void push(struct img_module *m, const char *function, struct spot s, bool inlined,
		 uint64_t offset)
{
	vec_push(&m->frames, (struct img_frame){
		.function = function, .file = s.file, .line = s.line, .column = s.column,
		.module = m->name, .offset = offset, .inlined = inlined });
}

/*
 * Compilers call what a lambda does artificial, too, but that somebody wrote; and so with a piece that they cut out of a
 * function, which has a dot in its name: "main._omp_fn.0" is the body of a parallel loop.
 */
static bool is_implicit(Dwarf_Die *function)
{
	Dwarf_Attribute attr;
	bool yes = false;

	if (!dwarf_attr_integrate(function, DW_AT_artificial, &attr) || dwarf_formflag(&attr, &yes) || !yes)
		return false;
	const char *name = img_die_name(function);
	return name && strcmp(name, "operator()") != 0 && !strchr(name, '.');
}

static const char *by_symbol(struct img_module *m, uint64_t vaddr, uint64_t *offset)
{
	const struct img_symbol *s = img_symbol_at(m, vaddr);

	*offset = s ? vaddr - s->vaddr : 0;
	if (s)
		return img_brief(m->set, img_demangle(m->set, s->name));
	return img_keep(m->set, xasprintf("%s+0x%llx", m->name, (unsigned long long)vaddr));
}

/* ___pthread_mutex_lock is pthread_mutex_lock to everybody but its author. */
static const char *public_name(struct img_module *m, const char *name, uint64_t entry)
{
	const struct img_symbol *s;

	if (strncmp(name, "__", 2) != 0)
		return name;
	s = img_symbol_at(m, entry);
	return s && s->vaddr == entry && s->name[0] != '_' ? s->name : name;
}

/* Appends the run of frames at vaddr to m->frames. */
static void resolve(struct img_module *m, uint64_t vaddr)
{
	Dwarf_Die scope[IMG_MAX_DEPTH];
	struct img_unit *u;
	const struct img_function *f = img_function_at(m, vaddr, &u);
	struct spot s = spot_at(u, vaddr);
	size_t n = f ? img_scopes_at(f, vaddr, scope, IMG_MAX_DEPTH) : 0;
	const char *name = NULL;
	uint64_t offset = 0;

	for (size_t i = 0; i < n; i++) {
		if (dwarf_tag(&scope[i]) != DW_TAG_inlined_subroutine)
			continue;
		const char *inlined = img_function_name(m, &scope[i]);

		push(m, inlined ? inlined : "(inlined)", s, true, 0);
		m->frames.v[m->frames.n - 1].implicit = is_implicit(&scope[i]);
		s = call_site(u, &scope[i]);
	}
	if (f) {
		name = img_function_name(m, (Dwarf_Die *)&f->die);
		offset = vaddr - f->entry;
	}
	name = name ? public_name(m, name, f->entry) : by_symbol(m, vaddr, &offset);
	push(m, name, s, false, offset);
	m->frames.v[m->frames.n - 1].implicit = f && is_implicit((Dwarf_Die *)&f->die);
	vec_push(&m->frames, (struct img_frame){ 0 });
}

static size_t nowhere(struct img_set *set, uint64_t pc, struct img_frame *out)
{
	uint64_t *known = img_table_find(&set->unknown_names, pc);

	if (!known) {
		const char *s = img_keep(set, xasprintf("0x%llx", (unsigned long long)pc));

		img_table_put(&set->unknown_names, pc, (uintptr_t)s);
		known = img_table_find(&set->unknown_names, pc);
	}
	*out = (struct img_frame){ .function = (const char *)(uintptr_t)*known, .pc = pc };
	return 1;
}

size_t img_frames(struct img_set *set, uint64_t pc, struct img_frame *out, size_t max)
{
	struct img_module *m = img_module_at(set, pc);
	uint64_t *at;
	size_t n = 0;

	if (!max)
		return 0;
	if (!m)
		return nowhere(set, pc, out);
	/* First, because opening a lone debug file may correct the bias. */
	img_module_dwarf(m);
	uint64_t vaddr = pc - m->bias;

	at = img_table_find(&m->frame_of, vaddr);
	if (!at) {
		img_table_put(&m->frame_of, vaddr, m->frames.n);
		at = img_table_find(&m->frame_of, vaddr);
		resolve(m, vaddr);
	}
	for (const struct img_frame *f = &m->frames.v[*at]; f->function && n < max; f++) {
		out[n] = *f;
		out[n++].pc = pc;
	}
	return n;
}

/* ---- the other way round ------------------------------------------------ */

/* Does path end with the components of want? */
static bool same_file(const char *path, const char *want)
{
	size_t n = strlen(path), w = strlen(want);

	return w && w <= n && !strcmp(path + n - w, want) && (w == n || path[n - w - 1] == '/');
}

struct found {
	uint64_t *out;
	size_t max, n;
};

static void lines_of_unit(struct img_module *m, struct img_unit *u, const char *file,
			  unsigned line, struct found *f)
{
	Dwarf_Lines *lines;
	size_t n;
	bool inside = false;

	if (dwarf_getsrclines(&u->skeleton, &lines, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *l = dwarf_onesrcline(lines, i);
		Dwarf_Addr addr;
		int no;
		bool stmt, end, hit;

		if (dwarf_lineno(l, &no) || dwarf_linebeginstatement(l, &stmt) ||
		    dwarf_lineendsequence(l, &end) || dwarf_lineaddr(l, &addr))
			continue;
		const char *src = dwarf_linesrc(l, NULL, NULL);

		hit = no == (int)line && !end && src && same_file(src, file);
		if (hit && stmt && !inside) {
			if (f->n < f->max)
				f->out[f->n] = addr + m->bias;
			f->n++;
		}
		inside = hit && (stmt || inside);
	}
}

size_t img_addresses_of_line(struct img_set *set, const char *file, unsigned line, uint64_t *out,
			     size_t max)
{
	struct found f = { out, max, 0 };

	for (size_t i = 0; i < set->modules.n; i++) {
		struct img_module *m = set->modules.v[i];

		img_units_read(m);
		for (size_t j = 0; j < m->units.n; j++)
			lines_of_unit(m, &m->units.v[j], file, line, &f);
	}
	return f.n;
}
