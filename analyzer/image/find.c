/*
 * Finding the file of a module and its debug information.
 *
 * The build-id decides: a file at the recorded path may have been replaced by
 * an upgrade since, and code from the wrong build would make every answer wrong
 * without anybody noticing. Only a module recorded without a build-id is taken
 * on trust, and a note says so.
 */
#include "analyzer/image/internal.h"
#include "common/door.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <string.h>

#include "analyzer/image/debuginfod.h"

#define SYSTEM_DEBUG_DIR "/usr/lib/debug"

static char *hex(const uint8_t *p, size_t n)
{
	struct strbuf b = { 0 };

	for (size_t i = 0; i < n; i++)
		strbuf_fmt(&b, "%02x", p[i]);
	return strbuf_take(&b);
}

char *img_build_id_of_file(const char *path)
{
	struct img_elf f;
	size_t n = 0;
	char *s;

	if (!img_elf_open(&f, path))
		return NULL;
	const uint8_t *id = img_elf_build_id(f.elf, &n);

	s = hex(id, id ? n : 0);
	img_elf_close(&f);
	return s;
}

/* The search over candidates; the first file of another build is remembered. */
struct search {
	struct img_module *m;
	struct img_elf *out;
	char *wrong_path;
	char *wrong_id;
};

static bool same_build(const struct img_module *m, Elf *elf)
{
	size_t n;
	const uint8_t *id = img_elf_build_id(elf, &n);

	return id && n == m->build_id_len && !memcmp(id, m->build_id, n);
}

/* It lies on this disk: sources in its tree may be shown. What a pack brings along vouches for nothing. */
static void vouch(struct img_module *m, const char *path)
{
	if (strncmp(path, "/proc/", 6) && !img_is_runtime(m) && !door_open(DOOR_OWN, path))
		m->on_disk = true;
}

static bool try_open(struct search *s, const char *path)
{
	if (!img_elf_open(s->out, path))
		return false;
	bool same = s->m->build_id_len && same_build(s->m, s->out->elf);
	if (same && s->out == &s->m->code)
		vouch(s->m, path);
	if (same || !s->m->build_id_len)
		return true;
	if (!s->wrong_path) {
		size_t n = 0;
		const uint8_t *id = img_elf_build_id(s->out->elf, &n);

		s->wrong_path = xstrdup(path);
		s->wrong_id = id ? hex(id, n) : xstrdup("none");
	}
	img_elf_close(s->out);
	return false;
}

static bool try_path(struct search *s, char *path)
{
	bool found = try_open(s, path);

	free(path);
	return found;
}

/* Calls try(s, dir) for each directory of a colon-separated list. */
static bool each_dir(struct search *s, const char *list, bool (*try)(struct search *, const char *))
{
	char *copy = xstrdup(list ? list : ""), *rest = copy, *dir;
	bool found = false;

	while (!found && (dir = strsep(&rest, ":")))
		found = *dir && try(s, dir);
	free(copy);
	return found;
}

static bool try_by_id(struct search *s, const char *dir, const char *suffix)
{
	if (s->m->build_id_len < 2)
		return false;
	char *id = hex(s->m->build_id, s->m->build_id_len);
	bool found = try_path(s, xasprintf("%s/.build-id/%.2s/%s%s", dir, id, id + 2, suffix));

	free(id);
	return found;
}

static bool try_code_in(struct search *s, const char *dir)
{
	const char *path = s->m->path;

	return try_by_id(s, dir, "") ||
	       try_path(s, xasprintf("%s/%s", dir, path + (*path == '/'))) ||
	       try_path(s, xasprintf("%s/%s", dir, s->m->name));
}

static bool try_recorded(struct search *s)
{
	static const char deleted[] = " (deleted)";
	char *path = xstrdup(s->m->path);
	size_t n = strlen(path), d = sizeof deleted - 1;

	if (n > d && !strcmp(path + n - d, deleted))
		path[n - d] = '\0';
	return try_path(s, path);
}

/* A process that is confined has no network. */
static int ask_debuginfod(struct search *s, enum img_fetch what)
{
	char *id = hex(s->m->build_id, s->m->build_id_len);
	int fd = door_open(what == IMG_FETCH_EXECUTABLE ? DOOR_EXECUTABLE : DOOR_DEBUGINFO, id);

	free(id);
	return fd < 0 ? -errno : fd;
}

