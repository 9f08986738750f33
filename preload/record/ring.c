// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The flight recorder's files: which epoch is being written, how much of the past is kept, and what goes.
 *
 * A trace with epochs has the files of trace_format.h once for each epoch, called e1.process, e1.t0.rec, e2.process and so
 * on; only frags goes on through all of them. A checkpoint begins the next epoch (translate/epoch.c): its memory is written to
 * eN.memory-new, which gets its name when it is whole. So whenever the process is killed, the newest epoch whose
 * eN.memory exists can be read from its beginning, and what was recorded behind it continues it.
 *
 * A checkpoint holds all memory, or what has changed since an earlier one, which holds all or ...: a chain. Three kinds are
 * made: complete ones; those with what has changed since the last one; and, when these have become long, one with everything since the complete
 * one, so that those in between can go. When an epoch goes whose checkpoint others still need, that becomes eN.pages,
 * before anything else of the epoch goes: what is called eN.memory is always the beginning of a readable epoch.
 *
 * Room: an epoch has a quarter of the ring, apart from its checkpoint. Behind a checkpoint epochs go, oldest first, until a quarter
 * is free; before one as many as it will need; and at once when the ring is full, because no checkpoint could be taken for a while. The newest
 * whole one always stays, with its chain. Where not even that is enough, streams end; what comes before a checkpoint in which they begin anew
 * leads nowhere, and goes. A complete
 * checkpoint is made when what was written since the last one has become as much again, and both fit. A program whose memory does not fit into
 * the ring at all, or changes so much that two checkpoints do not fit, gets no more, and recording stops when the ring is full.
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
#define CHAIN_MAX 32u  /* checkpoints: reading an epoch means reading so many */
#define MEMORY_MAX (2 * KEPT_MAX + CHAIN_MAX) /* files of checkpoints */
#define MORE_MAX (4ul << 20) /* bytes that a checkpoint may have more than twice what was guessed */
#define EPOCH_LAST ((1u << 28) - 2) /* number of an epoch; see EPOCH_BITS in translate/pages.c */
#define IDENTITY_MAX (40ul << 10)

uint32_t rec_epoch;

static struct {
	uint32_t oldest, whole;     /* epochs that are there; the newest that can be read from its beginning */
	uint64_t began;             /* bytes there were when this one began */
	uint64_t since[KEPT_MAX];   /* tsc at the beginning of the epoch, by number */
	uint64_t bytes[KEPT_MAX];   /* of an epoch that is over, apart from its checkpoint, by number */
	struct checkpoint {
		uint32_t epoch, since; /* 0: it is complete */
		bool pages;            /* it is called so */
		bool needed;           /* by an epoch that stays */
		uint64_t bytes;
	} files[MEMORY_MAX];           /* that are whole, oldest first */
	unsigned nfiles;
	uint32_t next_since;        /* of the checkpoint that is being written */
	uint32_t broken;            /* streams ended in this epoch, for want of room */
	bool said, said_full;       /* why there are no checkpoints; that streams end */
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
	ring.said = ring.said_full = false;
	ring.nfiles = 0;
	ring.broken = 0;
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
	uint32_t below; /* this epoch */
	bool any;
};

static bool ends_in(const char *name, const char *tail)
{
	size_t n = strlen(name), m = strlen(tail);

	return n > m && !memcmp(name + n - m, tail, m);
}

static void give_back(uint64_t bytes)
{
	file_give_back(bytes < rec_total() ? bytes : rec_total());
}

static void remove_old(int dir, const char *name, void *arg)
{
	struct removal *r = arg;
	uint32_t epoch = epoch_of(name);
	struct stat st;

	if (!epoch || epoch >= r->below || ends_in(name, ".pages") || ends_in(name, ".memory") ||
	    raw(SYS_newfstatat, dir, name, &st, AT_SYMLINK_NOFOLLOW) || raw(SYS_unlinkat, dir, name, 0))
		return;
	r->any = true;
	give_back((uint64_t)st.st_size);
}

/* Unlinking while reading may skip names: until nothing is left. */
static void remove_below(uint32_t epoch)
{
	struct removal r = { .below = epoch };

	do {
		r.any = false;
		rec_dir_each(remove_old, &r);
	} while (r.any);
}

/* ---- checkpoints ---- */

static struct checkpoint *checkpoint_of(uint32_t epoch)
{
	for (unsigned i = 0; epoch && i < ring.nfiles; i++)
		if (ring.files[i].epoch == epoch)
			return &ring.files[i];
	return NULL;
}

static void name_of(struct raw_text *t, uint32_t epoch, const char *tail)
{
	text_str(t, "e");
	text_num(t, epoch);
	text_str(t, tail);
}

