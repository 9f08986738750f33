/* Path bytes -> fragments. */
#include "common/path.h"

#include <inttypes.h>
#include <string.h>

void path_cursor_init(struct path_cursor *c, const struct path_frags *frags,
		      struct trc_stream_file *stream, uint64_t pos, uint64_t pc)
{
	*c = (struct path_cursor){ .frags = frags, .stream = stream, .pos = pos, .pc = pc,
				    .end = UINT64_MAX };
}

void path_cursor_free(struct path_cursor *c)
{
	free(c->items);
	c->items = NULL;
	c->items_cap = 0;
}

void path_goto(struct path_cursor *c, uint64_t pc)
{
	c->pc = pc;
	c->named = NULL;
}

static err_t wrong(const struct path_cursor *c, const char *what)
{
	return err_new(ERR_INPUT, "%s: damaged: position %" PRIu64 ", code at 0x%" PRIx64 ": %s",
		       c->stream ? c->stream->label : "path", c->pos, c->pc, what);
}

/* The next byte without taking it; *byte is -1 at the end. */
static inline err_t peek(struct path_cursor *c, int *byte)
{
	if ((c->limited && c->pos >= c->limit) || c->pos >= c->end) {
		*byte = -1;
		return NULL;
	}
	if (c->bytes == c->bytes_end) {
		size_t n = 0;

		if (c->stream)
			TRY(trc_bytes_at(c->stream, c->pos, &c->bytes, &n));
		c->bytes_end = n ? c->bytes + n : c->bytes;
		if (!n) {
			*byte = -1;
			return NULL;
		}
	}
	*byte = *c->bytes;
	return NULL;
}

static inline void taken(struct path_cursor *c)
{
	c->bytes++;
	c->pos++;
	c->silent = 0;
}

/* Takes n bytes; *cut when they are not there. A record may cross chunks. */
static err_t take(struct path_cursor *c, uint8_t *to, size_t n, bool *cut)
{
	for (size_t i = 0; i < n; i++) {
		int byte;

		TRY(peek(c, &byte));
		if (byte < 0) {
			*cut = true;
			return NULL;
		}
		to[i] = (uint8_t)byte;
		taken(c);
	}
	return NULL;
}

/* First byte of a record; *cut at the end of the path (a zero, or no byte). */
static err_t take_first(struct path_cursor *c, uint8_t *to, bool *cut)
{
	int byte;

	TRY(peek(c, &byte));
	if (byte <= 0) {
		*cut = true;
		return NULL;
	}
	*to = (uint8_t)byte;
	taken(c);
	return NULL;
}

