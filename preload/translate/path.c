/*
 * Path bytes: where they go, and what happens at the end of a chunk. While
 * native code runs, the record pointer is in ctx->ptr; entry.S moves it there
 * from xmm15 and back.
 */
#include "preload/translate/epoch.h"
#include "preload/translate/hooks.h"

#include <sys/mman.h>

#define SCRATCH_LEN (256u << 10)
uint64_t tr_pos(const struct tr_ctx *c)
{
	const struct rec_stream *s = &c->thread->path;

	if (c->path_dead)
		return s->start;
	return s->start + (c->ptr - (uint64_t)c->path_begin);
}

/* For the shim's failure records. */
uint64_t tr_path_pos(struct shim_thread *t)
{
	return t && t->translator ? tr_pos(t->translator) : 0;
}

/* What it left behind when it last came out of the cache: an event or a system call. */
bool tr_whereabouts(const struct shim_thread *t, uint64_t *sp, uint64_t *pc)
{
	const struct tr_ctx *c = t->translator;

	if (!c)
		return false;
	*sp = c->regs[TRC_RSP];
	*pc = c->in_call ? c->pc : t->last_site;
	return true;
}

static uint8_t *scratch_new(void)
{
	uint8_t *p = tr_alloc(SCRATCH_LEN + RAW_PAGE);

	if (p && raw_failed(raw(SYS_mprotect, p + SCRATCH_LEN, RAW_PAGE, PROT_NONE)))
		p = NULL; /* as good as no memory: the program has as many mappings as it may have */
	return p;
}

/* The path does not move any more: events have timestamps, see needs_no_time() and tr_enter_event. */
static void no_clock(struct tr_ctx *c)
{
	c->thread->path_ptr = NULL;
	c->thread->clock_at = 0;
}

/*
 * No more room in the trace: the program still wants to write somewhere. A
 * private buffer with a guard page of its own takes the bytes over and over. It stays with the context
 * for the threads that come after; without memory for it the context's last page, before its guard, must do.
 */
static void go_dead(struct tr_ctx *c)
{
	no_clock(c);
	if (!c->path_dead) {
		if (!c->scratch)
			c->scratch = scratch_new();
		c->path_begin = c->scratch ? c->scratch : tr_ctx_last_page(c);
		c->path_end = c->path_begin + (c->scratch ? SCRATCH_LEN : RAW_PAGE);
		c->path_dead = true;
	}
	c->ptr = (uint64_t)c->path_begin;
}

void tr_time(struct tr_ctx *c)
{
	struct rec_stream *s = &c->thread->rec;
	struct trc_time *r = rec_begin(s, sizeof *r);

	if (!r)
		return;
	r->tsc = c->last_time = raw_tsc();
	r->path_pos = tr_pos(c);
	rec_commit(s, r, TRC_TIME, 0, sizeof *r);
}

/* Room for n bytes at the record pointer; it may move to another chunk. */
void tr_path_room(struct tr_ctx *c, uint64_t at, unsigned n)
{
	if (at + n > (uint64_t)c->path_end)
		tr_path_next(c, at);
}

bool tr_path_open(struct tr_ctx *c)
{
	c->path_dead = false;
	tr_profile_stop(c);
	if (!rec_path_open(&c->thread->path, c->thread->index, &c->path_begin, &c->path_end)) {
		go_dead(c);
		return false;
	}
	c->ptr = (uint64_t)c->path_begin;
	c->ticket = 0;
	c->thread->clock_at = 0;
	c->thread->path_ptr = &c->ptr;
	return true;
}

/* `at`: first byte not written. Sets c->ptr; path_begin/end follow. */
void tr_path_next(struct tr_ctx *c, uint64_t at)
{
	c->ptr = at;
	tr_profile_stop(c);
	tr_time(c);
	/* Hunted, each turn of a loop that waits for another thread leaves a ticket and a value. */
	if (ctl_plan && tr.multi)
		raw(SYS_sched_yield);
	if (c->path_dead || !rec_path_next_chunk(&c->thread->path, at - (uint64_t)c->path_begin,
						 &c->path_begin, &c->path_end))
		go_dead(c);
	else
		c->ptr = (uint64_t)c->path_begin;
	tr_epoch_turn(c);
}

void tr_path_close(struct tr_ctx *c)
{
	tr_profile_stop(c);
	no_clock(c);
	if (!c->path_dead)
		rec_path_close(&c->thread->path, c->ptr - (uint64_t)c->path_begin);
	c->path_dead = true;
}

void tr_path_byte(struct tr_ctx *c, unsigned byte)
{
	tr_path_room(c, c->ptr, 1);
	*(uint8_t *)c->ptr = (uint8_t)byte;
	c->ptr++;
}

/* As in an entry stub: four bytes are stored, what is not part of it is overwritten next. */
void tr_path_target(struct tr_ctx *c, uint32_t id)
{
	uint32_t word = trc_target(id);

	tr_path_room(c, c->ptr, 4);
	memcpy((void *)c->ptr, &word, 4);
	c->ptr += trc_target_len(word);
}
