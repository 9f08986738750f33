/* The address space of a recorded process: which module lies where. */
#include "analyzer/image/internal.h"
#include "common/runtime_names.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct img_set *img_set_new(void)
{
	return xcalloc(1, sizeof(struct img_set));
}

static void module_free(struct img_module *m)
{
	for (size_t i = 0; i < m->units.n; i++)
		vec_free(&m->units.v[i].functions);
	vec_free(&m->units);
	vec_free(&m->ranges);
	vec_free(&m->variables);
	vec_free(&m->tls);
	vec_free(&m->holders);
	vec_free(&m->symbols);
	for (size_t i = 0; i < m->own_names.n; i++)
		free(m->own_names.v[i]);
	vec_free(&m->own_names);
	vec_free(&m->segments);
	vec_free(&m->frames);
	vec_free(&m->rows);
	img_table_free(&m->frame_of);
	img_table_free(&m->types);
	img_table_free(&m->row_of);
	img_table_free(&m->heap_types);
	img_table_free(&m->definitions);
	vec_free(&m->definition);
	img_find_close(m);
	free(m->memory);
	free(m->build_id);
	free(m->path);
	free(m);
}

void img_set_free(struct img_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->modules.n; i++)
		module_free(set->modules.v[i]);
	vec_free(&set->modules);
	vec_free(&set->live);
	vec_free(&set->notes);
	img_sources_free(set);
	img_table_free(&set->demangled);
	img_table_free(&set->brief);
	img_table_free(&set->unknown_names);
	for (size_t i = 0; i < set->strings.n; i++)
		free(set->strings.v[i]);
	vec_free(&set->strings);
	for (size_t i = 0; i < set->blocks.n; i++)
		free(set->blocks.v[i]);
	vec_free(&set->blocks);
	free(set);
}

const char *img_keep(struct img_set *set, char *s)
{
	vec_push(&set->strings, s);
	return s;
}

void *img_keep_block(struct img_set *set, size_t n)
{
	void *p = xcalloc(1, n);

	vec_push(&set->blocks, p);
	return p;
}

void img_note(struct img_set *set, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n >= 0)
		vec_push(&set->notes, img_keep(set, s));
}

size_t img_notes(struct img_set *set, const char *const **out)
{
	*out = set->notes.v;
	return set->notes.n;
}

/* ---- mappings ---------------------------------------------------------- */

