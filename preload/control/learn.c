/*
 * Which sites are shared: a table from address (8-byte granules) to the
 * threads that touched it, the locks all of them held, and the sites they used.
 * Once two threads met on a granule and one wrote, all its sites are marked
 * shared; and racy, too, when no lock was held every time (the lockset idea of
 * Eraser: good enough to decide what is tried first).
 */
#include "preload/control/control.h"

#include "preload/raw.h"
#include "preload/translate/translate.h"

#include <sys/mman.h>

#define NSLOTS (1u << 17)
#define PROBES 32
#define SITES_KEPT 6
#define LOCKS_KEPT 3
/* Executions of one site after which it has shown what it does. Its callouts
 * are switched off then: gzip took 1.58 of its native CPU time that way, over 30 without. */
#define ENOUGH 1000
#define ENOUGH_LOCAL 100 /* there are many, and few that others come to */
#define MAX_OFF 256
#define MAX_REVIVALS 64

struct slot {
	uint64_t granule; /* address / 8; 0 free */
	uint32_t first;   /* thread index + 1 */
	uint32_t owner;   /* on whose stack it is, index + 1; 0: not known to be on one */
	bool several, written;
	uint8_t nsites, nlocks;
	uint8_t pairs; /* of site[], a bit each: reached by a thread that had touched it last, elsewhere */
	uint32_t last, last_site; /* who that was, index + 1 */
	uint32_t site[SITES_KEPT];
	uint64_t lock[LOCKS_KEPT];
};

static struct slot *slots;
static uint32_t lock;
static uint32_t off[MAX_OFF];
static unsigned noff, revivals;

static void take(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		raw(SYS_sched_yield);
}

static void release(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* A new thread may do new things at old places. */
static void revive(struct tr_ctx *c)
{
	uint32_t again[MAX_OFF];
	unsigned n = 0;

	(void)c;
	take();
	if (noff && revivals++ < MAX_REVIVALS) {
		for (; n < noff; n++) {
			again[n] = off[n];
			ctl.place[off[n]].hits = 0;
			ctl.place[off[n]].off = false;
		}
		noff = 0;
	}
	release();
	while (n)
		tr_callout_enable(again[--n], true);
}

bool ctl_learn_init(void)
{
	long m = raw(SYS_mmap, 0, NSLOTS * sizeof *slots, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	slots = raw_failed(m) ? NULL : (struct slot *)m;
	if (slots)
		tr_own(slots, NSLOTS * sizeof *slots);
	ctl_thread_start = revive;
	return slots != NULL;
}

static struct slot *slot_for(uint64_t granule)
{
	uint32_t i = (uint32_t)(granule * 0x9e3779b97f4a7c15ull >> 40);

	for (unsigned n = 0; n < PROBES; n++, i++) {
		struct slot *s = &slots[i % NSLOTS];

		if (s->granule == granule)
			return s;
		if (!s->granule) {
			s->granule = granule;
			return s;
		}
	}
	return NULL;
}

static void note_site(struct slot *s, const struct shim_thread *t, uint32_t site)
{
	bool pair = s->last == t->index + 1 && s->last_site != site;
	unsigned i = 0;

	s->last = t->index + 1;
	s->last_site = site;
	while (i < s->nsites && s->site[i] != site)
		i++;
	if (i == SITES_KEPT)
		return;
	if (i == s->nsites)
		s->site[s->nsites++] = site;
	s->pairs |= (uint8_t)(pair << i);
}

static bool holds(const struct shim_thread *t, uint64_t object)
{
	for (uint32_t i = 0; i < t->nheld && i < SHIM_HELD_MAX; i++)
		if (t->held[i].object == object)
			return true;
	return false;
}

/* The locks held at every access so far. */
static void note_locks(struct slot *s, const struct shim_thread *t)
{
	unsigned kept = 0;

	if (!s->first) {
		for (; kept < t->nheld && kept < LOCKS_KEPT; kept++)
			s->lock[kept] = t->held[kept].object;
	} else {
		for (unsigned i = 0; i < s->nlocks; i++)
			if (holds(t, s->lock[i]))
				s->lock[kept++] = s->lock[i];
	}
	s->nlocks = (uint8_t)kept;
}

/* Stacks are used again: what another thread had there is gone. */
static void note_owner(struct slot *s, const struct shim_thread *t)
{
	if (s->owner && s->owner != t->index + 1)
		*s = (struct slot){ .granule = s->granule };
	s->owner = t->index + 1;
}

static void touch(struct slot *s, const struct shim_thread *t, uint32_t site, bool write)
{
	if (ctl_site(site)->flags & CTL_SITE_LOCAL)
		note_owner(s, t);
	note_site(s, t, site);
	note_locks(s, t);
	if (!s->first)
		s->first = t->index + 1;
	else if (s->first != t->index + 1)
		s->several = true;
	s->written |= write;
	if (!s->several || !s->written)
		return;
	uint32_t flags = CTL_SITE_SHARED | (s->nlocks ? 0 : CTL_SITE_RACY);
	ctl_site_mark(site, flags);
	for (unsigned i = 0; i < s->nsites; i++)
		ctl_site_mark(s->site[i], flags | (s->pairs >> i & 1 ? CTL_SITE_PAIR : 0));
}

/* A fix may be called there, too. */
static void switch_off(uint32_t site)
{
	if (ctl.fixing)
		return;
	take();
	/* Off, and called all the same: its code was made anew since. */
	bool now = ctl.place[site].off;

	if (!now && noff < MAX_OFF) {
		ctl.place[site].off = now = true;
		off[noff++] = site;
	}
	release();
	if (now)
		tr_callout_enable(site, false);
}

void ctl_learn(const struct tr_ctx *c, uint32_t site)
{
	struct ctl_site *s = ctl_site(site);
	struct ctl_place *p = &ctl.place[site];

	if (s->flags & CTL_SITE_LOCAL && !(s->flags & CTL_SITE_SHARED) && p->hits >= ENOUGH_LOCAL && !ctl.fixing)
		tr_callout_enable(site, false); /* for good */
	if (++p->hits > ENOUGH)
		switch_off(site);
	/* A child made by vfork() runs while its parent, in the same memory, stands still. */
	if (shim.nlive < 2 || c->vfork_child)
		return;
	ctl_site_mark(site, CTL_SITE_MULTI);
	s->hits++;
	if (s->flags & CTL_SITE_CALL)
		return;
	uint64_t address = tr_operand_address(&p->insn, p->pc, (const uint8_t *)p->pc, c);
	take();
	struct slot *t = slot_for(address >> 3);
	if (t)
		touch(t, c->thread, site, s->flags & CTL_SITE_WRITE);
	release();
}
