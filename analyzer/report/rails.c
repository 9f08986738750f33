#include "analyzer/report/rails.h"

#include <string.h>

#define MARGIN 2
#define LANE 2        /* columns per dataflow lane */
#define MAX_LANES 8
#define NONE SIZE_MAX

enum { UP = 1, DOWN = 2, LEFT = 4, RIGHT = 8 };

struct glyphs {
	const char *line[16]; /* by directions */
	const char *rail, *region, *leaves, *arrow, *initial;
	const char *dot, *context, *bad, *good;
};

static const struct glyphs unicode_glyphs = {
	{ " ", "\u2575", "\u2577", "\u2502", "\u2574", "\u256f", "\u256e", "\u2524", "\u2576",
	  "\u2570", "\u256d", "\u251c", "\u2500", "\u2534", "\u252c", "\u253c" },
	"\u2502", "\u2503", "\u2524", "\u25b6", "\u25cb", "\u25cf", "\u25e6", "\u2717", "\u2713",
};

static const struct glyphs ascii_glyphs = {
	{ " ", "|", "|", "|", "-", "'", ".", "+", "-", "`", ".", "+", "-", "+", "+", "+" },
	"|", "#", "+", ">", "o", "*", ".", "X", "v",
};

struct cell {
	uint8_t rail;     /* 0 none, 1 thread, 2 inside an atomic region */
	uint8_t flow;     /* directions of dataflow lines */
	const char *mark; /* instead of all that */
	enum term_style style;
};

#define TIGHT 60 /* columns: in fewer place and action are below each other */

struct row {
	size_t event; /* index into side->events of the text here */
	bool second;  /* the line below an event: its source text ... */
	bool silent;  /* ... which the event above has already */
};

struct canvas {
	const struct report *r;
	const struct dsp_side *side;
	enum dsp_which w;
	const struct report_term *term;
	const struct glyphs *g;
	unsigned width;
	uint32_t *threads; /* shown, in order */
	size_t nthreads;
	size_t *dot;       /* column per shown thread */
	bool narrow;       /* rails too close for names above them */
	size_t nlanes, columns; /* columns: left of the text */
	size_t where_width;
	VEC(struct row) rows;
	size_t *row_of;    /* first row of each event */
	struct cell *cells;
};

static struct cell *cell(struct canvas *c, size_t row, size_t column)
{
	return &c->cells[row * c->columns + column];
}

/* ---- layout ---- */

static void find_threads(struct canvas *c)
{
	const struct sym_trace *t = c->r->trace;
	size_t wide = 0;

	c->threads = xcalloc(t->nthreads + 1, sizeof *c->threads);
	c->dot = xcalloc(t->nthreads + 1, sizeof *c->dot);
	for (uint32_t th = 0; th < t->nthreads; th++) {
		bool shown = false;

		for (size_t i = 0; i < c->side->nevents; i++)
			shown |= c->side->events[i].ref.thread == th;
		if (!shown)
			continue;
		c->threads[c->nthreads++] = th;
		wide += text_columns(t->threads[th].id, c->term->unicode) + 2;
	}
	c->narrow = wide > c->width * 2 / 5;
}

static size_t shown_index(const struct canvas *c, uint32_t thread)
{
	for (size_t i = 0; i < c->nthreads; i++)
		if (c->threads[i] == thread)
			return i;
	return 0;
}

/* With an alternate the differences are the message: the rest is not drawn. */
static bool flow_shown(const struct canvas *c, const struct order_flow *f)
{
	return f->differs || !c->r->dsp->has_alternate;
}

static bool is(struct sched_ref a, struct sched_ref b)
{
	return a.thread == b.thread && a.index == b.index;
}

/* A line begins below this event. */
static bool leaves(const struct canvas *c, struct sched_ref r)
{
	const struct dsp *d = c->r->dsp;

	for (size_t i = 0; i < c->side->nflows; i++) {
		const struct order_flow *f = &c->side->flows[i];

		if (flow_shown(c, f) && !f->initial && is(f->write, r))
			return true;
	}
	for (size_t i = 0; c->w == DSP_FAILING && i < d->nwaits; i++)
		if (is(d->waits[i].holds, r))
			return true;
	return false;
}

