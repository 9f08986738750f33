/*
 * Writes traces for tests, by the letter of common/trace_format.h and without
 * any code of the shim: two readings of one format.
 */
#ifndef CSCHED_TESTS_TRACE_WRITER_H
#define CSCHED_TESTS_TRACE_WRITER_H

#include "common/trace_format.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct tw {
	uint8_t *data;
	size_t n;
	enum trc_stream kind;
	uint32_t thread, sequence, capacity;
	uint64_t start; /* payload bytes in sealed chunks */
	size_t chunk;   /* offset of the open chunk's header */
	size_t used;    /* its payload bytes */
};

static void tw_chunk(struct tw *w)
{
	struct trc_chunk h = {
		.magic = TRC_MAGIC, .version = TRC_VERSION, .stream = (uint16_t)w->kind,
		.thread = w->thread, .sequence = w->sequence++, .capacity = w->capacity,
		.start = w->start, .length = TRC_CHUNK_OPEN,
	};

	h.header_sum = trc_checksum(&h, offsetof(struct trc_chunk, header_sum));
	w->chunk = w->n;
	w->data = realloc(w->data, w->n + sizeof h + w->capacity);
	memcpy(w->data + w->n, &h, sizeof h);
	memset(w->data + w->n + sizeof h, 0, w->capacity);
	w->n += sizeof h + w->capacity;
	w->used = 0;
}

__attribute__((unused)) static void tw_open(struct tw *w, enum trc_stream kind, uint32_t thread,
					    uint32_t capacity)
{
	*w = (struct tw){ .kind = kind, .thread = thread, .capacity = capacity };
	tw_chunk(w);
}

__attribute__((unused)) static void tw_seal(struct tw *w)
{
	struct trc_chunk *h = (struct trc_chunk *)(w->data + w->chunk);

	h->length = (uint32_t)w->used;
	h->checksum = trc_checksum(h + 1, w->used);
	w->start += w->used;
}

/* A zeroed record of `size` bytes; valid until the next call. */
__attribute__((unused)) static void *tw_rec(struct tw *w, unsigned type, unsigned flags,
					    size_t size)
{
	size = (size + 7) & ~(size_t)7;
	if (w->used + size > w->capacity) {
		tw_seal(w);
		tw_chunk(w);
	}
	struct trc_rec *r = (struct trc_rec *)(w->data + w->chunk + 64 + w->used);

	*r = (struct trc_rec){ (uint16_t)type, (uint16_t)flags, (uint32_t)size };
	w->used += size;
	return r;
}

__attribute__((unused)) static void tw_bytes(struct tw *w, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (w->used == w->capacity) {
			tw_seal(w);
			tw_chunk(w);
		}
		w->data[w->chunk + 64 + w->used++] = ((const uint8_t *)bytes)[i];
	}
}

__attribute__((unused)) static bool tw_save(struct tw *w, const char *dir, const char *name)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "wb");
	bool good = f && fwrite(w->data, 1, w->n, f) == w->n;

	if (f && fclose(f))
		good = false;
	free(w->data);
	w->data = NULL;
	return good;
}

__attribute__((unused)) static void tw_kv(struct tw *w, const char *key, const char *value)
{
	struct trc_kv *kv = tw_rec(w, TRC_KV, 0, sizeof *kv + strlen(key) + strlen(value));

	kv->key_len = (uint32_t)strlen(key);
	kv->value_len = (uint32_t)strlen(value);
	memcpy(kv->data, key, kv->key_len);
	memcpy(kv->data + kv->key_len, value, kv->value_len);
}

__attribute__((unused)) static void tw_thread(struct tw *w, uint32_t thread, uint32_t parent,
					      uint32_t ordinal)
{
	struct trc_thread *t = tw_rec(w, TRC_THREAD, 0, sizeof *t);

	t->thread = thread;
	t->parent = parent;
	t->ordinal = ordinal;
	t->tid = 1000 + thread;
	t->tsc = 1000 + 10 * thread;
}

__attribute__((unused)) static void tw_sync(struct tw *w, unsigned op, unsigned at, uint64_t tsc,
					    uint64_t object, uint64_t site, uint32_t thread)
{
	struct trc_sync *s = tw_rec(w, TRC_SYNC, op | at << 12, sizeof *s);

	s->tsc = tsc;
	s->object = object;
	s->site = site;
	s->thread = thread;
}

