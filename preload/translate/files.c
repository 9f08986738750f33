/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mappings whose contents change without a store of this process: of files, which are written through descriptors, and
 * shared ones, which are mapped twice or written by children. Which object each shows is in the trace, so that what is
 * stored at one address is seen at the others; what a call writes into a mapped file is recorded with the call.
 */
#include "preload/translate/syscall.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define MOST 512u
#define WATCHED_PAGES 64u /* of a mapping: looked at when a child has ended */

static struct mapped {
	uint64_t start, end, object, offset; /* object 0: the entry is free */
	uint64_t size;       /* of the file, as last seen */
	bool shared, unread; /* unread: nothing of it was recorded, it could not be read */
	uint64_t sums[WATCHED_PAGES]; /* of its pages, as last seen; 0: never */
} mapped[MOST] RAW_LARGE;
static unsigned used; /* entries from here on were never used */

uint64_t files_object(const struct stat *st)
{
	return (uint64_t)st->st_dev << 40 ^ (uint64_t)st->st_ino ^ 1ull << 62;
}

uint64_t files_new_object(void)
{
	static uint64_t last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED) | 3ull << 62;
}

static void put(const struct mapped *m, uint64_t start, uint64_t end)
{
	unsigned i = 0;

	while (i < used && mapped[i].object)
		i++;
	if (i == MOST) {
		shim_note(false, "more files are mapped than can be watched: what is written into them is not recorded");
		return;
	}
	mapped[i] = (struct mapped){ start, end, m->object, m->offset + (start - m->start), m->size,
				     m->shared, m->unread, { 0 } };
	if (i >= used)
		__atomic_store_n(&used, i + 1, __ATOMIC_RELEASE);
}

/* What is mapped there is something else now. */
static void cut(uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < used; i++) {
		struct mapped m = mapped[i];

		if (!m.object || m.end <= start || m.start >= end)
			continue;
		mapped[i].object = 0;
		if (m.start < start)
			put(&m, m.start, start);
		if (m.end > end)
			put(&m, end, m.end);
	}
}

void files_map(uint64_t start, uint64_t end, uint64_t object, uint64_t offset, uint64_t size, bool shared)
{
	struct mapped new = { start, end, object, offset, size, shared, false, { 0 } };

	if (!object && !__atomic_load_n(&used, __ATOMIC_ACQUIRE))
		return;
	tr_lock();
	cut(start, end);
	if (object)
		put(&new, start, end);
	tr_unlock();
}

bool files_at(uint64_t address, struct files_place *p)
{
	for (unsigned i = 0; i < used; i++)
		if (mapped[i].object && address >= mapped[i].start && address < mapped[i].end) {
			*p = (struct files_place){ mapped[i].end, mapped[i].object,
						   mapped[i].offset + (address - mapped[i].start), mapped[i].size,
						   mapped[i].shared, mapped[i].unread };
			return true;
		}
	return false;
}

static void add_range(struct call *k, uint64_t from, uint64_t to)
{
	uint8_t byte;

	/* Not what lies behind the end of the file, nor what may not be read. */
	for (uint64_t at = from, end; at < to; at = end) {
		end = tr_min((at & ~(RAW_PAGE - 1)) + RAW_PAGE, to);
		if (!tr_copy(&byte, (void *)at, 1)) {
			if (at > from)
				call_effect_add(k, from, at - from, TRC_EFFECT_WRITE);
			from = end;
		}
	}
	if (to > from)
		call_effect_add(k, from, to - from, TRC_EFFECT_WRITE);
}

/*
 * What is known of a file that a call has written to. One that has grown shows zeros where it had nothing: from its old end, and up to the
 * end of its last page.
 */
struct written {
	uint64_t object, size;
};

static void files_written(struct call *k, const struct written *w, uint64_t offset, uint64_t len)
{
	uint64_t end = len > UINT64_MAX - offset ? UINT64_MAX : offset + len;

	tr_lock();
	for (unsigned i = 0; i < used; i++) {
		struct mapped *m = &mapped[i];
		uint64_t last = m->offset + (m->end - m->start), from = offset, to = end;

		if (m->object != w->object)
			continue;
		if (w->size > m->size) {
			from = tr_min(from, m->size);
			to = end < w->size ? w->size : end;
			to = to > UINT64_MAX - RAW_PAGE ? to : (to + RAW_PAGE - 1) & ~(RAW_PAGE - 1);
		}
		m->size = w->size;
		if (last > from && m->offset < to)
			add_range(k, m->start + (from > m->offset ? from - m->offset : 0),
				  to < last ? m->start + (to - m->offset) : m->end);
	}
	tr_unlock();
}

void files_contents(struct call *k, uint64_t start, uint64_t end)
{
	tr_lock();
	for (unsigned i = 0; i < used; i++)
		if (mapped[i].object && mapped[i].start < end && mapped[i].end > start)
			add_range(k, mapped[i].start > start ? mapped[i].start : start, tr_min(mapped[i].end, end));
	tr_unlock();
}

void files_unread(uint64_t start)
{
	tr_lock();
	for (unsigned i = 0; i < used; i++)
		if (mapped[i].object && mapped[i].start == start)
			mapped[i].unread = true;
	tr_unlock();
}