static bool try_debuginfod(struct search *s, enum img_fetch what)
{
	char *path = NULL;

	if (!s->m->build_id_len)
		return false;
	int fd = door_is_elsewhere() ? ask_debuginfod(s, what) :
				       img_debuginfod(what, s->m->build_id, s->m->build_id_len, &path);

	if (fd == -ETIME)
		img_note(s->m->set, "debuginfod did not answer in time; it was not asked again");
	if (fd < 0)
		return false;
	const char *name = path ? path : "debuginfod";
	bool found = img_elf_open_fd(s->out, fd, name);

	if (!found) {
		img_note(s->m->set, "%s: what debuginfod sent (%s) is no x86-64 ELF file",
			 s->m->name, name);
	} else if (!same_build(s->m, s->out->elf)) {
		img_note(s->m->set, "%s: what debuginfod sent (%s) is another build", s->m->name,
			 name);
		img_elf_close(s->out);
		found = false;
	} else if (!path) { /* under this name the machine opens it, too */
		free(s->out->path);
		s->out->path = xasprintf("/proc/self/fd/%d", s->out->fd);
	}
	free(path);
	return found;
}

static err_t wrong_build(struct search *s)
{
	struct img_module *m = s->m;
	char *want = hex(m->build_id, m->build_id_len);
	err_t e = err_new(ERR_INPUT,
			  "%s: the file %s is another build than the recorded one "
			  "(build-id expected %s, found %s)",
			  m->name, s->wrong_path, want, s->wrong_id);

	img_note(m->set, "%s", e->msg);
	free(want);
	return e;
}

/* The same build may lie where it was recorded, too, with its sources beside it. */
static void look_for_disk(struct img_module *m)
{
	struct img_elf file;

	if (!m->build_id_len || !img_elf_open(&file, m->path))
		return;
	if (same_build(m, file.elf))
		vouch(m, m->path);
	img_elf_close(&file);
}

err_t img_find_code(struct img_module *m, const struct img_module_desc *desc)
{
	struct search s = { .m = m, .out = &m->code };
	err_t e = NULL;

	if (desc->memory && desc->memory_size) {
		m->memory = xmalloc(desc->memory_size);
		memcpy(m->memory, desc->memory, desc->memory_size);
		if (img_elf_open_memory(&m->code, m->memory, desc->memory_size))
			return NULL;
		img_note(m->set, "%s: the recorded image is not an x86-64 ELF image", m->name);
		return NULL;
	}
	bool packed = desc->packed_file && try_open(&s, desc->packed_file);
	if (packed)
		look_for_disk(m);
	bool found = packed || try_recorded(&s) ||
		     each_dir(&s, getenv("CSCHED_DEBUG_PATH"), try_code_in) ||
		     try_debuginfod(&s, IMG_FETCH_EXECUTABLE);

	if (found && desc->named)
		vouch(m, m->path);
	if (!found && s.wrong_path)
		e = wrong_build(&s);
	else if (!found)
		img_note(m->set, "%s: no usable file (recorded as %s); its code is not available",
			 m->name, m->path);
	else if (!m->build_id_len)
		img_note(m->set, "%s: recorded without a build-id, %s could not be verified",
			 m->name, m->code.path);
	free(s.wrong_path);
	free(s.wrong_id);
	return e;
}

/* ---- debug information ------------------------------------------------- */

static bool has_dwarf(Elf *elf)
{
	return img_elf_has_section(elf, ".debug_info") || img_elf_has_section(elf, ".zdebug_info");
}