static bool has_source(const struct canvas *c, struct sched_ref r)
{
	struct rep_view v;
	bool has;

	rep_view(c->r, NULL, r, &v);
	has = v.source;
	rep_view_free(&v);
	return has;
}

/* So few columns that the line below an event has what happens there, and its source is left out. */
static bool is_tight(const struct canvas *c)
{
	return c->width < TIGHT;
}

static void find_rows(struct canvas *c)
{
	const struct dsp_side *s = c->side;

	c->row_of = xcalloc(s->nevents + 1, sizeof *c->row_of);
	for (size_t i = 0; i < s->nevents; i++) {
		bool again = i && rep_same_line(c->r, s->events[i - 1].ref, s->events[i].ref);

		c->row_of[i] = c->rows.n;
		vec_push(&c->rows, (struct row){ i, false, false });
		/* Where a line may leave the second row is needed even without text. */
		if (is_tight(c) || (!again && has_source(c, s->events[i].ref)) || leaves(c, s->events[i].ref))
			vec_push(&c->rows, (struct row){ i, true, again });
	}
}

static size_t event_of(const struct canvas *c, struct sched_ref r)
{
	for (size_t i = 0; i < c->side->nevents; i++)
		if (is(c->side->events[i].ref, r))
			return i;
	return NONE;
}

/* A line to draw: a dataflow, or who holds what another waits for. */
struct span {
	uint32_t source, target; /* threads; source SYM_NONE: the initial value */
	size_t from, to;         /* rows */
	size_t lane;
};
typedef VEC(struct span) spans;

static int shortest_first(const void *pa, const void *pb)
{
	const struct span *a = pa, *b = pb;
	size_t x = a->to - a->from, y = b->to - b->from;

	return x < y ? -1 : x > y ? 1 : a->from < b->from ? -1 : a->from > b->from;
}

static void add_span(const struct canvas *c, spans *out, struct sched_ref from, struct sched_ref to)
{
	size_t a = event_of(c, from), b = event_of(c, to);
	struct span p = { from.thread, to.thread, .lane = NONE };

	if (a == NONE || b == NONE || c->row_of[a] >= c->row_of[b])
		return;
	p.from = c->row_of[a] + 1;
	p.to = c->row_of[b];
	vec_push(out, p);
}

static bool find_spans(const struct canvas *c, spans *out)
{
	const struct dsp *d = c->r->dsp;
	bool initial = false;

	for (size_t i = 0; i < c->side->nflows; i++) {
		const struct order_flow *f = &c->side->flows[i];

		if (!flow_shown(c, f))
			continue;
		if (!f->initial) {
			add_span(c, out, f->write, f->read);
		} else if (event_of(c, f->read) != NONE) {
			struct span p = { SYM_NONE, f->read.thread, .lane = NONE };

			p.to = c->row_of[event_of(c, f->read)];
			vec_push(out, p);
			initial = true;
		}
	}
	for (size_t i = 0; c->w == DSP_FAILING && i < d->nwaits; i++)
		add_span(c, out, d->waits[i].holds, d->waits[i].wants);
	return initial;
}

/* Short lines next to the rails, long ones outside; what finds no lane stays text. */
static void find_lanes(struct canvas *c, spans *out)
{
	bool initial = find_spans(c, out);

	if (out->n)
		qsort(out->v, out->n, sizeof *out->v, shortest_first);
	for (size_t i = 0; i < out->n; i++) {
		struct span *p = &out->v[i];
		bool taken[MAX_LANES] = { false };

		if (p->source == SYM_NONE)
			continue;
		for (size_t k = 0; k < i; k++)
			if (out->v[k].lane != NONE && out->v[k].from <= p->to &&
			    p->from <= out->v[k].to)
				taken[out->v[k].lane] = true;
		for (size_t l = 0; l < MAX_LANES && p->lane == NONE; l++)
			if (!taken[l])
				p->lane = l;
		if (p->lane != NONE && p->lane + 1 > c->nlanes)
			c->nlanes = p->lane + 1;
	}
	if (initial && !c->nlanes)
		c->nlanes = 1;
}

