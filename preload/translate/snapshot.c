/*
 * All memory of the process into a stream: mappings as TRC_REGION, contents
 * as TRC_PAGES. Of private mappings of ELF files only the pages that differ
 * from the file; of anonymous memory only pages that were ever touched and are
 * not zero; of the shim's variables only those of wrappers. /proc/self/pagemap tells without reading the pages.
 */
#include "preload/maps.h"
#include "preload/translate/epoch.h"
#include "preload/translate/pages.h"
#include "preload/translate/syscall.h"

#include <fcntl.h>
#include <sys/mman.h>

#define BUFFER (64ul << 10)
#define RUN_PAGES (BUFFER / RAW_PAGE - 1) /* of a record, which must fit */
#define PAGEMAP_BATCH 512
#define PM_FILE (1ull << 61)
#define PM_TOUCHED (3ull << 62) /* present or swapped */

/*
 * Since Linux 6.7: where touched pages are, without looking at each. Sanitizers map terabytes, of which
 * pagemap has eight bytes for every page.
 */
#define SCAN_FROM (64ull << 20) /* bytes: below, a few reads of pagemap are as good */
#define SCAN_REQUEST 0xc0606610u /* PAGEMAP_SCAN */
#define SCAN_TOUCHED (1ull << 3 | 1ull << 4) /* PAGE_IS_PRESENT, PAGE_IS_SWAPPED */

