/* See memory.h. Mappings, protection, the slow path of every access. */
#include "analyzer/engine/memory_tree.h"

#include "analyzer/engine/memory_inline.h"
#include "common/vec.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static struct mem_page zero_page __attribute__((aligned(16))) = { .refs = 1 };

#define PAGE_OF(a) ((a) & ~(uint64_t)(MEM_PAGE - 1))

/* ---- life ---- */

static void tlb_empty(struct mem_tlb *tlb, unsigned i)
{
	tlb[i].tag = (uint64_t)(i ^ 1) * MEM_PAGE;
}

static void tlb_clear(struct mem_tlb *tlb)
{
	for (unsigned i = 0; i < MEM_TLB; i++)
		tlb_empty(tlb, i);
}

static void forget_reads(struct mem *m)
{
	tlb_clear(m->read);
	m->watched_read.host = NULL;
}

static void forget_writes(struct mem *m)
{
	tlb_clear(m->write);
	m->watched_write.host = NULL;
}

static void tlb_clear_all(struct mem *m)
{
	forget_reads(m);
	forget_writes(m);
}

static uint64_t most_there_is(void)
{
	uint64_t most = MEM_MOST, page = (uint64_t)sysconf(_SC_PAGESIZE);
	long pages = sysconf(_SC_PHYS_PAGES);
	struct rlimit space;

	if (pages > 0 && (uint64_t)pages * page / 2 < most)
		most = (uint64_t)pages * page / 2;
	if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur / 2 < most)
		most = space.rlim_cur / 2;
	if (!getrlimit(RLIMIT_DATA, &space) && space.rlim_cur / 2 < most) /* --max-memory */
		most = space.rlim_cur / 2;
	return most;
}

void mem_say_exhausted(const struct mem *m, char *buf, size_t n)
{
	snprintf(buf, n, "the program touches more memory than the machine has for it (%llu MiB)",
		 (unsigned long long)(m->most >> 20));
}

struct mem *mem_new(void)
{
	struct mem *m = xcalloc(1, sizeof *m);

	m->root = mem_node_new();
	m->most = most_there_is();
	m->refused = MEM_NOTHING;
	m->maps = xcalloc(1, sizeof *m->maps);
	m->maps->refs = 1;
	tlb_clear_all(m);
	return m;
}

static void maps_unref(struct mem_maps *maps)
{
	if (maps && --maps->refs == 0) {
		free(maps->v);
		free(maps);
	}
}

void mem_free(struct mem *m)
{
	if (!m)
		return;
	mem_node_unref(m->root, MEM_LEVELS - 1);
	maps_unref(m->maps);
	free(m->code_pages);
	free(m);
}

void mem_save(struct mem *m, struct mem_image *out)
{
	m->root->refs++;
	m->maps->refs++;
	*out = (struct mem_image){ m->root, m->maps, m->code_epoch };
	forget_writes(m); /* every page is shared now */
}

void mem_restore(struct mem *m, const struct mem_image *image)
{
	m->exhausted = false;
	image->root->refs++;
	image->maps->refs++;
	mem_node_unref(m->root, MEM_LEVELS - 1);
	maps_unref(m->maps);
	m->root = image->root;
	m->maps = image->maps;
	tlb_clear_all(m);
	if (image->code_epoch != m->code_epoch) {
		m->code_epoch = image->code_epoch;
		if (m->code_changed)
			m->code_changed(m->code_arg, 0, UINT64_MAX);
	}
}

void mem_image_free(struct mem_image *image)
{
	mem_node_unref(image->root, MEM_LEVELS - 1);
	maps_unref(image->maps);
	*image = (struct mem_image){ 0 };
}

/* ---- mappings ---- */

static struct mem_maps *maps_own(struct mem *m)
{
	struct mem_maps *old = m->maps, *copy;

	if (old->refs == 1)
		return old;
	copy = xcalloc(1, sizeof *copy);
	copy->refs = 1;
	copy->n = copy->cap = old->n;
	copy->v = xmalloc((old->n + 1) * sizeof *copy->v);
	if (old->n)
		memcpy(copy->v, old->v, old->n * sizeof *copy->v);
	old->refs--;
	return m->maps = copy;
}