static void find_columns(struct canvas *c)
{
	size_t at = MARGIN + c->nlanes * LANE;

	for (size_t i = 0; i < c->nthreads; i++) {
		size_t n = text_columns(c->r->trace->threads[c->threads[i]].id, c->term->unicode);

		if (c->narrow)
			n = 1;
		/* Room for the arrow head on the left. */
		c->dot[i] = at + 1 + (n > 2 ? (n - 1) / 2 : 0);
		at += n + 2;
	}
	c->columns = at + 1;
}

/* ---- drawing ---- */

static void draw_rails(struct canvas *c)
{
	const struct dsp *d = c->r->dsp;

	for (size_t row = 0; row < c->rows.n; row++)
		for (size_t i = 0; i < c->nthreads; i++)
			cell(c, row, c->dot[i])->rail = 1;
	for (size_t i = 0; i < d->nregions; i++) {
		struct sched_ref first = { d->regions[i].thread, d->regions[i].first };
		bool open = d->regions[i].last == SYM_NONE;
		size_t a = event_of(c, first), b = open ? a : event_of(c, d->regions[i].end);

		if (a == NONE || b == NONE)
			continue;
		for (size_t row = c->row_of[a]; row <= (open ? c->rows.n - 1 : c->row_of[b]); row++)
			cell(c, row, c->dot[shown_index(c, first.thread)])->rail = 2;
	}
}

enum outcome { ORDINARY, FAINT, BAD, GOOD };

/* Not to get to the failure at all is as good as to pass it. */
static enum outcome outcome_of(const struct canvas *c, const struct dsp_event *e)
{
	bool end = order_event_at(c->r->trace, e->ref)->op == SYM_FAIL;

	if (e->failure && c->w == DSP_FAILING && (end || !e->executed))
		return BAD;
	if (e->failure && end)
		return GOOD;
	return e->executed && !e->context ? ORDINARY : FAINT;
}

static void draw_dots(struct canvas *c)
{
	const char *const marks[] = { c->g->dot, c->g->context, c->g->bad, c->g->good };
	static const enum term_style styles[] = { TERM_BOLD, TERM_DIM, TERM_RED, TERM_GREEN };

	for (size_t i = 0; i < c->side->nevents; i++) {
		const struct dsp_event *e = &c->side->events[i];
		struct cell *at = cell(c, c->row_of[i], c->dot[shown_index(c, e->ref.thread)]);

		at->mark = marks[outcome_of(c, e)];
		at->style = styles[outcome_of(c, e)];
	}
}

static void horizontal(struct canvas *c, size_t row, size_t from, size_t to, enum term_style s)
{
	for (size_t x = from; x <= to; x++) {
		struct cell *at = cell(c, row, x);

		if (x > from)
			at->flow |= LEFT;
		if (x < to)
			at->flow |= RIGHT;
		at->style = s;
	}
}

static void draw_flow(struct canvas *c, const struct span *p)
{
	enum term_style style = c->w == DSP_FAILING ? TERM_RED : TERM_GREEN;
	size_t dot = c->dot[shown_index(c, p->target)];
	size_t lane;

	if (p->source == SYM_NONE) {
		/* A short stub next to the rails. */
		lane = MARGIN + (c->nlanes - 1) * LANE;
		horizontal(c, p->to, lane, dot - 1, style);
		cell(c, p->to, lane)->mark = c->g->initial;
		cell(c, p->to, lane)->style = style;
	} else {
		size_t writer = c->dot[shown_index(c, p->source)];

		if (p->lane == NONE)
			return;
		lane = MARGIN + (c->nlanes - 1 - p->lane) * LANE;
		horizontal(c, p->from, lane, writer, style);
		horizontal(c, p->to, lane, dot - 1, style);
		for (size_t y = p->from; y <= p->to; y++) {
			struct cell *at = cell(c, y, lane);

			if (y > p->from)
				at->flow |= UP;
			if (y < p->to)
				at->flow |= DOWN;
			at->style = style;
		}
	}
	cell(c, p->to, dot - 1)->mark = c->g->arrow;
	cell(c, p->to, dot - 1)->style = style;
}

/* ---- text ---- */

