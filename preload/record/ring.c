// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The flight recorder's files: which epoch is being written, how much of the past is kept, and what goes.
 *
 * A trace with epochs has the files of trace_format.h once for each epoch, called e1.process, e1.t0.rec, e2.process and so
 * on; only frags goes on through all of them. A checkpoint begins the next epoch (translate/epoch.c): its memory is written to
 * eN.memory-new, which gets its name when it is whole. So whenever the process is killed, the newest epoch whose
 * eN.memory exists can be read from its beginning, and what was recorded behind it continues it.
 *
 * Room: an epoch has a quarter of the ring, apart from its checkpoint. Behind a checkpoint epochs go, oldest first, until a quarter
 * is free; before one as many as it will need. The newest whole one always stays, so a program whose memory
 * does not fit into the ring twice gets no checkpoints, and recording stops when the ring is full.
 */
#include "preload/raw.h"
#include "preload/record/file.h"
#include "preload/record/stream.h"
#include "preload/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define PART 4u        /* of the ring: what an epoch records, and what is free behind a checkpoint */
#define KEPT_MAX 64u   /* epochs: of more the files would be many */
#define IDENTITY_MAX (40ul << 10)

uint32_t rec_epoch;

static struct {
	uint32_t oldest, whole;     /* epochs that are there; the newest that can be read from its beginning */
	uint64_t began;             /* bytes there were when this one began */
	uint64_t since[KEPT_MAX];   /* tsc at the beginning of the epoch, by number */
	bool said;                  /* why there are no checkpoints */
} ring;

/* What the process stream says first, in each epoch again. */
static struct {
	char *text; /* keys and values, each with its length before it */
	size_t used;
} identity;

void rec_ring_start(void)
{
	bool on = shim_opt.mode == SHIM_MODE_PATH && (shim_opt.ring || shim_opt.last_ms);

	rec_epoch = on;
	ring.oldest = ring.whole = 1;
	ring.began = 0;
	ring.said = false;
	ring.since[1] = raw_tsc();
	identity.used = 0;
}

uint32_t rec_ring_oldest(void)
{
	return ring.oldest;
}

uint64_t rec_ring_limit(void)
{
	return shim_opt.ring && shim_opt.ring < shim_opt.max_size ? shim_opt.ring : shim_opt.max_size;
}

bool rec_ring_full(void)
{
	return rec_total() - ring.began > rec_ring_limit() / PART;
}

/* The epoch a file belongs to; 0: none. */
static uint32_t epoch_of(const char *name)
{
	uint32_t n = 0;

	if (*name++ != 'e')
		return 0;
	for (; *name >= '0' && *name <= '9' && n < UINT32_MAX / 16; name++)
		n = 10 * n + (uint32_t)(*name - '0');
	return *name == '.' ? n : 0;
}

struct removal {
	uint32_t below;   /* this epoch */
	bool checkpoints; /* and of these only their memory */
	bool any;
};

static bool is_checkpoint(const char *name)
{
	size_t n = strlen(name);

	return n > 7 && !memcmp(name + n - 7, ".memory", 8);
}

static void remove_old(int dir, const char *name, void *arg)
{
	struct removal *r = arg;
	uint32_t epoch = epoch_of(name);
	struct stat st;

	if (!epoch || epoch >= r->below || (r->checkpoints && !is_checkpoint(name)) ||
	    raw(SYS_newfstatat, dir, name, &st, AT_SYMLINK_NOFOLLOW) || raw(SYS_unlinkat, dir, name, 0))
		return;
	r->any = true;
	file_give_back((size_t)st.st_size < rec_total() ? (size_t)st.st_size : rec_total());
}

/* Unlinking while reading may skip names: until nothing is left. */
static void remove_below(uint32_t epoch, bool checkpoints)
{
	struct removal r = { .below = epoch, .checkpoints = checkpoints };

	do {
		r.any = false;
		rec_dir_each(remove_old, &r);
	} while (r.any);
}

/* Checkpoints go first: without its own an epoch is never taken for one that can be read from its beginning. */
static void keep_from(uint32_t epoch)
{
	if (epoch <= ring.oldest)
		return;
	remove_below(epoch, true);
	remove_below(epoch, false);
	ring.oldest = epoch;
}

/* One after the other, but never the newest that is whole. */
static void shrink_to(uint64_t bytes)
{
	while (ring.oldest < ring.whole && rec_total() > bytes)
		keep_from(ring.oldest + 1);
}

static uint64_t ticks_per_ms(void)
{
	return rec_tsc_hz() / 1000;
}