static err_t take_item(struct path_cursor *c, struct path_item *it, bool *cut)
{
	uint8_t b[4] = { 0 };

	TRY(take_first(c, b, cut));
	if (*cut)
		return NULL;
	if (it->item->kind == TRC_ITEM_ORDER) {
		if (!(b[0] & 1) && b[0] != TRC_TICKET_NEXT)
			return wrong(c, "no ticket where one is due");
		it->ticket = c->ticket;
		if (b[0] & 1) {
			TRY(take(c, b + 1, 3, cut));
			it->ticket = ((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
				      (uint32_t)b[3] << 24) >> 1;
		}
		c->ticket = (it->ticket + 1) & UINT32_MAX >> 1;
		return NULL;
	}
	it->length = b[0] - 1u;
	if (it->length > it->item->size)
		return wrong(c, "a logged value longer than its load");
	return take(c, it->value, it->length, cut);
}

static err_t take_items(struct path_cursor *c, struct path_step *s, bool *cut)
{
	uint32_t n = s->frag->rec->nitems;
	const struct trc_item *item = trc_fragment_items(s->frag->rec);

	if (n > c->items_cap) {
		c->items = xrealloc(c->items, n * sizeof *c->items);
		c->items_cap = n;
	}
	s->items = c->items;
	for (uint32_t i = 0; i < n; i++) {
		c->items[i] = (struct path_item){ .item = &item[i] };
		TRY(take_item(c, &c->items[i], cut));
		if (*cut)
			return NULL;
		s->nitems++;
	}
	return NULL;
}

/* The target of an indirect branch: its first byte was taken already. */
static err_t take_target(struct path_cursor *c, struct path_step *s, uint8_t first, bool *cut)
{
	uint8_t b[2] = { 0 };

	TRY(take(c, b, trc_target_len(first) - 1, cut));
	if (*cut)
		return NULL;
	uint32_t id = trc_target_id(first | (uint32_t)b[0] << 8 | (uint32_t)b[1] << 16);

	if (!id)
		return NULL; /* to an address that is not code: a fault follows */
	c->named = path_frag_by_id(c->frags, id);
	if (!c->named)
		return wrong(c, "an indirect branch to a fragment that does not exist");
	s->next_pc = c->named->pc;
	return NULL;
}

/* The branch that is side exit s->side went elsewhere. */
static err_t take_astray(struct path_cursor *c, struct path_step *s, bool *cut)
{
	uint8_t b = 0;

	s->exit = PATH_ASTRAY;
	TRY(take_first(c, &b, cut));
	if (*cut)
		return NULL;
	return b & 0x80 ? take_target(c, s, b, cut) : wrong(c, "no target behind an indirect branch");
}

/* Which way the fragment was left. */
static err_t take_exit(struct path_cursor *c, struct path_step *s, bool *cut)
{
	const struct trc_fragment *f = s->frag->rec;
	enum trc_frag_kind kind = path_frag_kind(s->frag);
	uint8_t b = 0;

	if (f->nsides || kind == TRC_FRAG_INDIRECT) {
		TRY(take_first(c, &b, cut));
		if (*cut)
			return NULL;
	}
	if (b & 0x80) {
		if (kind != TRC_FRAG_INDIRECT)
			return wrong(c, "an indirect target behind a direct branch");
		s->exit = PATH_INDIRECT;
		return take_target(c, s, b, cut);
	}
	if (b && b <= f->nsides) {
		s->side = b - 1u;
		if (f->guessed >> s->side & 1)
			return take_astray(c, s, cut);
		s->exit = PATH_SIDE;
		s->next_pc = trc_fragment_sides(f)[s->side].target;
		return NULL;
	}
	if (b > f->nsides + 1)
		return wrong(c, "a side exit that the fragment does not have");
	if (kind == TRC_FRAG_INDIRECT)
		return wrong(c, "no target behind an indirect branch");
	s->exit = kind == TRC_FRAG_TRAP || kind == TRC_FRAG_NATIVE ? PATH_STOP : PATH_FALL;
	s->next_pc = s->exit == PATH_FALL ? f->next : 0;
	return NULL;
}

static uint64_t item_bytes(const struct path_frag *f)
{
	const struct trc_item *item = trc_fragment_items(f->rec);
	uint64_t n = 0;

	for (uint32_t i = 0; i < f->rec->nitems; i++)
		n += item[i].kind == TRC_ITEM_ORDER ? 4 : 1ull + item[i].size;
	return n;
}

bool path_limit(struct path_cursor *c, const struct trc_signal *s)
{
	const struct path_frag *f = c->named ? c->named :
				    c->pc ? path_frag_at(c->frags, c->pc, c->generation) : NULL;

	c->limited = s->fragment && f && f->id == s->fragment && s->path_pos >= c->pos &&
		     s->path_pos - c->pos <= item_bytes(f);
	c->limit = s->path_pos;
	return c->limited;
}

static err_t decode_step(struct path_cursor *c, struct path_step *step, bool *done)
{
	bool cut = false;

	*done = false;
	*step = (struct path_step){ .pos = c->pos };
	/* More fragments in a row without a byte than there are fragments: the
	 * thread spins in a loop of direct jumps. */
	if (!c->pc || c->silent++ > path_frag_count(c->frags)) {
		*done = true;
		return NULL;
	}
	step->frag = c->named ? c->named : path_frag_at(c->frags, c->pc, c->generation);
	c->named = NULL;
	if (!step->frag) {
		int byte;

		/* The last thing a killed thread did may be to translate. */
		TRY(peek(c, &byte));
		if (byte > 0)
			return wrong(c, "the path goes to code that was never translated");
		*done = true;
		return NULL;
	}
	/* A record goes with these, which is progress too. */
	if (path_frag_kind(step->frag) == TRC_FRAG_SYSCALL ||
	    path_frag_kind(step->frag) == TRC_FRAG_NONDET)
		c->silent = 0;
	TRY(take_items(c, step, &cut));
	if (!cut)
		TRY(take_exit(c, step, &cut));
	if (cut) {
		step->exit = PATH_CUT;
		step->next_pc = 0;
	}
	c->pc = step->next_pc;
	return NULL;
}

err_t path_next(struct path_cursor *c, struct path_step *step, bool *done)
{
	err_t e = decode_step(c, step, done);

	c->limited = false;
	return e;
}