static void add_styled(struct strbuf *b, const struct canvas *c, enum term_style style,
		       const char *text, size_t *left)
{
	if (style != TERM_PLAIN)
		strbuf_str(b, text_style(c->term, style));
	*left -= text_add(b, text, *left, c->term->unicode);
	if (style != TERM_PLAIN)
		strbuf_str(b, text_style(c->term, TERM_PLAIN));
}

static char *action_of(const struct canvas *c, const struct dsp_event *e, const struct rep_view *v)
{
	struct strbuf b = { 0 };

	rep_action(&b, c->r, e, v, c->w);
	return strbuf_take(&b);
}

static enum term_style style_of(const struct canvas *c, const struct dsp_event *e)
{
	switch (outcome_of(c, e)) {
	case BAD:
		return TERM_RED;
	case GOOD:
		return TERM_GREEN;
	case FAINT:
		return TERM_DIM;
	default:
		return e->reordered || e->in_flow ? TERM_BOLD : TERM_PLAIN;
	}
}

/*
 * The action in at most so many columns. What is too long loses the library's function first (the source
 * shows it, and the words below do), then the end of its name rather than its value.
 */
static char *action_in(struct canvas *c, const struct dsp_event *e, struct rep_view *v, size_t columns)
{
	char *action = action_of(c, e, v), *via = v->via;
	size_t n = text_columns(v->subject, c->term->unicode), wide;
	struct strbuf b = { 0 };

	wide = text_columns(action, c->term->unicode);
	if (wide > columns && via) {
		v->via = NULL;
		free(action);
		action = action_of(c, e, v);
		wide = text_columns(action, c->term->unicode);
	}
	if (wide > columns) {
		size_t excess = wide - columns;

		text_add(&b, v->subject, n > excess + 8 ? n - excess : n < 8 ? n : 8, c->term->unicode);
		v->subject = b.s;
		free(action);
		action = action_of(c, e, v);
	}
	strbuf_free(&b);
	v->via = via;
	return action;
}

/* Of a long file name the end is kept, and the line. */
static void add_where(struct strbuf *b, struct canvas *c, const char *where, size_t *left)
{
	size_t n = strlen(where), most = is_tight(c) ? *left : c->where_width;

	if (n > most && most > 8 && text_columns(where, c->term->unicode) == n) {
		char *end = xasprintf("...%s", where + n - (most - 3));

		add_styled(b, c, TERM_CYAN, end, left);
		free(end);
	} else {
		add_styled(b, c, TERM_CYAN, where, left);
	}
}

static void write_text(struct canvas *c, struct strbuf *b, const struct row *row, size_t *left)
{
	const struct dsp_event *e = &c->side->events[row->event];
	struct rep_view v;

	rep_view_shown(c->r, c->w, e, &v);
	if (row->second && is_tight(c)) {
		char *action = action_in(c, e, &v, *left > 2 ? *left - 2 : 0);

		add_styled(b, c, TERM_PLAIN, "  ", left);
		add_styled(b, c, style_of(c, e), action, left);
		free(action);
	} else if (row->second) {
		/* Under the action where there is room, else under the place. */
		size_t indent = c->where_width + 2;

		if (*left < indent + 30)
			indent = 2;
		if (v.source && !row->silent && *left > indent) {
			strbuf_fmt(b, "%*s", (int)indent, "");
			*left -= indent;
			add_styled(b, c, TERM_DIM, v.source, left);
		}
	} else {
		size_t before = *left, used;

		if (c->narrow) {
			add_styled(b, c, TERM_PLAIN, v.thread, left);
			add_styled(b, c, TERM_PLAIN, " ", left);
			before = *left;
		}
		add_where(b, c, v.where, left);
		used = before - *left;
		if (is_tight(c)) {
			rep_view_free(&v);
			return;
		}
		for (; used < c->where_width + 2 && *left; used++, --*left)
			strbuf_char(b, ' ');
		char *action = action_in(c, e, &v, *left);

		add_styled(b, c, style_of(c, e), action, left);
		free(action);
	}
	rep_view_free(&v);
}

static const char *glyph_of(const struct canvas *c, const struct cell *at)
{
	if (at->mark)
		return at->mark;
	if (at->flow == LEFT && at->rail)
		return c->g->leaves;
	if (at->flow)
		return c->g->line[at->flow];
	return at->rail == 2 ? c->g->region : at->rail ? c->g->rail : " ";
}