void files_readable(struct call *k, uint64_t start, uint64_t end)
{
	if (!__atomic_load_n(&used, __ATOMIC_ACQUIRE))
		return;
	tr_lock();
	for (unsigned i = 0; i < used; i++)
		if (mapped[i].object && mapped[i].unread && mapped[i].start < end && mapped[i].end > start)
			add_range(k, mapped[i].start > start ? mapped[i].start : start, tr_min(mapped[i].end, end));
	tr_unlock();
}

/* ---- calls ---- */

static bool object_of(int fd, struct written *w)
{
	struct stat st;

	if (raw_failed(raw(SYS_fstat, fd, &st)) || (st.st_mode & S_IFMT) != S_IFREG)
		return false;
	*w = (struct written){ files_object(&st), (uint64_t)st.st_size };
	return true;
}

/* n bytes before where the descriptor stands now. */
static void behind(struct call *k, int fd, uint64_t n)
{
	struct written w;
	long at = raw(SYS_lseek, fd, 0, SEEK_CUR);

	if (object_of(fd, &w) && at >= 0)
		files_written(k, &w, (uint64_t)at > n ? (uint64_t)at - n : 0, n);
}

/* n bytes from an offset; with O_APPEND the offset does not matter. */
static void from(struct call *k, int fd, uint64_t offset, uint64_t n)
{
	struct written w;
	long flags = raw(SYS_fcntl, fd, F_GETFL);

	if (!object_of(fd, &w))
		return;
	if (flags >= 0 && flags & O_APPEND)
		offset = 0, n = UINT64_MAX;
	files_written(k, &w, offset, n);
}

/* n bytes before the offset that the call has moved on. */
static void before(struct call *k, int fd, uint64_t offset_at, uint64_t n)
{
	uint64_t end;

	if (!offset_at)
		behind(k, fd, n);
	else if (tr_copy(&end, (void *)offset_at, 8))
		from(k, fd, end > n ? end - n : 0, n);
}

static void whole(struct call *k, int fd)
{
	struct written w;

	if (object_of(fd, &w))
		files_written(k, &w, 0, UINT64_MAX);
}

static void whole_by_name(struct call *k, uint64_t path)
{
	struct stat st;

	if (raw_failed(raw(SYS_newfstatat, AT_FDCWD, path, &st, 0)))
		return;
	struct written w = { files_object(&st), (uint64_t)st.st_size };

	files_written(k, &w, 0, UINT64_MAX);
}

/* Pages that are not what they were, of shared memory or a mapped file: written by a child, or by us. */
static void look_at_mapped(struct call *k)
{
	uint8_t page[RAW_PAGE];

	tr_lock();
	for (unsigned i = 0; i < used; i++) {
		struct mapped *m = &mapped[i];

		if (!m->object || (m->end - m->start) / RAW_PAGE > WATCHED_PAGES)
			continue;
		for (uint64_t at = m->start; at < m->end && k->neffects < CALL_EFFECTS; at += RAW_PAGE) {
			uint64_t *sum = &m->sums[(at - m->start) / RAW_PAGE], now;

			if (!tr_copy(page, (void *)at, RAW_PAGE))
				continue;
			now = trc_checksum(page, RAW_PAGE) | 1;
			if (now != *sum)
				call_effect_add(k, at, RAW_PAGE, TRC_EFFECT_WRITE);
			*sum = now;
		}
	}
	tr_unlock();
}

static void advised(struct call *k, uint64_t start, uint64_t len, uint64_t advice)
{
	struct files_place p = { 0 };

	if (advice == MADV_DONTNEED || advice == 24 /* MADV_DONTNEED_LOCKED */)
		files_contents(k, start, start + len);
	if (advice != MADV_REMOVE) /* a hole in the file */
		return;
	tr_lock();
	files_at(start, &p);
	tr_unlock();
	struct written w = { p.object, p.size };

	if (p.object)
		files_written(k, &w, p.offset, len);
}

void call_files(struct call *k)
{
	const uint64_t *a = k->args;
	uint64_t n = (uint64_t)k->result;
	bool in_part = k->nr == SYS_madvise && k->result == -ENOMEM; /* there was a hole */

	if ((raw_failed(k->result) && !in_part) || !__atomic_load_n(&used, __ATOMIC_ACQUIRE))
		return;
	switch (k->nr) {
	case SYS_write: case SYS_writev: behind(k, (int)a[0], n); break;
	case SYS_pwrite64: case SYS_pwritev: from(k, (int)a[0], a[3], n); break;
	case SYS_pwritev2:
		if ((int64_t)a[3] == -1)
			behind(k, (int)a[0], n);
		else
			from(k, (int)a[0], a[3], n);
		break;
	case SYS_sendfile: behind(k, (int)a[0], n); break;
	case SYS_splice: case SYS_copy_file_range: before(k, (int)a[2], a[3], n); break;
	case SYS_ftruncate: case SYS_fallocate: whole(k, (int)a[0]); break;
	case SYS_truncate: whole_by_name(k, a[0]); break;
	case SYS_open: if (a[1] & O_TRUNC) whole(k, (int)k->result); break;
	case SYS_openat: if (a[2] & O_TRUNC) whole(k, (int)k->result); break;
	case SYS_creat: whole(k, (int)k->result); break;
	case SYS_madvise: advised(k, a[0], (a[1] + RAW_PAGE - 1) & ~(RAW_PAGE - 1), a[2]); break;
	case SYS_wait4: if (k->result > 0) look_at_mapped(k); break;
	case SYS_waitid: look_at_mapped(k); break;
	}
}