/* Epochs that ended before the time that is asked for, and more than there are files for. */
static void forget_old(void)
{
	uint64_t now = raw_tsc(), keep = shim_opt.last_ms * ticks_per_ms();

	while (keep && ring.oldest < ring.whole && now - ring.since[(ring.oldest + 1) % KEPT_MAX] > keep)
		keep_from(ring.oldest + 1);
	if (rec_epoch - ring.oldest >= KEPT_MAX - 1 && ring.oldest < ring.whole)
		keep_from(ring.oldest + 1);
}

static bool cannot(const char *why)
{
	TEXT(t, 200);

	text_str(&t, "no more checkpoints: ");
	text_str(&t, why);
	if (!ring.said)
		shim_note(true, t.s);
	ring.said = true;
	return false;
}

/*
 * A user who may no longer make files has this epoch as the last one. So has a program whose checkpoint, `expected` bytes,
 * does not fit beside the one before it.
 */
bool rec_ring_prepare(uint64_t expected)
{
	uint64_t limit = rec_ring_limit(), saved;
	TEXT(name, 48);

	rec_lock(&saved);
	forget_old();
	shrink_to(expected < limit ? limit - expected : 0);
	bool fits = rec_total() + expected <= limit;

	text_str(&name, "e");
	text_num(&name, rec_epoch + 1);
	text_str(&name, ".process");
	int fd = fits ? rec_dir_open(name.s, O_RDWR | O_CREAT) : -ENOSPC;

	if (fd >= 0)
		raw(SYS_close, fd);
	rec_unlock(&saved);
	if (!fits)
		return cannot("the program's memory does not fit into the ring twice");
	if (fd == -EACCES || fd == -EPERM)
		return cannot("the trace may no longer be written (another user?)");
	return fd >= 0;
}

void rec_ring_begin(void)
{
	rec_epoch++;
	ring.since[rec_epoch % KEPT_MAX] = raw_tsc();
	ring.began = rec_total();
}

void rec_ring_count(int64_t bytes)
{
	file_give_back((size_t)-bytes);
	rec_ring_apart(bytes);
}

void rec_ring_apart(int64_t bytes)
{
	ring.began += (uint64_t)bytes;
}

bool rec_ring_name_checkpoint(void)
{
	TEXT(from, 48);
	TEXT(to, 48);

	text_str(&to, "e");
	text_num(&to, rec_epoch);
	text_str(&to, ".memory");
	text_str(&from, to.s);
	text_str(&from, "-new");
	return rec_dir_rename(from.s, to.s);
}

void rec_ring_complete(void)
{
	uint64_t saved, limit = rec_ring_limit();

	rec_lock(&saved);
	ring.whole = rec_epoch;
	forget_old();
	shrink_to(limit - limit / PART);
	rec_unlock(&saved);
}

struct saving {
	int to;
	unsigned refused;
};

static void save_one(int dir, const char *name, void *arg)
{
	struct saving *s = arg;
	uint32_t epoch = epoch_of(name);
	bool wanted = epoch ? epoch >= ring.oldest && epoch < rec_epoch : !strcmp(name, "frags");

	if (wanted && raw(SYS_linkat, dir, name, s->to, name, 0))
		s->refused++;
}

/* Links: the files of these epochs are not written any more, and frags only grows. */
bool rec_ring_save(void)
{
	struct saving s = { .to = rec_dir_save_begin() };

	if (s.to < 0)
		return false;
	rec_dir_each(save_one, &s);
	return rec_dir_save_end(s.to) && !s.refused;
}

/* ---- identity ---- */

static void keep_part(const char *s, size_t n)
{
	uint32_t len = (uint32_t)n;

	memcpy(identity.text + identity.used, &len, sizeof len);
	memcpy(identity.text + identity.used + sizeof len, s, n);
	identity.used += sizeof len + n;
}

void rec_identity_keep(const char *key, const char *value, size_t len)
{
	size_t klen = strlen(key);

	if (rec_epoch != 1)
		return;
	if (!identity.text)
		identity.text = raw_alloc(IDENTITY_MAX);
	if (!identity.text || identity.used + klen + len + 8 > IDENTITY_MAX)
		return;
	keep_part(key, klen);
	keep_part(value, len);
}

static const char *next_part(size_t *at, uint32_t *len)
{
	memcpy(len, identity.text + *at, sizeof *len);
	*at += sizeof *len + *len;
	return identity.text + *at - *len;
}

void rec_identity_again(void)
{
	for (size_t at = 0; at < identity.used;) {
		uint32_t klen, len;
		const char *key = next_part(&at, &klen), *value = next_part(&at, &len);
		TEXT(name, 64);

		text_strn(&name, key, klen);
		rec_kv(name.s, value, len);
	}
}
