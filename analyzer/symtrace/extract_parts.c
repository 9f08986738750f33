/* What was found to be shared, asked for at every access; and what of it is only handed from thread to thread. */
#include "analyzer/symtrace/extract_share_internal.h"

/* Accesses to one place that threads hand each other, and to all of which each has no more than that. */
#define BUSY 32
#define FEW 1000

static bool touches(struct share *s, uint64_t address, unsigned size)
{
	struct part *p = share_part(s, (address >> 3) + 1);
	uint8_t bytes = share_bytes_of(address, size);

	if (!p->key)
		return false;
	if (!(bytes & p->shared)) {
		p->alone |= bytes;
		return false;
	}
	p->together |= bytes;
	return true;
}

bool share_touches(struct share *s, uint64_t address, unsigned size)
{
	uint64_t next = (address | 7) + 1;

	if (!s->shared)
		return false;
	bool first = touches(s, address, size);
	return (address + size > next && touches(s, next, (unsigned)(address + size - next))) || first;
}

struct handed *share_handed(struct share *s)
{
	return s->handed;
}

static bool hand(struct share *s, const struct mach_access *a, uint64_t address, unsigned size)
{
	struct part *p = share_part(s, (address >> 3) + 1);
	uint8_t bytes = share_bytes_of(address, size) & p->shared;

	if (!bytes)
		return false;
	p->place = handed_touch(s->handed, p->place, a->thread, bytes, a->flags & MACH_WRITE);
	return !p->suspect || handed_unordered(s->handed, p->place);
}

bool share_event(struct share *s, const struct mach_access *a)
{
	uint64_t next = (a->address | 7) + 1, end = a->address + a->size;

	if (!s->shared)
		return false;
	bool first = hand(s, a, a->address, a->size);
	return (end > next && hand(s, a, next, (unsigned)(end - next))) || first;
}

static bool tells_of_cancelling(const struct share *s, const struct part *p)
{
	for (size_t i = 0; i < s->cancels.n; i++)
		if ((s->cancels.v[i].word >> 3) + 1 == p->key)
			return true;
	return false;
}

static bool only_handed(const struct share *s, const struct part *p)
{
	return p->shared && !handed_unordered(s->handed, p->place) && !tells_of_cancelling(s, p);
}

/* Where an argument or a result came from is worth showing, as long as that buries nothing. */
static bool worth_dropping(const struct share *s, const struct part *p, bool few)
{
	return only_handed(s, p) && (p->suspect || !few || handed_count(s->handed, p->place) > BUSY);
}

static bool are_few(const struct share *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->nshared; i++)
		if (only_handed(s, &s->shared[i]) && handed_count(s->handed, s->shared[i].place) <= BUSY)
			n += handed_count(s->handed, s->shared[i].place);
	return n <= FEW;
}

enum share_handed share_drop_handed(struct share *s)
{
	bool few = are_few(s), any = false, mistaken = false;

	for (size_t i = 0; i < s->nshared; i++) {
		struct part *p = &s->shared[i];

		if (worth_dropping(s, p, few)) {
			p->shared = p->together = 0;
			any = true;
		} else if (p->shared) {
			mistaken |= p->suspect;
			p->suspect = false;
		}
	}
	return mistaken ? SHARE_MISTAKEN : any ? SHARE_SOME_HANDED : SHARE_NONE_HANDED;
}

void share_suspect(struct share *s, const struct share *earlier)
{
	for (size_t i = 0; earlier && earlier->shared && i < s->nshared; i++) {
		struct part *p = &s->shared[i];
		const struct part *was = p->key ? share_part(earlier, p->key) : NULL;

		p->suspect = was && was->key && !was->shared;
	}
}

void share_settle(struct share *s)
{
	for (size_t i = 0; i < s->nshared; i++)
		s->shared[i].shared |= s->shared[i].together & ~s->shared[i].alone;
}

bool share_is_shared(const struct share *s, uint64_t address)
{
	return s->shared && share_part(s, (address >> 3) + 1)->shared >> (address & 7) & 1;
}