/* The same with a number, and a repetition of what has it. */
__attribute__((unused)) static void tw_named(struct tw *w, unsigned op, uint64_t tsc,
					     uint64_t object, uint64_t site, uint32_t slot)
{
	struct trc_sync_named *n = tw_rec(w, TRC_SYNC, op, sizeof *n);

	n->sync.tsc = tsc;
	n->sync.object = object;
	n->sync.site = site;
	n->sync.thread = UINT32_MAX;
	n->slot = slot;
}

__attribute__((unused)) static void tw_again(struct tw *w, uint64_t tsc, uint32_t slot)
{
	/* Time 0: without. */
	struct trc_again *a = tw_rec(w, TRC_AGAIN, slot, tsc ? sizeof *a : sizeof a->rec);

	if (tsc)
		a->tsc = tsc;
}

/* Several of them: `slot`, then those of `more`. */
__attribute__((unused)) static void tw_agains(struct tw *w, uint32_t slot, const char *more, size_t n)
{
	struct trc_agains *a = tw_rec(w, TRC_AGAINS, slot, sizeof *a + n);

	for (size_t i = 0; i < n; i++)
		a->more[i] = (uint8_t)(more[i] + 1);
}

__attribute__((unused)) static void tw_fragment(struct tw *w, uint32_t id, unsigned kind,
						uint64_t pc, uint64_t next,
						const struct trc_side *sides, uint32_t nsides,
						const struct trc_item *items, uint32_t nitems)
{
	size_t size = sizeof(struct trc_fragment) + nsides * sizeof *sides + nitems * sizeof *items;
	struct trc_fragment *f = tw_rec(w, TRC_FRAGMENT, kind, size);

	f->id = id;
	f->ninsns = 3;
	f->pc = pc;
	f->next = next;
	f->last_pc = pc + 8;
	f->nsides = nsides;
	f->nitems = nitems;
	if (nsides)
		memcpy(f + 1, sides, nsides * sizeof *sides);
	if (nitems)
		memcpy((char *)(f + 1) + nsides * sizeof *sides, items, nitems * sizeof *items);
}

/* ---- a whole trace: main and two workers that deadlock ---- */

#define TW_MUTEX_A 0x404080ull
#define TW_MUTEX_B 0x4040c0ull
#define TW_SITE_A 0x401136ull
#define TW_SITE_B 0x401156ull

/* Moves the first chunk of a stream's file behind what is in another's. */
__attribute__((unused)) static bool tw_move_first(const char *dir, const char *from, const char *to)
{
	static uint8_t bytes[1 << 20];
	char a[4096], b[4096];
	struct trc_chunk h = { 0 };

	snprintf(a, sizeof a, "%s/%s", dir, from);
	snprintf(b, sizeof b, "%s/%s", dir, to);
	FILE *in = fopen(a, "rb"), *out = fopen(b, "ab");
	size_t n = in ? fread(bytes, 1, sizeof bytes, in) : 0;

	memcpy(&h, bytes, sizeof h);
	size_t len = sizeof h + h.capacity;
	bool good = out && n >= len && fwrite(bytes, 1, len, out) == len;

	if (in)
		fclose(in);
	good &= out && !fclose(out);
	if (!good || n == len)
		return !remove(a) && good;
	out = fopen(a, "wb");
	return out && fwrite(bytes + len, 1, n - len, out) == n - len && !fclose(out);
}

/* A slot that no thread has taken, behind what is in the process stream's file. */
__attribute__((unused)) static bool tw_free_slot(const char *dir, enum trc_stream kind)
{
	struct tw w;

	tw_open(&w, kind, 0, 64);
	((struct trc_chunk *)w.data)->place = TRC_PLACE_FREE;
	return tw_save(&w, dir, "free") && tw_move_first(dir, "free", "process");
}