/* Index of the first mapping that ends after addr. */
static size_t first_after(const struct img_set *set, uint64_t addr)
{
	size_t lo = 0, hi = set->live.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (set->live.v[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct img_live *img_live_at(struct img_set *set, uint64_t addr)
{
	if (set->last_live < set->live.n) {
		const struct img_live *l = &set->live.v[set->last_live];

		if (l->start <= addr && addr < l->end)
			return l;
	}
	size_t i = first_after(set, addr);

	if (i == set->live.n || set->live.v[i].start > addr)
		return NULL;
	set->last_live = i;
	return &set->live.v[i];
}

static void insert_live(struct img_set *set, size_t at, struct img_live l)
{
	vec_push(&set->live, l);
	memmove(&set->live.v[at + 1], &set->live.v[at],
		(set->live.n - 1 - at) * sizeof *set->live.v);
	set->live.v[at] = l;
}

void img_remove_range(struct img_set *set, uint64_t lo, uint64_t hi)
{
	size_t i = first_after(set, lo);

	while (i < set->live.n && set->live.v[i].start < hi) {
		struct img_live *l = &set->live.v[i];
		struct img_live tail = *l;

		if (l->end > hi) {
			tail.file_offset += hi - l->start;
			tail.start = hi;
		}
		if (l->start < lo) {
			l->end = lo;
			i++;
			if (tail.end > hi)
				insert_live(set, i, tail);
		} else if (tail.end > hi) {
			*l = tail;
			return;
		} else {
			memmove(l, l + 1, (set->live.n - i - 1) * sizeof *l);
			set->live.n--;
		}
	}
}

void img_add_mapping(struct img_module *m, const struct img_mapping *map)
{
	struct img_set *set = m->set;

	if (map->start >= map->end)
		return;
	img_remove_range(set, map->start, map->end);
	insert_live(set, first_after(set, map->start),
		    (struct img_live){ map->start, map->end, map->file_offset, map->prot, m });
}

static uint64_t page_floor(uint64_t a)
{
	return a & ~(IMG_PAGE - 1);
}

static uint64_t page_ceil(uint64_t a)
{
	return (a + IMG_PAGE - 1) & ~(IMG_PAGE - 1);
}

/*
 * One file page may be mapped by two segments (lld packs them so), hence the
 * executable mapping decides when there is one: there is rarely a second.
 */
static bool bias_from(const struct img_module *m, const struct img_mapping *map, bool exec,
		      uint64_t *bias)
{
	for (size_t i = 0; i < m->segments.n; i++) {
		const struct img_segment *s = &m->segments.v[i];

		if (exec && (!(s->flags & PF_X) || !(map->prot & PROT_EXEC)))
			continue;
		if (map->file_offset < page_floor(s->offset) ||
		    map->file_offset >= page_ceil(s->offset + s->filesz))
			continue;
		*bias = map->start - (s->vaddr - s->offset + map->file_offset);
		return true;
	}
	return false;
}

static void place(struct img_module *m, const struct img_mapping *maps, size_t n)
{
	bool found = false;
	uint64_t lo = UINT64_MAX, hi = 0;

	for (size_t i = 0; i < n && !found; i++)
		found = bias_from(m, &maps[i], true, &m->bias);
	for (size_t i = 0; i < n && !found; i++)
		found = bias_from(m, &maps[i], false, &m->bias);
	for (size_t i = 0; i < n; i++) {
		if (!found && maps[i].start < lo)
			m->bias = maps[i].start - maps[i].file_offset;
		lo = maps[i].start < lo ? maps[i].start : lo;
		hi = maps[i].end > hi ? maps[i].end : hi;
	}
	for (size_t i = 0; found && i < m->segments.n; i++) {
		const struct img_segment *s = &m->segments.v[i];
		uint64_t start = page_floor(s->vaddr) + m->bias;
		uint64_t end = page_ceil(s->vaddr + s->memsz) + m->bias;

		if (start >= end)
			continue;
		lo = start < lo ? start : lo;
		hi = end > hi ? end : hi;
	}
	m->lo = lo < hi ? lo : 0;
	m->hi = lo < hi ? hi : 0;
}

err_t img_add_module(struct img_set *set, const struct img_module_desc *desc,
		     struct img_module **out)
{
	struct img_module *m = xcalloc(1, sizeof *m);
	const char *slash = strrchr(desc->path, '/');
	size_t skip = slash && slash[1] ? (size_t)(slash + 1 - desc->path) : 0;
	err_t e;

	m->set = set;
	m->path = xstrdup(desc->path);
	m->name = m->path + skip;
	m->code.fd = m->debug.fd = m->alt.fd = -1;
	if (desc->build_id && desc->build_id_len && desc->build_id_len <= 64) {
		m->build_id = xmalloc(desc->build_id_len);
		memcpy(m->build_id, desc->build_id, desc->build_id_len);
		m->build_id_len = desc->build_id_len;
	}
	vec_push(&set->modules, m);
	e = img_find_code(m, desc);
	if (m->code.elf) {
		img_elf_segments(m->code.elf, &m->segments);
		m->text_written = img_elf_has_textrel(m->code.elf);
	}
	place(m, desc->maps, desc->n_maps);
	for (size_t i = 0; i < desc->n_maps; i++)
		img_add_mapping(m, &desc->maps[i]);
	if (out)
		*out = m;
	return e;
}

struct img_module *img_module_at(struct img_set *set, uint64_t addr)
{
	const struct img_live *l = img_live_at(set, addr);

	if (l)
		return l->module;
	/* .bss, which is anonymous memory, and what was unmapped since: the newest. */
	for (size_t i = set->modules.n; i-- > 0;)
		if (set->modules.v[i]->lo <= addr && addr < set->modules.v[i]->hi)
			return set->modules.v[i];
	return NULL;
}

/* Code of these works on other people's data; their variables name nothing. */
bool img_is_runtime(const struct img_module *m)
{
	return runtime_module(m->name);
}

bool img_runtime_frame(const struct img_frame *f)
{
	return (f->file && runtime_header(f->file)) || (f->module && runtime_module(f->module));
}

size_t img_modules(struct img_set *set, struct img_module *const **out)
{
	*out = set->modules.v;
	return set->modules.n;
}

const char *img_module_name(const struct img_module *m)
{
	return m->name;
}

const char *img_module_path(const struct img_module *m)
{
	return m->path;
}

const char *img_module_file(const struct img_module *m)
{
	return m->code.path;
}

uint64_t img_module_bias(const struct img_module *m)
{
	return m->bias;
}

bool img_module_has_code(const struct img_module *m)
{
	return m->code.elf != NULL;
}

bool img_module_has_debug(const struct img_module *m)
{
	return img_module_dwarf((struct img_module *)m) != NULL;
}

/* ---- bytes ------------------------------------------------------------- */

/* Lies the page of vaddr in a segment that nobody ever writes, and in no other? */
static bool never_written(const struct img_module *m, uint64_t vaddr)
{
	bool some = false;

	for (size_t i = 0; i < m->segments.n; i++) {
		const struct img_segment *s = &m->segments.v[i];

		if (vaddr < page_floor(s->vaddr) || vaddr >= page_ceil(s->vaddr + s->memsz))
			continue;
		if (s->flags & PF_W)
			return false;
		some = true;
	}
	return some && !m->text_written;
}

/* Copies up to the end of the page; past the end of the file a page reads as zero. */
static size_t read_page(struct img_set *set, uint64_t addr, uint8_t *buf, size_t n)
{
	const struct img_live *l = img_live_at(set, addr);
	size_t size, left = IMG_PAGE - (addr & (IMG_PAGE - 1));
	const char *file;
	uint64_t off;

	if (!l || !l->module->code.elf || (l->prot & PROT_WRITE) ||
	    !never_written(l->module, addr - l->module->bias))
		return 0;
	file = elf_rawfile(l->module->code.elf, &size);
	off = l->file_offset + (addr - l->start);
	if (!file || off < l->file_offset || page_floor(off) >= size)
		return 0;
	n = n < left ? n : left;
	size_t have = off < size ? size - off : 0;

	have = have < n ? have : n;
	memcpy(buf, file + off, have);
	memset(buf + have, 0, n - have);
	return n;
}

bool img_read(struct img_set *set, uint64_t addr, void *buf, size_t n)
{
	uint8_t *p = buf;

	while (n) {
		size_t got = read_page(set, addr, p, n);

		if (!got)
			return false;
		addr += got;
		p += got;
		n -= got;
	}
	return true;
}