static void finish_line(struct rail_picture *out, struct strbuf *b, size_t columns)
{
	vec_push(&out->lines, (struct rail_line){ strbuf_take(b), columns });
}

static void write_names(struct canvas *c, struct rail_picture *out)
{
	struct strbuf b = { 0 };
	size_t at = 0;

	if (c->narrow)
		return;
	for (size_t i = 0; i < c->nthreads; i++) {
		const char *id = c->r->trace->threads[c->threads[i]].id;
		size_t n = text_columns(id, c->term->unicode);
		size_t start = c->dot[i] - (n > 2 ? (n - 1) / 2 : 0);

		strbuf_fmt(&b, "%*s%s", (int)(start - at), "", text_style(c->term, TERM_BOLD));
		at = start + text_add(&b, id, n, c->term->unicode);
		strbuf_str(&b, text_style(c->term, TERM_PLAIN));
	}
	finish_line(out, &b, at);
}

static void write_rows(struct canvas *c, struct rail_picture *out)
{
	for (size_t y = 0; y < c->rows.n; y++) {
		struct strbuf b = { 0 };
		size_t left = c->width > c->columns ? c->width - c->columns : 0;
		size_t room = left;

		for (size_t x = 0; x < c->columns; x++) {
			const struct cell *at = cell(c, y, x);
			const char *g = glyph_of(c, at);
			enum term_style style = at->mark || at->flow ? at->style :
						at->rail == 1 ? TERM_DIM : TERM_PLAIN;

			if (style != TERM_PLAIN && *g != ' ')
				strbuf_fmt(&b, "%s%s%s", text_style(c->term, style), g,
					   text_style(c->term, TERM_PLAIN));
			else
				strbuf_str(&b, g);
		}
		write_text(c, &b, &c->rows.v[y], &left);
		finish_line(out, &b, c->columns + room - left);
	}
}

static void measure(struct canvas *c, struct rail_picture *out)
{
	size_t widest = 0;

	for (size_t i = 0; i < c->side->nevents; i++) {
		const struct dsp_event *e = &c->side->events[i];
		struct rep_view v;
		char *action;
		size_t n;

		rep_view_shown(c->r, c->w, e, &v);
		action = action_of(c, e, &v);
		n = text_columns(v.where, c->term->unicode);
		if (n > c->where_width)
			c->where_width = n;
		n = text_columns(action, c->term->unicode);
		if (n > widest)
			widest = n;
		free(action);
		rep_view_free(&v);
	}
	if (c->where_width > 24)
		c->where_width = 24;
	for (size_t i = 0; i < c->side->nflows; i++) {
		const struct order_flow *f = &c->side->flows[i];

		out->initial |= flow_shown(c, f) && f->initial;
		out->flows |= flow_shown(c, f) && !f->initial;
	}
	out->waits = c->w == DSP_FAILING && c->r->dsp->nwaits;
	out->wanted = c->columns + c->where_width + 2 + widest;
}

void rails_draw(const struct report *r, enum dsp_which w, const struct report_term *term,
		unsigned width, struct rail_picture *out)
{
	struct canvas c = { .r = r, .side = &r->dsp->side[w], .w = w, .term = term };
	spans flows = { 0 };

	c.width = width;
	c.g = term->unicode ? &unicode_glyphs : &ascii_glyphs;
	*out = (struct rail_picture){ 0 };
	find_threads(&c);
	find_rows(&c);
	find_lanes(&c, &flows);
	find_columns(&c);
	measure(&c, out);
	c.cells = xcalloc(c.rows.n * c.columns + 1, sizeof *c.cells);
	draw_rails(&c);
	for (size_t i = 0; i < flows.n; i++)
		draw_flow(&c, &flows.v[i]);
	draw_dots(&c);
	write_names(&c, out);
	write_rows(&c, out);
	vec_free(&flows);
	vec_free(&c.rows);
	free(c.threads);
	free(c.dot);
	free(c.row_of);
	free(c.cells);
}

void rails_free(struct rail_picture *p)
{
	for (size_t i = 0; i < p->lines.n; i++)
		free(p->lines.v[i].text);
	vec_free(&p->lines);
}