/* Those that epochs from this one on are read with. */
static void mark_needed(uint32_t from)
{
	for (unsigned i = 0; i < ring.nfiles; i++)
		ring.files[i].needed = false;
	for (unsigned i = 0; i < ring.nfiles; i++)
		if (ring.files[i].epoch >= from)
			for (struct checkpoint *c = &ring.files[i]; c && !c->needed; c = checkpoint_of(c->since))
				c->needed = true;
}

/* Bytes of the chain that ends here, without the complete one it begins with; that one's epoch and bytes. */
static uint64_t chain(uint32_t epoch, uint32_t *base, uint64_t *base_bytes, unsigned *length)
{
	uint64_t sum = 0;

	*base = 0;
	*base_bytes = 0;
	*length = 0;
	for (const struct checkpoint *c = checkpoint_of(epoch); c; c = checkpoint_of(c->since)) {
		++*length;
		*base = c->epoch;
		*base_bytes = c->bytes;
		sum += c->since ? c->bytes : 0;
	}
	return sum;
}

static void rename_to_pages(struct checkpoint *c)
{
	TEXT(from, 48);
	TEXT(to, 48);

	name_of(&from, c->epoch, ".memory");
	name_of(&to, c->epoch, ".pages");
	c->pages |= rec_dir_rename(from.s, to.s);
}

static bool remove_checkpoint(const struct checkpoint *c)
{
	TEXT(name, 48);

	name_of(&name, c->epoch, c->pages ? ".pages" : ".memory");
	if (!rec_dir_unlink(name.s))
		return false;
	give_back(c->bytes);
	return true;
}

/*
 * Oldest last: what is there can always be read. Without a checkpoint that is called so an epoch is not taken for one that
 * can be read from its beginning. False: this user may do nothing here.
 */
static bool forget_checkpoints(uint32_t below)
{
	unsigned n = 0;
	bool good = true;

	mark_needed(below);
	for (unsigned i = ring.nfiles; i-- > 0;) {
		struct checkpoint *c = &ring.files[i];

		if (c->epoch >= below)
			continue;
		if (!c->needed && remove_checkpoint(c))
			c->epoch = 0;
		else if (!c->pages)
			rename_to_pages(c);
		good &= !c->epoch || c->pages;
	}
	for (unsigned i = 0; i < ring.nfiles; i++)
		if (ring.files[i].epoch)
			ring.files[n++] = ring.files[i];
	ring.nfiles = n;
	return good;
}

static void keep_from(uint32_t epoch)
{
	if (epoch <= ring.oldest)
		return;
	if (forget_checkpoints(epoch))
		remove_below(epoch);
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
	while ((rec_epoch - ring.oldest >= KEPT_MAX - 1 || ring.nfiles >= MEMORY_MAX - 1) && ring.oldest < ring.whole)
		keep_from(ring.oldest + 1);
}

static bool cannot(const char *why)
{
	TEXT(t, 200);

	text_str(&t, "no checkpoint: ");
	text_str(&t, why);
	if (!ring.said) {
		shim_note(false, t.s);
		shim_say(0, t.s);
	}
	ring.said = true;
	return false;
}

/* What cannot be removed, now: the newest whole epoch, its chain, and what was recorded since. */
static uint64_t least(void)
{
	uint64_t gone = 0;

	mark_needed(ring.whole);
	for (unsigned i = 0; i < ring.nfiles; i++)
		gone += ring.files[i].needed ? 0 : ring.files[i].bytes;
	for (uint32_t e = ring.oldest; e < ring.whole; e++)
		gone += ring.bytes[e % KEPT_MAX];
	return rec_total() > gone ? rec_total() - gone : 0;
}

/* The next checkpoint: complete, with what has changed since the last complete one, or since the last one. */
static uint32_t choose_since(const struct rec_ring_need *need, uint64_t limit, uint64_t *bytes)
{
	uint32_t base;
	uint64_t base_bytes, sum;
	unsigned length;

	*bytes = need->all;
	if (!need->known || !checkpoint_of(ring.whole))
		return 0;
	sum = chain(ring.whole, &base, &base_bytes, &length);
	bool longer = length + 1 >= CHAIN_MAX, mostly = need->last > need->all / 2;

	if ((longer || mostly || sum + need->last > base_bytes) && least() + need->all <= limit)
		return 0;
	bool heavy = sum > need->recent + need->recent / 2 + limit / 16; /* much of it more than once */

	*bytes = longer || heavy ? need->recent : need->last;
	return longer || heavy ? base : ring.whole;
}

/*
 * A user who may no longer make files has this epoch as the last one. So has a program whose checkpoint
 * does not fit beside the one before it, as long as that is so.
 */