static void tw_sample_process(const char *dir)
{
	static const char text[] = "deadlock: 2 threads wait for each other";
	struct tw w;

	tw_open(&w, TRC_STREAM_PROCESS, 0, 1024);
	tw_kv(&w, "version", "0.1");
	tw_kv(&w, "command", "./abba 1 2");
	tw_kv(&w, "cwd", "/tmp");
	tw_kv(&w, "pid", "4242");
	tw_kv(&w, "tsc_hz", "1000000000");
	tw_kv(&w, "tsc_start", "1000");
	for (uint32_t i = 0; i < 3; i++)
		tw_thread(&w, i, 0, i);
	struct trc_thread_name *n = tw_rec(&w, TRC_THREAD_NAME, 0, sizeof *n + 6);
	n->thread = 1;
	n->name_len = 6;
	memcpy(n->name, "worker", 6);
	struct trc_module *m = tw_rec(&w, TRC_MODULE, 0, sizeof *m + 9);
	*m = (struct trc_module){ m->rec, 0x401000, 0x402000, 0x1000, 0, 5, 4, 0, 9,
				  { 0xde, 0xad, 0xbe, 0xef } };
	memcpy(m->path, "/tmp/abba", 9);
	struct trc_note *note = tw_rec(&w, TRC_NOTE, 1, sizeof *note + 4);
	note->text_len = 4;
	memcpy(note->text, "\033[1m", 4); /* must not reach a terminal as it is */

	/* One that was none, then the real one. */
	tw_rec(&w, TRC_FAILURE, TRC_FAIL_HANG, sizeof(struct trc_failure));
	tw_rec(&w, TRC_STACK, 0, sizeof(struct trc_stack));
	tw_rec(&w, TRC_WITHDRAWN, 0, sizeof(struct trc_withdrawn));
	struct trc_failure *f = tw_rec(&w, TRC_FAILURE, TRC_FAIL_DEADLOCK,
				       sizeof *f + sizeof text - 1);
	f->tsc = 5000;
	f->thread = 1;
	f->regs[TRC_RIP] = TW_SITE_B;
	f->text_len = sizeof text - 1;
	memcpy(f->data, text, sizeof text - 1);
	for (uint32_t i = 1; i <= 2; i++) {
		struct trc_blocked *b = tw_rec(&w, TRC_BLOCKED, 0, sizeof *b);

		b->thread = i;
		b->op = TRC_OP_LOCK;
		b->cycle = 1;
		b->object = i == 1 ? TW_MUTEX_B : TW_MUTEX_A;
		b->site = TW_SITE_B;
		b->owner = 3 - i;
		b->owner_site = TW_SITE_A;
	}
	struct trc_stack *s = tw_rec(&w, TRC_STACK, 1, sizeof *s + 64);
	s->thread = 1;
	s->length = 64;
	s->regs[TRC_RIP] = TW_SITE_B;
	struct trc_child *c = tw_rec(&w, TRC_CHILD, 2, sizeof *c);
	c->pid = 4243;
	struct trc_exec *x = tw_rec(&w, TRC_EXEC, 0, sizeof *x + 9);
	x->path_len = 9;
	memcpy(x->path, "/bin/true", 9);
	struct trc_end *e = tw_rec(&w, TRC_END, 1, sizeof *e);
	e->status = 9;
	tw_seal(&w);
	tw_save(&w, dir, "process");
}

static void tw_sample_thread(const char *dir, uint32_t i, unsigned npairs)
{
	char name[32];
	struct tw w;

	tw_open(&w, TRC_STREAM_THREAD, i, 512);
	struct trc_start *s = tw_rec(&w, TRC_START, 0, sizeof *s);
	s->regs[TRC_RIP] = 0x401100;
	for (unsigned k = 0; k < npairs; k++) {
		tw_sync(&w, TRC_OP_LOCK, TRC_AT_DONE, 2000 + k, TW_MUTEX_A, TW_SITE_A, UINT32_MAX);
		tw_sync(&w, TRC_OP_UNLOCK, TRC_AT_DONE, 2001 + k, TW_MUTEX_A, TW_SITE_A,
			UINT32_MAX);
	}
	tw_named(&w, TRC_OP_SIGNAL, 2100, TW_MUTEX_A, TW_SITE_A, 7);
	tw_again(&w, 2200, 7);
	tw_agains(&w, 7, "\7", 1);
	struct trc_enter *en = tw_rec(&w, TRC_ENTER, 1, sizeof *en);
	en->seq = i * 2;
	en->pc = 0x401128;
	en->path_pos = 12;
	struct trc_leave *l = tw_rec(&w, TRC_LEAVE, 1,
				     sizeof *l + sizeof(struct trc_effect) + 8);
	l->seq = i * 2 + 1;
	l->thread = UINT32_MAX;
	l->neffects = 1;
	struct trc_effect *fx = (void *)(l + 1);
	*fx = (struct trc_effect){ 0x7ffe0000, 5, TRC_EFFECT_WRITE };
	memcpy(fx + 1, "hello", 5);
	struct trc_nondet *nd = tw_rec(&w, TRC_NONDET, TRC_RDTSC, sizeof *nd);
	nd->reg = 16;
	struct trc_signal *sg = tw_rec(&w, TRC_SIGNAL, 10, sizeof *sg + 40);
	sg->path_pos = 1000;
	sg->frame_len = 40;
	struct trc_time *tm = tw_rec(&w, TRC_TIME, 0, sizeof *tm);
	tm->tsc = 2500;
	tw_rec(&w, TRC_REGS, 0, sizeof(struct trc_regs));
	struct trc_generation *g = tw_rec(&w, TRC_GENERATION, 0, sizeof *g);
	g->path_pos = 1000;
	struct trc_native *na = tw_rec(&w, TRC_NATIVE, 1, sizeof *na + 3);
	na->path_pos = 1000;
	na->text_len = 3;
	memcpy(na->text, "JIT", 3);
	tw_rec(&w, TRC_THREAD_EXIT, 0, sizeof(struct trc_thread_exit));
	tw_rec(&w, TRC_STOP, 0, sizeof(struct trc_stop));
	tw_sync(&w, TRC_OP_LOCK, TRC_AT_BLOCK, 4000, i == 1 ? TW_MUTEX_B : TW_MUTEX_A, TW_SITE_B,
		UINT32_MAX);
	/* Left open, as after a kill. */
	snprintf(name, sizeof name, "t%u.rec", i);
	tw_save(&w, dir, name);
}