/* The first mapping that ends behind address. */
static size_t maps_lower(const struct mem_maps *maps, uint64_t address)
{
	size_t lo = 0, hi = maps->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (maps->v[mid].end <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct mem_map *mem_find(const struct mem *m, uint64_t address)
{
	size_t i = maps_lower(m->maps, address);

	if (i < m->maps->n && m->maps->v[i].start <= address)
		return &m->maps->v[i];
	return NULL;
}

bool mem_overlaps(const struct mem *m, uint64_t lo, uint64_t hi)
{
	size_t i = maps_lower(m->maps, lo);

	return i < m->maps->n && m->maps->v[i].start < hi;
}

static void maps_insert(struct mem_maps *maps, size_t at, struct mem_map map)
{
	if (maps->n == maps->cap)
		maps->v = vec_grow(maps->v, &maps->cap, sizeof *maps->v, maps->n + 1);
	memmove(&maps->v[at + 1], &maps->v[at], (maps->n - at) * sizeof *maps->v);
	maps->v[at] = map;
	maps->n++;
}

/* Makes address a boundary between mappings, if one crosses it. */
static void maps_split(struct mem_maps *maps, uint64_t address)
{
	size_t i = maps_lower(maps, address);

	if (i < maps->n && maps->v[i].start < address) {
		struct mem_map upper = maps->v[i];

		upper.start = address;
		if (upper.alias)
			upper.alias += address - maps->v[i].start;
		maps->v[i].end = address;
		maps_insert(maps, i + 1, upper);
	}
}

static void maps_remove(struct mem_maps *maps, uint64_t lo, uint64_t hi)
{
	maps_split(maps, lo);
	maps_split(maps, hi);
	size_t i = maps_lower(maps, lo), j = i;

	while (j < maps->n && maps->v[j].start < hi)
		j++;
	if (j == i)
		return;
	memmove(&maps->v[i], &maps->v[j], (maps->n - j) * sizeof *maps->v);
	maps->n -= j - i;
}

/* ---- translated code ---- */

static size_t code_slot(const struct mem *m, uint64_t page)
{
	size_t i = (size_t)((page >> 12) * 0x9e3779b97f4a7c15ull >> 20) & (m->code_cap - 1);

	while (m->code_pages[i] && m->code_pages[i] != page + 1)
		i = (i + 1) & (m->code_cap - 1);
	return i;
}

static bool is_code(const struct mem *m, uint64_t page)
{
	return m->ncode && m->code_pages[code_slot(m, page)];
}

static void mark_code(struct mem *m, uint64_t page)
{
	unsigned i = page / MEM_PAGE % MEM_TLB;

	if (m->code_cap && m->code_pages[code_slot(m, page)])
		return;
	if (m->ncode * 2 >= m->code_cap) {
		uint64_t *old = m->code_pages;
		size_t cap = m->code_cap;

		m->code_cap = cap ? cap * 2 : 64;
		m->code_pages = xcalloc(m->code_cap, sizeof *m->code_pages);
		for (size_t k = 0; k < cap; k++)
			if (old[k])
				m->code_pages[code_slot(m, old[k] - 1)] = old[k];
		free(old);
	}
	m->code_pages[code_slot(m, page)] = page + 1; /* page 0 is possible, 0 is empty */
	m->ncode++;
	if (m->write[i].tag == page)
		tlb_empty(m->write, i);
	if (m->watched_write.tag == page)
		m->watched_write.host = NULL;
}

static void code_touched(struct mem *m, uint64_t lo, uint64_t hi)
{
	bool any = false;

	if (!m->ncode)
		return;
	if ((hi - lo) / MEM_PAGE > m->ncode) {
		for (size_t i = 0; i < m->code_cap && !any; i++)
			any = m->code_pages[i] && m->code_pages[i] - 1 >= PAGE_OF(lo) &&
			      m->code_pages[i] - 1 < hi;
	} else {
		for (uint64_t p = PAGE_OF(lo); p < hi && !any; p += MEM_PAGE)
			any = is_code(m, p);
	}
	if (!any)
		return;
	m->code_epoch = ++m->code_epochs;
	if (m->code_changed)
		m->code_changed(m->code_arg, lo, hi);
}

/* ---- changing mappings ---- */

static void drop_page(void *arg, uint64_t address, uintptr_t *slot)
{
	(void)arg;
	(void)address;
	mem_page_unref(mem_slot_page(*slot));
	*slot = 0;
}

static bool round_out(uint64_t *lo, uint64_t *hi)
{
	if (*lo >= *hi || *hi > MEM_TOP)
		return false;
	*lo = PAGE_OF(*lo);
	*hi = PAGE_OF(*hi + MEM_PAGE - 1);
	return true;
}

void mem_discard(struct mem *m, uint64_t lo, uint64_t hi)
{
	if (!round_out(&lo, &hi))
		return;
	code_touched(m, lo, hi);
	mem_slots_in(&m->root, lo, hi, drop_page, NULL);
	tlb_clear_all(m);
}

void mem_unmap(struct mem *m, uint64_t lo, uint64_t hi)
{
	if (!round_out(&lo, &hi))
		return;
	mem_discard(m, lo, hi);
	maps_remove(maps_own(m), lo, hi);
}

bool mem_map(struct mem *m, uint64_t lo, uint64_t hi, unsigned prot, bool file)
{
	struct mem_maps *maps;

	if (!round_out(&lo, &hi))
		return false;
	mem_unmap(m, lo, hi);
	maps = maps_own(m);
	maps_insert(maps, maps_lower(maps, lo),
		    (struct mem_map){ lo, hi, (uint8_t)(prot & 7), file, 0 });
	return true;
}

bool mem_map_shared(struct mem *m, uint64_t lo, uint64_t hi, unsigned prot, uint64_t at)
{
	struct mem_maps *maps;

	if (at < MEM_TOP || at >= 2 * MEM_TOP || hi - lo > 2 * MEM_TOP - at || !mem_map(m, lo, hi, prot, false))
		return false;
	maps = maps_own(m);
	maps->v[maps_lower(maps, lo)].alias = PAGE_OF(at);
	return true;
}

void mem_refuse(struct mem *m, uint64_t address)
{
	uint64_t page = address == MEM_NOTHING ? MEM_NOTHING : PAGE_OF(address);
	unsigned i = page / MEM_PAGE % MEM_TLB;

	m->refused = page;
	if (m->read[i].tag == page)
		tlb_empty(m->read, i);
	if (m->write[i].tag == page)
		tlb_empty(m->write, i);
	m->watched_read.host = m->watched_write.host = NULL;
}

static void set_prot(void *arg, uint64_t address, uintptr_t *slot)
{
	(void)address;
	*slot = (*slot & ~(uintptr_t)MEM_SLOT_PROT) | *(unsigned *)arg;
}

void mem_protect(struct mem *m, uint64_t lo, uint64_t hi, unsigned prot)
{
	struct mem_maps *maps;

	prot &= 7;
	if (!round_out(&lo, &hi))
		return;
	maps = maps_own(m);
	maps_split(maps, lo);
	maps_split(maps, hi);
	for (size_t i = maps_lower(maps, lo); i < maps->n && maps->v[i].start < hi; i++)
		maps->v[i].prot = (uint8_t)prot;
	mem_slots_in(&m->root, lo, hi, set_prot, &prot);
	tlb_clear_all(m);
}

struct moved_page {
	uint64_t address;
	uintptr_t slot;
};

struct move {
	VEC(struct moved_page) pages;
};

static void take_page(void *arg, uint64_t address, uintptr_t *slot)
{
	struct move *mv = arg;

	vec_push(&mv->pages, (struct moved_page){ address, *slot });
	*slot = 0;
}

/* mremap: contents follow; what is beyond the old size is fresh. */
bool mem_move(struct mem *m, uint64_t from, uint64_t from_size, uint64_t to, uint64_t to_size)
{
	const struct mem_map *map = mem_find(m, from);
	struct move mv = { 0 };
	struct mem_map old;
	uint64_t lo = from, hi = from + from_size;

	if (!map || to_size > MEM_TOP || to > MEM_TOP - to_size || hi < lo)
		return false;
	old = *map;
	if (old.alias) { /* it has no pages of its own */
		if (from_size)
			mem_unmap(m, lo, hi);
		return mem_map_shared(m, to, to + to_size, old.prot, old.alias + (PAGE_OF(from) - old.start));
	}
	if (!round_out(&lo, &hi))
		return false;
	code_touched(m, lo, hi);
	mem_slots_in(&m->root, lo, hi, take_page, &mv);
	mem_unmap(m, lo, hi);
	mem_map(m, to, to + to_size, old.prot, old.file);
	for (size_t i = 0; i < mv.pages.n; i++) {
		uint64_t offset = mv.pages.v[i].address - from;

		if (offset < to_size)
			*mem_slot_make(&m->root, to + offset) = mv.pages.v[i].slot;
		else
			mem_page_unref(mem_slot_page(mv.pages.v[i].slot));
	}
	vec_free(&mv.pages);
	tlb_clear_all(m);
	return true;
}

/* ---- pages ---- */

/* There is no room for another page. */
static bool is_full(struct mem *m, uint64_t address)
{
	if (mem_held() < m->most)
		return false;
	m->exhausted = true;
	m->fault = address;
	return true;
}

static uint64_t kept_at(const struct mem_map *map, uint64_t address)
{
	return map->alias ? map->alias + (address - map->start) : address;
}

/* The page at address made present; NULL: not mapped. */
static uintptr_t *page_present(struct mem *m, uint64_t address)
{
	uintptr_t *slot;
	const struct mem_map *map;
	struct mem_page *p;

	if (address >= MEM_TOP)
		return NULL;
	slot = mem_slot_find(m->root, address);
	if (slot && *slot)
		return slot;
	map = mem_find(m, address);
	if (map && map->alias) {
		address = kept_at(map, address);
		slot = mem_slot_find(m->root, address);
		if (slot && *slot)
			return slot;
	}
	if (!map || is_full(m, address))
		return NULL;
	p = &zero_page;
	if (map->file) {
		p = mem_page_new();
		if (!m->fill || !m->fill(m->fill_arg, PAGE_OF(address), p->data)) {
			mem_page_unref(p);
			return NULL;
		}
	}
	if (p == &zero_page)
		p->refs++;
	slot = mem_slot_make(&m->root, address);
	*slot = (uintptr_t)p | (map->alias ? MEM_SLOT_SHARED : map->prot);
	return slot;
}

const uint8_t *mem_page_for_read(struct mem *m, uint64_t address)
{
	uintptr_t *slot = page_present(m, address);

	return slot ? mem_slot_page(*slot)->data : NULL;
}

static uint8_t *page_for_write(struct mem *m, uint64_t address)
{
	uintptr_t *slot;
	struct mem_page *p;

	const struct mem_map *map;

	slot = page_present(m, address);
	if (!slot)
		return NULL;
	map = *slot & MEM_SLOT_SHARED ? mem_find(m, address) : NULL;
	slot = mem_slot_make(&m->root, map ? kept_at(map, address) : address);
	p = mem_slot_page(*slot);
	if (p->refs > 1) {
		if (is_full(m, address))
			return NULL;
		struct mem_page *copy = mem_page_new();
		struct mem_tlb *r = &m->read[address / MEM_PAGE % MEM_TLB];

		memcpy(copy->data, p->data, MEM_PAGE);
		p->refs--;
		*slot = (uintptr_t)copy | (*slot & (MEM_SLOT_PROT | MEM_SLOT_SHARED));
		p = copy;
		if (map)
			forget_reads(m); /* at its other addresses it is another page now, too */
		else if (r->tag == PAGE_OF(address))
			r->host = p->data;
		if (m->watched_read.tag == PAGE_OF(address))
			m->watched_read.host = NULL;
	}
	return p->data;
}

static bool allowed(struct mem *m, uint64_t address, unsigned need)
{
	if (PAGE_OF(address) == m->refused)
		return false;
	uintptr_t *slot = page_present(m, address);
	unsigned prot = slot ? *slot & MEM_SLOT_PROT : 0;

	if (slot && *slot & MEM_SLOT_SHARED) /* by mapping, not by page */
		prot = mem_find(m, address)->prot;

	/* x86: what can be written or executed can be read. */
	return need == MEM_R ? prot != 0 : (prot & need) != 0;
}

/* ---- accesses ---- */

void mem_watch(struct mem *m, const struct mem_watch *v, size_t n)
{
	m->watched = v;
	m->nwatched = n;
	m->touched = false;
	tlb_clear_all(m);
}

/* Is something in this page watched? Notices it when it is what is accessed. */
static bool is_watched(struct mem *m, uint64_t address, size_t n, bool write)
{
	bool page = false;

	for (size_t i = 0; i < m->nwatched; i++) {
		const struct mem_watch *w = &m->watched[i];

		if (!(write ? w->writes : w->reads))
			continue;
		page |= PAGE_OF(w->lo) <= PAGE_OF(address) && PAGE_OF(w->hi - 1) >= PAGE_OF(address);
		m->touched |= address < w->hi && address + n > w->lo;
	}
	return page;
}

/* Where the bytes are, when all lie in the watched page that was accessed last. What is watched may lie among busy data. */
static uint8_t *in_watched_page(struct mem *m, uint64_t address, size_t n, bool write)
{
	const struct mem_tlb *e = write ? &m->watched_write : &m->watched_read;

	if (!e->host || address < e->tag || address - e->tag > MEM_PAGE - n || n > MEM_PAGE)
		return NULL;
	is_watched(m, address, n, write);
	return e->host + (address - e->tag);
}

/* The page is found again without being looked for. */
static void enter_page(struct mem *m, uint64_t address, uint8_t *page, bool watched, bool write)
{
	struct mem_tlb *kept = write ? m->write : m->read, *seen = write ? &m->watched_write : &m->watched_read;

	if (PAGE_OF(address) != m->refused)
		*(watched ? seen : &kept[address / MEM_PAGE % MEM_TLB]) = (struct mem_tlb){ PAGE_OF(address), page };
}

static bool check(struct mem *m, uint64_t address, size_t n, unsigned need)
{
	uint64_t last = address + n - 1;

	if (last < address) {
		m->fault = address;
		return false;
	}
	for (uint64_t page = PAGE_OF(address); page <= last; page += MEM_PAGE)
		if (!allowed(m, page, need)) {
			m->fault = page > address ? page : address;
			return false;
		}
	return true;
}

static bool copy_out(struct mem *m, uint64_t address, uint8_t *buf, size_t n, bool enter)
{
	while (n) {
		size_t offset = address % MEM_PAGE;
		size_t part = MEM_PAGE - offset < n ? MEM_PAGE - offset : n;
		const uint8_t *page = mem_page_for_read(m, address);

		if (!page)
			return false;
		if (enter)
			enter_page(m, address, (uint8_t *)page, is_watched(m, address, part, false), false);
		memcpy(buf, page + offset, part);
		address += part;
		buf += part;
		n -= part;
	}
	return true;
}

static bool copy_in(struct mem *m, uint64_t address, const uint8_t *buf, size_t n, bool enter)
{
	while (n) {
		size_t offset = address % MEM_PAGE;
		size_t part = MEM_PAGE - offset < n ? MEM_PAGE - offset : n;
		uint8_t *page = page_for_write(m, address);

		if (!page)
			return false;
		bool watched = is_watched(m, address, part, true);

		if (is_code(m, PAGE_OF(address)))
			code_touched(m, address, address + part);
		else if (enter)
			enter_page(m, address, page, watched, true);
		memcpy(page + offset, buf, part);
		address += part;
		buf += part;
		n -= part;
	}
	return true;
}

bool mem_load(struct mem *m, uint64_t address, void *buf, size_t n)
{
	const uint8_t *host = m->nwatched ? in_watched_page(m, address, n, false) : NULL;

	if (host)
		memcpy(buf, host, n);
	return !n || host || (check(m, address, n, MEM_R) && copy_out(m, address, buf, n, true));
}

bool mem_store(struct mem *m, uint64_t address, const void *buf, size_t n)
{
	uint8_t *host = m->nwatched ? in_watched_page(m, address, n, true) : NULL;

	if (host)
		memcpy(host, buf, n);
	return !n || host || (check(m, address, n, MEM_W) && copy_in(m, address, buf, n, true));
}

bool mem_writable(struct mem *m, uint64_t address, size_t n)
{
	return check(m, address, n, MEM_W);
}

static bool mapped(struct mem *m, uint64_t address, size_t n)
{
	uint64_t end = address + n;

	if (end < address || end > MEM_TOP)
		return false;
	while (address < end) {
		const struct mem_map *map = mem_find(m, address);

		if (!map)
			return false;
		address = map->end;
	}
	return true;
}

bool mem_peek(struct mem *m, uint64_t address, void *buf, size_t n)
{
	return mapped(m, address, n) && copy_out(m, address, buf, n, false);
}

bool mem_poke(struct mem *m, uint64_t address, const void *buf, size_t n)
{
	return mapped(m, address, n) && copy_in(m, address, buf, n, false);
}

void mem_code_ends(struct mem *m, uint64_t address)
{
	if (address < MEM_TOP)
		mark_code(m, PAGE_OF(address));
}

size_t mem_fetch(struct mem *m, uint64_t address, void *buf, size_t n)
{
	size_t done = 0;

	while (done < n && allowed(m, address + done, MEM_X)) {
		uint64_t at = address + done;
		size_t part = MEM_PAGE - at % MEM_PAGE;

		if (part > n - done)
			part = n - done;
		copy_out(m, at, (uint8_t *)buf + done, part, false);
		mark_code(m, PAGE_OF(at));
		done += part;
	}
	return done;
}
