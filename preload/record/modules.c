/*
 * TRC_MODULE: which ELF files are mapped where, with their build-ids.
 *
 * Read from the kernel's list at the start and again at a failure, because libraries come and go;
 * what was written before is remembered by address. Runs under rec_lock(): the
 * buffers are static to spare the program's stack.
 */
#include "preload/maps.h"
#include "preload/raw.h"
#include "preload/record/stream.h"
#include "preload/shim.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>

#define KNOWN_MAX 2048

struct mapping {
	uint64_t start, end, offset;
	uint32_t prot;
	const char *path; /* in the line buffer */
	size_t path_len;
};

static struct {
	uint64_t start, end, offset;
	uint64_t file; /* hash of the path */
} known[KNOWN_MAX] RAW_LARGE;
static unsigned nknown;

/* The file whose first page was seen last: its other segments follow it. */
static struct {
	char path[512];
	size_t path_len;
	bool elf;
	uint8_t id[32];
	uint8_t id_len;
} current;

static uint64_t hash(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ull;

	while (*s)
		h = (h ^ (uint8_t)*s++) * 0x100000001b3ull;
	return h;
}

static bool is_known(const struct mapping *m, uint64_t file)
{
	for (unsigned i = 0; i < nknown; i++)
		if (known[i].start == m->start && known[i].end == m->end &&
		    known[i].offset == m->offset && known[i].file == file)
			return true;
	return false;
}

/* What lay there before is forgotten: a library may come back where another one was. */
static bool remember(const struct mapping *m, uint64_t file)
{
	unsigned keep = 0;

	for (unsigned i = 0; i < nknown; i++)
		if (known[i].end <= m->start || known[i].start >= m->end)
			known[keep++] = known[i];
	nknown = keep;
	if (nknown == KNOWN_MAX)
		return false;
	known[nknown].start = m->start;
	known[nknown].end = m->end;
	known[nknown].file = file;
	known[nknown++].offset = m->offset;
	return true;
}

static uint64_t hex(const char **s)
{
	uint64_t v = 0;

	for (;; (*s)++) {
		char c = **s;
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

		if (d < 0)
			return v;
		v = v << 4 | (uint64_t)d;
	}
}

/* "start-end perms offset dev inode   path" */
static bool parse(const char *s, struct mapping *m)
{
	m->start = hex(&s);
	if (*s++ != '-')
		return false;
	m->end = hex(&s);
	if (*s++ != ' ')
		return false;
	m->prot = (s[0] == 'r' ? PROT_READ : 0) | (s[1] == 'w' ? PROT_WRITE : 0) |
		  (s[2] == 'x' ? PROT_EXEC : 0);
	s += 5;
	m->offset = hex(&s);
	while (*s && *s != '/' && *s != '[')
		s++;
	m->path = s;
	m->path_len = strlen(s);
	return *s == '/';
}

/* Looks through the PT_NOTE segments that lie inside the first mapping. */
static void find_build_id(const uint8_t *base, size_t size)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)base;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(base + eh->e_phoff);

	if (eh->e_phoff > size || eh->e_phnum > (size - eh->e_phoff) / sizeof *ph)
		return;
	for (int i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type != PT_NOTE || ph[i].p_offset > size ||
		    ph[i].p_filesz > size - ph[i].p_offset)
			continue;
		const uint8_t *p = base + ph[i].p_offset, *end = p + ph[i].p_filesz;

		while ((size_t)(end - p) >= sizeof(Elf64_Nhdr)) {
			const Elf64_Nhdr *n = (const Elf64_Nhdr *)p;
			size_t name = (n->n_namesz + 3ul) & ~3ul, desc = (n->n_descsz + 3ul) & ~3ul;

			if (name + desc > (size_t)(end - p) - sizeof *n)
				break;
			if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 &&
			    !memcmp(n + 1, "GNU", 4) && n->n_descsz <= sizeof current.id) {
				current.id_len = (uint8_t)n->n_descsz;
				memcpy(current.id, (const uint8_t *)(n + 1) + name, n->n_descsz);
				return;
			}
			p += sizeof *n + name + desc;
		}
	}
}

/* A program or a library; object files are data, of linkers, and often gone soon. */
bool rec_is_module(const uint8_t head[18])
{
	unsigned type = head[EI_NIDENT] | head[EI_NIDENT + 1] << 8;

	return !memcmp(head, ELFMAG, SELFMAG) && (type == ET_EXEC || type == ET_DYN);
}

/* Is this mapping part of an ELF file? Learns the build-id from its first page. */
static bool is_elf(const struct mapping *m)
{
	static uint8_t first[RAW_PAGE] RAW_LARGE;

	if (m->offset == 0) {
		size_t n = m->path_len < sizeof current.path ? m->path_len : 0;

		memcpy(current.path, m->path, n);
		current.path_len = n;
		current.id_len = 0;
		/* Peeked, not read: another thread may be unmapping it. */
		n = m->prot & PROT_READ ? raw_peek(first, m->start, sizeof first) : 0;
		current.elf = n == sizeof first && rec_is_module(first);
		if (current.elf)
			find_build_id(first, n);
		return current.elf;
	}
	return current.elf && current.path_len == m->path_len &&
	       !memcmp(current.path, m->path, m->path_len);
}

static void write_module(const struct mapping *m, uint64_t tsc)
{
	size_t path_len = m->path_len < 4096 ? m->path_len : 4096;
	size_t size = sizeof(struct trc_module) + path_len;
	struct trc_module *r = rec_begin(&rec_process, size);

	if (!r)
		return;
	r->start = m->start;
	r->end = m->end;
	r->offset = m->offset;
	r->tsc = tsc;
	r->prot = m->prot;
	r->build_id_len = current.id_len;
	memcpy(r->build_id, current.id, current.id_len);
	r->path_len = (uint16_t)path_len;
	memcpy(r->path, m->path, path_len);
	rec_commit(&rec_process, r, TRC_MODULE, 0, size);
}

struct asked {
	uint64_t tsc, address;
	bool found;
};

static void one_line(char *line, void *arg)
{
	struct asked *a = arg;
	struct mapping m;

	if (!parse(line, &m) || !is_elf(&m))
		return;
	uint64_t file = hash(m.path);
	bool there = is_known(&m, file);

	if (!there && remember(&m, file)) {
		write_module(&m, a->tsc);
		there = true;
	}
	a->found |= there && m.start <= a->address && a->address < m.end;
}

bool rec_modules(uint64_t tsc, uint64_t address)
{
	static char buf[MAPS_BUFFER] RAW_LARGE;
	struct asked a = { .tsc = tsc, .address = address };
	uint64_t saved;

	rec_lock(&saved);
	maps_read(buf, one_line, &a);
	rec_unlock(&saved);
	return a.found;
}

void rec_modules_forget(void)
{
	nknown = 0;
}