/* Code: 0x401100 {jcc; lock; ret-like}, see the table; the path goes round. */
static void tw_sample_path(const char *dir, uint32_t i)
{
	static const uint8_t bytes[] = {
		2,                /* fragment 1 falls through to 0x401110 */
		7, 0, 0, 0,       /* fragment 2: ticket 3 */
		1,                /* its side exit: to 0x401120 */
		3, 0, 9,          /* fragment 3: value of 2 bytes, 0x0900 */
		0x81, 0,          /* and an indirect branch to fragment 1 */
		1,                /* fragment 1: side exit to 0x401120 */
		2, 5,             /* fragment 3: value of 1 byte */
		0xc1, 0, 0,
	};
	char name[32];
	struct tw w;

	tw_open(&w, TRC_STREAM_PATH, i, 16);
	tw_bytes(&w, bytes, sizeof bytes);
	snprintf(name, sizeof name, "t%u.path", i);
	tw_save(&w, dir, name);
}

static void tw_sample_frags(const char *dir)
{
	static const struct trc_side s1 = { 0x401104, 0x401120 }, s2 = { 0x401118, 0x401120 };
	static const struct trc_item order = { 0x401112, TRC_ITEM_ORDER, 0 };
	static const struct trc_item value = { 0x401122, TRC_ITEM_VALUE, 8 };
	struct tw w;

	tw_open(&w, TRC_STREAM_FRAGS, 0, 256);
	tw_fragment(&w, 1, TRC_FRAG_DIRECT, 0x401100, 0x401110, &s1, 1, NULL, 0);
	tw_fragment(&w, 2, TRC_FRAG_DIRECT, 0x401110, 0x401120, &s2, 1, &order, 1);
	tw_fragment(&w, 3, TRC_FRAG_INDIRECT, 0x401120, 0, NULL, 0, &value, 1);
	struct trc_dropped *d = tw_rec(&w, TRC_DROPPED, 0, sizeof *d);
	d->generation = 7;
	d->start = 0x500000;
	d->end = 0x501000;
	tw_seal(&w);
	tw_save(&w, dir, "frags");
}

static void tw_sample_memory(const char *dir)
{
	struct tw w;

	tw_open(&w, TRC_STREAM_MEMORY, 0, 8192);
	struct trc_region *r = tw_rec(&w, TRC_REGION, TRC_REGION_STACK, sizeof *r + 7);
	r->start = 0x7ffe0000;
	r->end = 0x7fff0000;
	r->prot = 3;
	r->path_len = 7;
	memcpy(r->path, "[stack]", 7);
	struct trc_pages *p = tw_rec(&w, TRC_PAGES, 0, sizeof *p + 4096);
	p->address = 0x7ffe0000;
	p->length = 4096;
	memset(p->bytes, 0x5a, 4096);
	tw_seal(&w);
	tw_save(&w, dir, "memory");
}

/* Makes the directory too. */
__attribute__((unused)) static void tw_sample(const char *dir)
{
	mkdir(dir, 0700);
	tw_sample_process(dir);
	for (uint32_t i = 0; i < 3; i++) {
		tw_sample_thread(dir, i, 20);
		tw_sample_path(dir, i);
	}
	tw_sample_frags(dir);
	tw_sample_memory(dir);
}

#endif