struct scan { /* pm_scan_arg, linux/fs.h */
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

struct scanned { /* page_region */
	uint64_t start, end, categories;
};

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

struct mapping {
	uint64_t start, end, offset;
	uint32_t prot;
	bool shared, file;
	const char *path;
	size_t path_len;
};

enum tr_which { TR_MAPPINGS_ALL, TR_MAPPINGS_SHARED, TR_MAPPINGS_PRIVATE };

struct snapshot {
	struct rec_stream out;
	long pagemap;
	enum tr_which which;
	bool fresh;            /* the program has not begun, or is a new child's only thread */
	bool differences;      /* a checkpoint: pages as an earlier one has them are left out */
	bool copy;             /* this process is a copy: nobody else has its memory */
	bool elf;              /* the file mapped last is an ELF file */
	char elf_path[256];
	struct trc_pages *run; /* not used across records */
};

static struct snapshot snap;

static uint64_t hex(const char **p)
{
	uint64_t v = 0;

	for (;; (*p)++) {
		char ch = **p;

		if (ch >= '0' && ch <= '9')
			v = v << 4 | (uint64_t)(ch - '0');
		else if (ch >= 'a' && ch <= 'f')
			v = v << 4 | (uint64_t)(ch - 'a' + 10);
		else
			return v;
	}
}

static void parse(const char *p, struct mapping *m)
{
	memset(m, 0, sizeof *m);
	m->start = hex(&p);
	p++;
	m->end = hex(&p);
	p++;
	m->prot = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
		  (p[2] == 'x' ? PROT_EXEC : 0);
	m->shared = p[3] == 's';
	p += 5;
	m->offset = hex(&p);
	while (*p && *p != '/' && *p != '[')
		p++;
	m->path = p;
	m->path_len = strlen(p);
	m->file = *p == '/';
}

static bool starts_with(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return n && strlen(s) >= n && !memcmp(s, prefix, n);
}

/* False: not all of it can be read. */
static bool run_of_pages(uint64_t start, uint64_t len)
{
	size_t size = sizeof(struct trc_pages) + len;
	struct trc_pages *r = rec_begin(&snap.out, size);

	if (!r)
		return true;
	r->address = start;
	r->length = (uint32_t)len;
	if (!tr_copy(r->bytes, (void *)start, len))
		r->length = 0;
	bool good = r->length;
	rec_commit(&snap.out, r, TRC_PAGES, 0, size);
	return good;
}

/* Behind the end of a mapped file there are pages that cannot be read: then those before them, one by one. */
static void pages(uint64_t start, uint64_t end)
{
	while (start < end) {
		uint64_t len = tr_min(end - start, RUN_PAGES * RAW_PAGE);

		if (!run_of_pages(start, len))
			for (uint64_t at = start; len > RAW_PAGE && at < start + len; at += RAW_PAGE)
				run_of_pages(at, RAW_PAGE);
		start += len;
	}
}

static bool is_zero(uint64_t page)
{
	const uint64_t *p = (const uint64_t *)page;

	for (unsigned i = 0; i < RAW_PAGE / 8; i++)
		if (p[i])
			return false;
	return true;
}

/* May this page's content be something else than is known from the file, or zero? */
static bool may_differ(const struct mapping *m, uint64_t entry, bool keep_file)
{
	if (m->file && !m->shared && !keep_file)
		return (entry & PM_TOUCHED) && !(entry & PM_FILE);
	return m->file || m->shared || (entry & PM_TOUCHED);
}

/* Of a page of a file, which may end before it. */
static bool file_sum(uint64_t page, uint64_t *sum)
{
	static uint64_t copy[RAW_PAGE / 8] RAW_LARGE;

	if (!tr_copy(copy, (void *)page, sizeof copy))
		return false;
	*sum = tr_page_sum(copy);
	return true;
}

#define SUM_OF_ZEROS UINT64_MAX

/* Is it to be written? */
static bool wanted(const struct mapping *m, uint64_t page, uint64_t entry, bool keep_file)
{
	bool is_file = m->file || m->shared;
	uint64_t sum = 0;

	if (!may_differ(m, entry, keep_file))
		return false;
	if (!snap.differences)
		return is_file || !is_zero(page);
	if (is_file && !file_sum(page, &sum))
		return false;
	if (!is_file)
		sum = tr_page_sum((const void *)page);
	return (is_file || sum) && tr_page(page, sum ? sum : SUM_OF_ZEROS);
}

/* Untouched pages from `at` on are left out, where the kernel can tell; else it is `at`. */
static uint64_t next_touched(uint64_t at, uint64_t end)
{
	struct scanned found = { .start = at };
	struct scan scan = { .size = sizeof scan, .start = at, .end = end, .vec = (uint64_t)&found,
			     .vec_len = 1, .category_anyof_mask = SCAN_TOUCHED,
			     .return_mask = SCAN_TOUCHED };
	long n = snap.pagemap < 0 ? -1 : raw(SYS_ioctl, snap.pagemap, SCAN_REQUEST, &scan);

	return n > 0 ? found.start : n == 0 && scan.walk_end == end ? end : at;
}

static void contents(const struct mapping *m, uint64_t start, uint64_t end, bool keep_file)
{
	static uint64_t entries[PAGEMAP_BATCH] RAW_LARGE;
	uint64_t run = 0;

	for (uint64_t at = start; at < end;) {
		if (!run && !m->file && !m->shared && end - start > SCAN_FROM)
			at = next_touched(at, end);
		uint64_t n = tr_min(PAGEMAP_BATCH, (end - at) / RAW_PAGE);

		memset(entries, 0xff, sizeof entries);
		for (uint64_t i = 0; i < n; i++)
			entries[i] = PM_TOUCHED;
		if (snap.pagemap >= 0)
			raw(SYS_pread64, snap.pagemap, entries, n * 8, at / RAW_PAGE * 8);
		for (uint64_t i = 0; i < n; i++, at += RAW_PAGE) {
			bool want = wanted(m, at, entries[i], keep_file);

			if (want && !run)
				run = at;
			if (!want && run) {
				pages(run, at);
				run = 0;
			}
		}
	}
	if (run)
		pages(run, end);
}

/*
 * Of our own variables only what wrappers use: nothing else of them is executed again. More than
 * half of what a small program has is ours.
 */
static void own_contents(const struct mapping *m, uint64_t start, uint64_t end)
{
	uint64_t from, to;

	for (unsigned i = 0; shim_wrappers_memory(i, &from, &to); i++) {
		from = from > start ? from : start;
		to = tr_min((to + RAW_PAGE - 1) & ~(RAW_PAGE - 1), end);
		if (from < to)
			contents(m, from, to, false);
	}
}

static bool is_shim(uint64_t page)
{
	return page >= ((uint64_t)__ehdr_start & ~(RAW_PAGE - 1)) && page < (uint64_t)_end;
}

static unsigned region_flags(const struct mapping *m, uint64_t start)
{
	unsigned flags = m->shared ? TRC_REGION_SHARED : 0;

	if (is_shim(start))
		flags |= TRC_REGION_SHIM;
	if (starts_with(m->path, "[stack"))
		flags |= TRC_REGION_STACK;
	if (starts_with(m->path, "[heap"))
		flags |= TRC_REGION_HEAP | TRC_REGION_BRK;
	if (starts_with(m->path, "[vdso"))
		flags |= TRC_REGION_VDSO;
	return flags;
}

/*
 * Memory that the program has made inaccessible for a while still holds something: the copy of the process may make it
 * accessible. Not where sanitizers have closed terabytes that the kernel cannot look through quickly.
 */
static bool may_read(const struct mapping *m, uint64_t start, uint64_t end)
{
	if (m->prot & TR_READABLE)
		return true;
	if (!snap.copy || m->shared || m->file || (end - start > SCAN_FROM && next_touched(start, end) == start))
		return false;
	return !raw(SYS_mprotect, start, end - start, PROT_READ);
}

static void region(const struct mapping *m, uint64_t start, uint64_t end)
{
	size_t size = sizeof(struct trc_region) + m->path_len;
	unsigned flags = region_flags(m, start);
	struct files_place place;
	struct trc_object *object = NULL;

	if (m->shared && files_at(start, &place)) {
		flags |= TRC_REGION_OBJECT;
		size = ((size + 7) & ~7ul) + sizeof *object;
	}
	struct trc_region *r = rec_begin(&snap.out, size);

	if (!r)
		return;
	memset((uint8_t *)r, 0, (size + 7) & ~7ul); /* it may be used memory */
	if (flags & TRC_REGION_OBJECT) {
		object = (struct trc_object *)((uint8_t *)r + size - sizeof *object);
		*object = (struct trc_object){ place.object, place.offset };
	}
	r->start = start;
	r->end = end;
	r->offset = m->file ? m->offset + (start - m->start) : 0;
	r->prot = m->prot;
	r->path_len = (uint32_t)m->path_len;
	memcpy(r->path, m->path, m->path_len);
	rec_commit(&snap.out, r, TRC_REGION, flags, size);
	bool keep_file = (m->file && !snap.elf) || (flags & TRC_REGION_VDSO);
	struct mapping as = *m;

	as.file |= !!(flags & TRC_REGION_VDSO);
	if ((flags & TRC_REGION_SHIM) && !m->file)
		own_contents(m, start, end);
	else if (may_read(m, start, end))
		contents(&as, start, end, keep_file);
}

/* Remembers whether the file whose segments follow is an ELF file. */
static void look_at_file(const struct mapping *m)
{
	uint32_t magic = 0;
	struct raw_text t = { snap.elf_path, 0, sizeof snap.elf_path };

	if (m->offset == 0) {
		snap.elf = (m->prot & PROT_READ) && tr_copy(&magic, (void *)m->start, 4) &&
			   magic == 0x464c457f;
		text_str(&t, m->path);
	} else if (m->path_len >= sizeof snap.elf_path || memcmp(snap.elf_path, m->path, m->path_len)) {
		snap.elf = false;
	}
}

/* The list of mappings can be read: of descriptors there may be one, and that comes first. */
static void begin(void)
{
	if (snap.fresh)
		tr_code_none();
	snap.pagemap = raw_open(AT_FDCWD, "/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC, 0);
}

static void one(char *line, void *first)
{
	struct mapping m;

	if (*(bool *)first)
		begin();
	*(bool *)first = false;
	if (snap.fresh)
		tr_code_line(line);
	parse(line, &m);
	if (m.start >= 1ull << 47 || starts_with(m.path, "[vvar") ||
	    starts_with(m.path, "[vsyscall") || starts_with(m.path, rec_dir_path()))
		return;
	if (m.file)
		look_at_file(&m);
	if (snap.which == TR_MAPPINGS_PRIVATE && m.shared)
		tr_pages_elsewhere(m.start, m.end);
	if ((snap.which == TR_MAPPINGS_SHARED && !m.shared) || (snap.which == TR_MAPPINGS_PRIVATE && m.shared))
		return;
	for (uint64_t at = m.start; at < m.end;) {
		uint64_t own_end = 0, own = tr_owned_next(at, &own_end);
		uint64_t stop = tr_min(own, m.end);

		if (is_shim(at)) /* what was mapped right behind our variables looks like one with them */
			stop = tr_min(stop, ((uint64_t)_end + RAW_PAGE - 1) & ~(RAW_PAGE - 1));
		if (stop > at)
			region(&m, at, stop);
		at = stop == own ? own_end : stop;
	}
}

static bool open_out(enum trc_stream stream)
{
	void *buffer = tr_exits_room(BUFFER); /* new pages are a good part of what this costs */

	if (!buffer) {
		shim_degrade("no memory snapshot: no memory for it");
		return false;
	}
	rec_open_lent(&snap.out, stream, buffer, BUFFER);
	return true;
}

static bool write_mappings(enum tr_which which)
{
	static char buf[MAPS_BUFFER] RAW_LARGE;
	bool first = true;

	snap.pagemap = -1;
	snap.which = which;
	bool whole = maps_read(buf, one, &first);

	if (snap.pagemap >= 0)
		raw(SYS_close, snap.pagemap);
	return whole;
}

void tr_snapshot(enum trc_stream stream)
{
	if (!open_out(stream))
		return;
	snap.fresh = stream == TRC_STREAM_MEMORY;
	if (!write_mappings(TR_MAPPINGS_ALL))
		shim_degrade("no memory snapshot: /proc/self/maps cannot be read");
	rec_close(&snap.out);
	snap.fresh = false;
}

/* ---- checkpoints ---- */

static void write_base(const struct tr_pages_what *what)
{
	struct trc_base *r = rec_begin(&snap.out, sizeof *r);

	if (!r)
		return;
	r->epoch = what->now;
	r->since = what->since;
	rec_commit(&snap.out, r, TRC_BASE, 0, sizeof *r);
}

bool tr_checkpoint_begin(const struct tr_pages_what *what)
{
	if (!open_out(TRC_STREAM_MEMORY))
		return false;
	write_base(what);
	tr_epoch_states(&snap.out);
	return write_mappings(TR_MAPPINGS_SHARED);
}

/* Pages that are not what an earlier checkpoint says, but what their mapping begins with: in a row. */
static struct {
	uint64_t start, end;
} left;

static void write_left(void)
{
	struct trc_left *r = left.end ? rec_begin(&snap.out, sizeof *r) : NULL;

	if (r) {
		r->start = left.start;
		r->end = left.end;
		rec_commit(&snap.out, r, TRC_LEFT, 0, sizeof *r);
	}
	left.end = 0;
}

static void page_left(uint64_t page)
{
	if (left.end != page)
		write_left();
	if (!left.end)
		left.start = page;
	left.end = page + RAW_PAGE;
}

bool tr_checkpoint_end(const struct tr_pages_what *what, bool copy)
{
	snap.differences = true;
	snap.copy = copy;
	left.end = 0;
	tr_pages_begin(what, page_left);
	bool whole = write_mappings(TR_MAPPINGS_PRIVATE);

	tr_pages_end();
	write_left();
	snap.differences = snap.copy = false;
	return rec_close(&snap.out) && whole;
}

void tr_checkpoint_left(void)
{
	snap.out = (struct rec_stream){ .dead = true };
}
