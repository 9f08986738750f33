#include "analyzer/symtrace/extract_handed.h"

#include "common/vec.h"

#include <string.h>

/* Of more threads than these nothing is known: each has a clock with an entry for all before it. */
#define MAX_CLOCKS 4096u

/* What a thread did between two threads that it made. */
struct stamp {
	uint32_t thread;
	uint32_t epoch; /* from 1 */
};

struct clock {
	uint32_t stamp;       /* of what it does now; 0: not seen yet */
	uint32_t epoch;
	VEC(uint32_t) before; /* by thread: its epochs up to this lie before what this one does now */
};

/* The last accesses to the bytes of a mask, all by one stamp. */
struct last {
	uint32_t stamp;
	uint8_t bytes;
};

struct place {
	struct last write, read;
	uint32_t split; /* its bytes have stamps of their own: index of splits[], from 1 */
	uint32_t count; /* of accesses */
	uint8_t many;   /* read by threads side by side */
	bool unordered;
};

/* By byte; 0: none. */
struct split {
	uint32_t write[8], read[8];
};

struct handed {
	VEC(struct clock) clocks; /* by thread */
	VEC(struct stamp) stamps; /* the first is none */
	VEC(struct place) places; /* likewise */
	VEC(struct split) splits; /* likewise */
};

struct handed *handed_new(void)
{
	struct handed *h = xcalloc(1, sizeof *h);

	vec_push(&h->stamps, (struct stamp){ 0, 0 });
	vec_push(&h->places, (struct place){ 0 });
	vec_push(&h->splits, (struct split){ { 0 }, { 0 } });
	return h;
}

void handed_free(struct handed *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->clocks.n; i++)
		vec_free(&h->clocks.v[i].before);
	vec_free(&h->clocks);
	vec_free(&h->stamps);
	vec_free(&h->places);
	vec_free(&h->splits);
	free(h);
}

static void new_epoch(struct handed *h, uint32_t thread)
{
	struct clock *c = &h->clocks.v[thread];

	c->stamp = (uint32_t)h->stamps.n;
	vec_push(&h->stamps, (struct stamp){ thread, ++c->epoch });
}

static struct clock *clock_of(struct handed *h, uint32_t thread)
{
	while (h->clocks.n <= thread)
		vec_push(&h->clocks, (struct clock){ 0 });
	if (!h->clocks.v[thread].stamp)
		new_epoch(h, thread);
	return &h->clocks.v[thread];
}

static void know(struct clock *c, uint32_t thread, uint32_t epoch)
{
	while (c->before.n <= thread)
		vec_push(&c->before, 0);
	if (c->before.v[thread] < epoch)
		c->before.v[thread] = epoch;
}

/* What `of` did until now, and all that lies before it, lies before what `thread` does from now on. */
static void know_all(struct handed *h, uint32_t thread, uint32_t of)
{
	clock_of(h, thread);
	const struct clock *from = clock_of(h, of);
	struct clock *c = &h->clocks.v[thread];

	for (uint32_t i = 0; i < from->before.n; i++)
		know(c, i, from->before.v[i]);
	know(c, of, from->epoch);
}

void handed_created(struct handed *h, uint32_t parent, uint32_t child)
{
	if (parent >= MAX_CLOCKS || child >= MAX_CLOCKS || parent == child)
		return;
	know_all(h, child, parent);
	new_epoch(h, parent);
}

void handed_joined(struct handed *h, uint32_t joiner, uint32_t joined)
{
	if (joiner < MAX_CLOCKS && joined < MAX_CLOCKS && joiner != joined)
		know_all(h, joiner, joined);
}

static bool is_before(const struct handed *h, uint32_t stamp, uint32_t thread)
{
	const struct stamp *s = &h->stamps.v[stamp];
	const struct clock *c = &h->clocks.v[thread];

	return !stamp || s->thread == thread ||
	       (s->thread < c->before.n && s->epoch <= c->before.v[s->thread]);
}

static void spread(uint32_t *to, const struct last *from)
{
	for (unsigned i = 0; i < 8; i++)
		if (from->bytes >> i & 1)
			to[i] = from->stamp;
}

static void split(struct handed *h, struct place *p)
{
	struct split s = { { 0 }, { 0 } };

	spread(s.write, &p->write);
	spread(s.read, &p->read);
	p->split = (uint32_t)h->splits.n;
	vec_push(&h->splits, s);
}

static void touch_split(struct handed *h, struct place *p, uint32_t thread, uint8_t bytes, bool write)
{
	struct split *s = &h->splits.v[p->split];
	uint32_t now = h->clocks.v[thread].stamp;

	for (unsigned i = 0; i < 8; i++) {
		if (!(bytes >> i & 1))
			continue;
		bool behind_reads = is_before(h, s->read[i], thread) && !(p->many >> i & 1);

		if (!is_before(h, s->write[i], thread) || (write && !behind_reads))
			p->unordered = true;
		if (!write && !behind_reads)
			p->many |= (uint8_t)(1u << i);
		*(write ? &s->write[i] : &s->read[i]) = now;
	}
}

/* Whether these bytes and the others that `l` is of still have one stamp when this thread has touched them. */
static bool stays_one(const struct handed *h, const struct last *l, uint32_t thread, uint8_t bytes)
{
	return !(l->bytes & ~bytes) || l->stamp == h->clocks.v[thread].stamp;
}

static void touch_whole(struct handed *h, struct place *p, uint32_t thread, uint8_t bytes, bool write)
{
	struct last *l = write ? &p->write : &p->read;
	bool behind_writes = !(p->write.bytes & bytes) || is_before(h, p->write.stamp, thread);
	bool behind_reads = (!(p->read.bytes & bytes) || is_before(h, p->read.stamp, thread)) &&
			    !(p->many & bytes);

	if (!behind_writes || (write && !behind_reads))
		p->unordered = true;
	if (!write && !behind_reads)
		p->many |= bytes;
	l->stamp = h->clocks.v[thread].stamp;
	l->bytes |= bytes;
}

uint32_t handed_touch(struct handed *h, uint32_t place, uint32_t thread, uint8_t bytes, bool write)
{
	if (!place) {
		place = (uint32_t)h->places.n;
		vec_push(&h->places, (struct place){ 0 });
	}
	struct place *p = &h->places.v[place];
	p->count += p->count < UINT32_MAX;
	if (p->unordered)
		return place;
	if (thread >= MAX_CLOCKS) {
		p->unordered = true;
		return place;
	}
	clock_of(h, thread);
	if (!p->split && !stays_one(h, write ? &p->write : &p->read, thread, bytes))
		split(h, p);
	if (p->split)
		touch_split(h, p, thread, bytes, write);
	else
		touch_whole(h, p, thread, bytes, write);
	return place;
}

bool handed_unordered(const struct handed *h, uint32_t place)
{
	return h->places.v[place].unordered;
}

uint32_t handed_count(const struct handed *h, uint32_t place)
{
	return h->places.v[place].count;
}
