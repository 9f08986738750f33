/*
 * Executable ranges of the application: from /proc/self/maps as the snapshot at the start reads it,
 * then kept up to date from the program's own mmap, munmap and mprotect calls.
 * The file is read again only when a pc lies in no known range, or data becomes code.
 */
#include "preload/maps.h"
#include "preload/translate/translate.h"

#include <fcntl.h>
#include <sys/mman.h>

#define CODE_MAX 2048
#define PAGE_BITS 16 /* translated pages: a small hash set, never wrong to say yes */

static struct tr_code ranges[CODE_MAX] RAW_LARGE;
static unsigned nranges;
static struct tr_code here; /* the range that was found last */
static uint64_t used[(1 << PAGE_BITS) / 64] RAW_LARGE;

void tr_code_forget(void)
{
	memset(used, 0, sizeof used);
}

static unsigned page_slot(uint64_t page)
{
	return (unsigned)((page ^ page >> 13) & ((1 << PAGE_BITS) - 1));
}

void tr_code_used(uint64_t pc)
{
	unsigned slot = page_slot(pc >> 12);

	used[slot / 64] |= 1ull << slot % 64;
}

bool tr_code_is_used(uint64_t start, uint64_t end)
{
	if (end - start > 1ull << 30)
		return true;
	for (uint64_t page = start >> 12; page < (end + 4095) >> 12; page++) {
		unsigned slot = page_slot(page);

		if (used[slot / 64] >> slot % 64 & 1)
			return true;
	}
	return false;
}

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

void tr_code_none(void)
{
	nranges = 0;
	here = (struct tr_code){ 0 };
}

/* "start-end perm offset dev inode   path" */
void tr_code_line(const char *p)
{
	struct tr_code r = { 0 };
	bool exec;

	r.start = hex(&p);
	p++;
	r.end = hex(&p);
	p++;
	exec = p[2] == 'x';
	r.writable = p[1] == 'w';
	r.made = p[3] == 's';
	p += 5;
	hex(&p);
	p++;
	hex(&p);
	p++;
	hex(&p);
	p++;
	r.made |= *p == '0' && p[1] == ' ';
	if (!exec || nranges == CODE_MAX || tr_owns(r.start, r.end) ||
	    r.start >= 0xffffffffff000000ull)
		return;
	ranges[nranges++] = r;
}

/* What is known goes only when something takes its place. */
static void code_line(char *line, void *first)
{
	if (*(bool *)first)
		tr_code_none();
	*(bool *)first = false;
	tr_code_line(line);
}

static bool unknown; /* the list could not be read when it was wanted last */

bool tr_code_refresh(void)
{
	static char buf[MAPS_BUFFER] RAW_LARGE;
	bool first = true;

	unknown = !maps_read(buf, code_line, &first);
	return !unknown;
}

bool tr_code_is_known(void)
{
	return !unknown;
}

/* Any of the range; no file is read for it: what is mapped is followed call by call. */
const struct tr_code *tr_code_in(uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < nranges; i++)
		if (ranges[i].start < end && start < ranges[i].end)
			return &ranges[i];
	return NULL;
}

static const struct tr_code *search(uint64_t pc)
{
	if (pc - here.start < here.end - here.start)
		return &here;
	for (unsigned i = 0; i < nranges; i++)
		if (pc >= ranges[i].start && pc < ranges[i].end) {
			here = ranges[i];
			return &here;
		}
	return NULL;
}

const struct tr_code *tr_code_at(uint64_t pc)
{
	const struct tr_code *r = search(pc);

	if (!r) {
		tr_code_refresh();
		r = search(pc);
	}
	return r;
}

static void range_add(struct tr_code r)
{
	if (nranges < CODE_MAX && r.start < r.end)
		ranges[nranges++] = r;
}

void tr_code_update(uint64_t start, uint64_t end, int prot, bool made)
{
	struct tr_code above = { 0 }; /* of one at most: ranges do not overlap */
	unsigned n = nranges, keep = 0;

	for (unsigned i = 0; i < n; i++) {
		struct tr_code r = ranges[i];

		if (r.start >= end || start >= r.end) {
			ranges[keep++] = r;
			continue;
		}
		if (r.end > end)
			above = (struct tr_code){ end, r.end, r.writable, r.made };
		if (r.start < start) {
			ranges[keep] = r;
			ranges[keep++].end = start;
		}
	}
	nranges = keep;
	here = (struct tr_code){ 0 };
	range_add(above);
	if (prot & PROT_EXEC)
		range_add((struct tr_code){ start, end, !!(prot & PROT_WRITE), made });
}

/*
 * Instructions decoded lately: what liveness.c looks at when a fragment ends is often where the
 * next one begins. Taken only while the bytes are still the same.
 */
#define DECODED 256u
static struct decoded {
	uint64_t pc, bytes[2];
	struct insn in;
} decoded[DECODED] RAW_LARGE;

const struct insn *tr_insn_at(uint64_t pc)
{
	struct decoded *d = &decoded[pc % DECODED];
	const uint8_t *code = (const uint8_t *)pc;
	size_t avail = tr_code_avail(pc);
	uint64_t first, last;

	if (avail < 15) {
		d->pc = 0;
		insn_decode(&d->in, code, avail, pc);
		return &d->in;
	}
	__builtin_memcpy(&first, code, 8);
	__builtin_memcpy(&last, code + 7, 8);
	if (d->pc != pc || d->bytes[0] != first || d->bytes[1] != last) {
		insn_decode(&d->in, code, avail, pc);
		d->pc = pc;
		d->bytes[0] = first;
		d->bytes[1] = last;
	}
	return &d->in;
}

size_t tr_code_avail(uint64_t pc)
{
	const struct tr_code *r = search(pc);

	return r ? (size_t)tr_min(15, r->end - pc) : 0;
}