static uint32_t crc32_of(const uint8_t *p, size_t n)
{
	uint32_t crc = ~0u;

	while (n--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

/* .gnu_debuglink names a file; without a build-id its checksum must be right. */
static bool try_link(struct search *s, char *path, uint32_t crc)
{
	bool found = try_path(s, path);
	size_t n;

	if (found && !s->m->build_id_len) {
		const char *raw = elf_rawfile(s->out->elf, &n);

		if (!raw || crc32_of((const uint8_t *)raw, n) != crc) {
			img_elf_close(s->out);
			found = false;
		}
	}
	return found;
}

static bool try_link_in(struct search *s, const char *dir)
{
	GElf_Word crc;
	const char *link = s->m->code.elf ? dwelf_elf_gnu_debuglink(s->m->code.elf, &crc) : NULL;
	int dirlen = (int)(s->m->name - s->m->path);

	if (!link || strchr(link, '/'))
		return false;
	return try_link(s, xasprintf("%s/%s", dir, link), crc) ||
	       try_link(s, xasprintf("%s/.debug/%s", dir, link), crc) ||
	       try_link(s, xasprintf("%s/%.*s%s", dir, dirlen, s->m->path, link), crc);
}

static bool try_debug_in(struct search *s, const char *dir)
{
	return try_by_id(s, dir, ".debug") || try_link_in(s, dir);
}

static bool try_beside(struct search *s)
{
	if (!s->m->code.path)
		return false;
	char *dir = xstrdup(s->m->code.path), *slash = strrchr(dir, '/');

	if (slash)
		*slash = '\0';
	bool found = try_link_in(s, slash ? dir : ".");

	free(dir);
	return found;
}

/* What dwz moved into a file that several debug files share. */
static void open_alt(struct img_module *m)
{
	const char *name;
	const void *id;
	ssize_t n = dwelf_dwarf_gnu_debugaltlink(m->dwarf, &name, &id);
	struct img_module wanted = { .set = m->set, .path = (char *)"", .name = m->name };
	struct search s = { .m = &wanted, .out = &m->alt };

	if (n <= 0 || n > 64)
		return;
	wanted.build_id = (uint8_t *)id;
	wanted.build_id_len = (size_t)n;
	if (try_by_id(&s, SYSTEM_DEBUG_DIR, ".debug") || try_open(&s, name) ||
	    try_debuginfod(&s, IMG_FETCH_DEBUGINFO))
		m->alt_dwarf = dwarf_begin_elf(m->alt.elf, DWARF_C_READ, NULL);
	if (m->alt_dwarf)
		dwarf_setalt(m->dwarf, m->alt_dwarf);
	else
		img_note(m->set, "%s: shared debug information %s not found", m->name, name);
	free(s.wrong_path);
	free(s.wrong_id);
}

/* Without the code, the segments of the debug file tell where the module was linked. */
static void place_by_debug(struct img_module *m)
{
	img_segments_t seg = { 0 };

	img_elf_segments(m->debug.elf, &seg);
	if (seg.n && m->hi)
		m->bias = m->lo - (seg.v[0].vaddr & ~(IMG_PAGE - 1));
	vec_free(&seg);
}

static bool find_debug(struct img_module *m)
{
	struct search s = { .m = m, .out = &m->debug };
	bool found = each_dir(&s, getenv("CSCHED_DEBUG_PATH"), try_debug_in) ||
		     try_debug_in(&s, SYSTEM_DEBUG_DIR) || try_beside(&s) ||
		     try_debuginfod(&s, IMG_FETCH_DEBUGINFO);

	free(s.wrong_path);
	free(s.wrong_id);
	return found;
}

Dwarf *img_module_dwarf(struct img_module *m)
{
	Elf *elf = NULL;

	if (m->dwarf_tried)
		return m->dwarf;
	m->dwarf_tried = true;
	if (m->code.elf && has_dwarf(m->code.elf)) {
		elf = m->code.elf;
	} else if (!m->memory && (m->code.elf || m->build_id_len) && find_debug(m)) {
		elf = m->debug.elf;
		if (!m->code.elf)
			place_by_debug(m);
	}
	if (elf)
		m->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (m->dwarf)
		open_alt(m);
	else if (!m->memory && !img_is_runtime(m)) /* nobody debugs libc by this */
		img_note(m->set, "%s: no debug information; lines and variables are not known",
			 m->name);
	return m->dwarf;
}

void img_find_close(struct img_module *m)
{
	if (m->eh_frame)
		dwarf_cfi_end(m->eh_frame);
	dwarf_end(m->dwarf);
	dwarf_end(m->alt_dwarf);
	img_elf_close(&m->alt);
	img_elf_close(&m->debug);
	img_elf_close(&m->code);
}