bool rec_ring_prepare(const struct rec_ring_need *need, struct rec_ring_next *next)
{
	uint64_t limit = rec_ring_limit(), saved;
	TEXT(name, 48);

	rec_lock(&saved);
	forget_old();
	ring.next_since = next->since = choose_since(need, limit, &next->bytes);
	chain(next->since, &next->base, &(uint64_t){ 0 }, &(unsigned){ 0 });
	/* It may well be much less: it is tried with what room there is, and then known. */
	if (need->guessed && least() + next->bytes > limit && least() + limit / PART < limit)
		next->bytes = limit - limit / PART - least();
	shrink_to(next->bytes < limit ? limit - next->bytes : 0);
	bool fits = rec_total() + next->bytes <= limit;
	uint64_t left = fits ? limit - rec_total() - next->bytes : 0;

	/* Streams go on while it is written. */
	left = left > limit / PART ? left - limit / PART : 0;
	next->most = next->bytes + (left < next->bytes + MORE_MAX ? left : next->bytes + MORE_MAX);
	name_of(&name, rec_epoch + 1, ".process");
	int fd = rec_epoch >= EPOCH_LAST ? -ERANGE : fits ? rec_dir_open(name.s, O_RDWR | O_CREAT) : -ENOSPC;

	if (fd >= 0)
		raw(SYS_close, fd);
	rec_unlock(&saved);
	if (fd == -ERANGE)
		return cannot("there are no more numbers for them");
	if (!fits)
		return cannot("the program's memory, or what it changes of it, does not fit into the ring twice");
	if (fd == -EACCES || fd == -EPERM)
		return cannot("the trace may no longer be written (another user?)");
	return fd >= 0;
}

void rec_ring_begin(void)
{
	ring.bytes[rec_epoch % KEPT_MAX] = rec_total() - ring.began;
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

/* A checkpoint that is whole. */
static void note_checkpoint(uint32_t epoch, uint32_t since)
{
	struct stat st;
	TEXT(name, 48);

	name_of(&name, epoch, ".memory");
	int fd = ring.nfiles < MEMORY_MAX ? rec_dir_open(name.s, O_RDONLY) : -1;

	if (fd < 0)
		return;
	if (!raw(SYS_fstat, fd, &st))
		ring.files[ring.nfiles++] = (struct checkpoint){ epoch, since, .bytes = (uint64_t)st.st_size };
	raw(SYS_close, fd);
}

void rec_ring_first(void)
{
	uint64_t saved;

	rec_lock(&saved);
	note_checkpoint(rec_epoch, 0);
	if (ring.nfiles)
		rec_ring_apart((int64_t)ring.files[0].bytes);
	rec_unlock(&saved);
}

bool rec_ring_name_checkpoint(void)
{
	TEXT(from, 48);
	TEXT(to, 48);

	name_of(&to, rec_epoch, ".memory");
	text_str(&from, to.s);
	text_str(&from, "-new");
	return rec_dir_rename(from.s, to.s);
}

void rec_ring_no_checkpoint(void)
{
	uint64_t saved;
	TEXT(name, 48);

	rec_lock(&saved);
	name_of(&name, rec_epoch, ".memory-new");
	rec_dir_unlink(name.s);
	rec_unlock(&saved);
}

void rec_ring_complete(void)
{
	uint64_t saved, limit = rec_ring_limit();

	rec_lock(&saved);
	ring.whole = rec_epoch;
	note_checkpoint(rec_epoch, ring.next_since);
	if (ring.broken && ring.broken < rec_epoch) {
		keep_from(rec_epoch);
		ring.broken = 0;
	}
	forget_old();
	shrink_to(limit - limit / PART);
	rec_unlock(&saved);
}

bool rec_ring_make_room(uint64_t limit)
{
	uint64_t saved;

	if (!rec_epoch || rec_memory_file >= 0)
		return false;
	rec_lock(&saved);
	if (ring.oldest >= ring.whole && tr_epoch_settle)
		tr_epoch_settle();
	shrink_to(limit);
	rec_unlock(&saved);
	return rec_total() <= limit;
}

/* In each epoch it is noted; the program's user hears it once. */
void rec_ring_broken(void)
{
	static const char text[] = "the ring is full: nothing is recorded until the next checkpoint";

	if (ring.broken == rec_epoch)
		return;
	ring.broken = rec_epoch;
	shim_note(true, text);
	if (!ring.said_full)
		shim_say(0, text);
	ring.said_full = true;
}

struct saving {
	int to;
	unsigned refused;
};

static void save_one(int dir, const char *name, void *arg)
{
	struct saving *s = arg;
	uint32_t epoch = epoch_of(name);
	bool wanted = epoch ? (epoch >= ring.oldest || ends_in(name, ".pages")) && epoch < rec_epoch : !strcmp(name, "frags");

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
