/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frames of a crash stack that are the library's, found by module, offset or name; the rule of matching. */
#include "analyzer/testgen/goal.h"

#include "analyzer/hunt/place.h"
#include "analyzer/term.h"
#include "analyzer/testgen/heap_guard.h"
#include "analyzer/testgen/testgen.h"

#include <signal.h>
#include <string.h>

#define FUNCTIONS_NAMED 4 /* of a stack that has none of the library's */

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* libq.so.1 and libq.so.1.2.3 are the same library; so is the file a link points to. */
static bool is_module(const struct api *a, const char *module)
{
	const char *name = base(module), *stem = strstr(name, ".so"), *ours = strstr(a->soname, ".so");
	size_t n = stem ? (size_t)(stem - name) : strlen(name);
	size_t m = ours ? (size_t)(ours - a->soname) : strlen(a->soname);

	return n == m && !strncmp(name, a->soname, n);
}

/* Without template arguments, which some tools fold and others write in full, and without what a template returns. */
static char *folded(const char *name)
{
	char *s = api_demangle_bare(name), *to = s, *last = s;
	int depth = 0;

	for (const char *p = s; *p; p++) {
		bool op = p >= s + 8 && !strncmp(p - 8, "operator", 8);

		if (*p == '<' && !op)
			depth++;
		else if (*p == '>' && depth && p[-1] != '-')
			depth--;
		else if (!depth)
			*to++ = *p;
	}
	*to = 0;
	for (char *p = s; *p; p++)
		if (*p == ' ' && !strstr(s, "operator"))
			last = p + 1;
	char *out = xstrdup(last);
	free(s);
	return out;
}

/* "chart::Series::last" and "last" are the same when one of them is not qualified. */
static bool same_function(const char *a, const char *b)
{
	char *x = folded(a), *y = folded(b);
	size_t n = strlen(x), m = strlen(y);
	bool same = !strcmp(x, y);

	if (!same && n > m + 2)
		same = !strcmp(x + n - m, y) && !strncmp(x + n - m - 2, "::", 2);
	else if (!same && m > n + 2)
		same = !strcmp(y + m - n, x) && !strncmp(y + m - n - 2, "::", 2);
	free(x);
	free(y);
	return same;
}

/* Of functions with the same name the one that the line is in: it begins nearest above. */
static bool is_nearer(const struct api_function *f, const struct api_function *than, const struct stack_frame *frame)
{
	if (!than)
		return true;
	if (!frame->line || !frame->file || !f->file || strcmp(base(f->file), base(frame->file)) || f->line > frame->line)
		return false;
	return than->line > frame->line || f->line > than->line || !than->file || strcmp(base(than->file), base(frame->file));
}

/* Linked into something else it still has its names and sources. */
static bool is_same_source(const struct goal *g, uint64_t entry, const struct stack_frame *frame)
{
	for (size_t i = 0; i < g->api->functions.n; i++) {
		const struct api_function *f = &g->api->functions.v[i];

		if (f->offset == entry && f->file && frame->file)
			return !strcmp(base(f->file), base(frame->file));
	}
	return true;
}

static uint64_t entry_of(struct goal *g, const char *function, const struct stack_frame *frame)
{
	const struct api_function *best = NULL;
	uint64_t at = 0;

	for (size_t i = 0; i < g->api->functions.n; i++) {
		const struct api_function *f = &g->api->functions.v[i];
		char *name = api_demangle_bare(f->symbol);
		bool same = !strcmp(name, function) || !strcmp(f->symbol, function);

		free(name);
		if (same && is_nearer(f, best, frame))
			best = f;
	}
	if (best)
		return best->offset;
	return img_address_of(g->images, function, &at) ? at : 0;
}

static void push(struct goal *g, const char *function, const char *file, unsigned line, uint64_t entry)
{
	if (g->nframes == GOAL_FRAMES)
		return;
	char *name = api_demangle_bare(function);
	g->frames[g->nframes++] = (struct goal_frame){ name, file ? xstrdup(base(file)) : NULL, line, entry };
}

/* The functions at an offset of the library, inlined ones included. */
static bool push_offset(struct goal *g, uint64_t offset, bool innermost)
{
	struct img_frame f[8];
	size_t n = img_frames(g->images, offset - !innermost, f, 8);

	for (size_t i = 0; i < n; i++)
		push(g, f[i].function, f[i].file, f[i].line, f[i].inlined ? 0 : offset - !innermost - f[i].offset);
	return n > 0;
}

static bool push_frame(struct goal *g, const struct stack_frame *f, bool innermost)
{
	bool ours = f->module && is_module(g->api, f->module);

	if (f->module && !ours && !g->by_name)
		return false;
	if (f->function) {
		char *name = api_demangle_bare(f->function);
		uint64_t entry = entry_of(g, name, f);

		if (!ours && f->module && entry && !is_same_source(g, entry, f))
			entry = 0;
		/* Without a module only a name that the library has is one of its frames. */
		if (ours || entry)
			push(g, name, f->file, f->line, entry);
		free(name);
		return ours || entry;
	}
	return ours && f->has_offset && push_offset(g, f->offset, innermost);
}

static unsigned collect(struct goal *g, const struct stack_thread *t)
{
	bool innermost = true;

	for (size_t i = 0; i < t->frames.n; i++) {
		push_frame(g, &t->frames.v[i], innermost);
		innermost = false;
	}
	return g->nframes;
}

static const struct api_function *function_of(const struct goal *g, const struct goal_frame *frame)
{
	for (int by_name = 0; by_name < 2; by_name++)
		for (size_t i = 0; i < g->api->functions.n; i++) {
			const struct api_function *f = &g->api->functions.v[i];

			if (f->result.spelling && (by_name ? same_function(f->name, frame->function) : f->offset == frame->entry))
				return f;
		}
	return NULL;
}

/* The one that works on an object, if there is one: what a program does around that is no part of its interface. */
static const struct api_function *outermost_method(const struct goal *g, const struct goal_frame *frames, unsigned n)
{
	while (n-- > 0) {
		const struct api_function *f = function_of(g, &frames[n]);

		if (f && !f->left_out && (f->role == API_METHOD || f->role == API_DESTRUCTOR) && api_is_made(g->api, f->object))
			return f;
	}
	return NULL;
}

static const struct api_function *callable(const struct goal *g, const struct goal_frame *frames, unsigned n)
{
	const struct api_function *f = g->api->program ? outermost_method(g, frames, n) : NULL, *left_out = NULL;

	while (!f && n-- > 0) {
		const struct api_function *at = function_of(g, &frames[n]);

		if (at && at->left_out)
			left_out = left_out ? left_out : at;
		else
			f = at;
	}
	return f ? f : left_out;
}

static void forget_frames(struct goal *g)
{
	for (unsigned i = 0; i < g->nframes; i++) {
		free(g->frames[i].function);
		free(g->frames[i].file);
	}
	g->nframes = 0;
}

/* The thread that failed, if the text says which; else the first one with frames of the library. */
static void choose_thread(struct goal *g, const struct stack *s)
{
	for (int pass = 0; pass < 3 && !g->nframes; pass++)
		for (size_t i = 0; i < s->threads.n && !g->nframes; i++) {
			const struct stack_thread *t = &s->threads.v[i];

			if ((pass == 0 && !t->fails) || (pass < 2 && t->secondary))
				continue;
			collect(g, t);
		}
}

static void choose_other(struct goal *g, const struct stack *s)
{
	struct goal more = { .images = g->images, .api = g->api, .by_name = g->by_name };

	for (size_t i = 0; i < s->threads.n && !g->other; i++) {
		forget_frames(&more);
		collect(&more, &s->threads.v[i]);
		bool same = more.nframes == g->nframes;
		for (unsigned k = 0; k < more.nframes && same; k++)
			same = !strcmp(more.frames[k].function, g->frames[k].function);
		if (more.nframes && !same)
			g->other = callable(&more, more.frames, more.nframes);
	}
	forget_frames(&more);
	if (!g->other)
		g->other = g->crashing;
}

/* The access that the report calls the previous one: the next stack of the library's. */
static void choose_previous(struct goal *g, const struct stack *s)
{
	struct goal more = { .images = g->images, .api = g->api, .by_name = g->by_name };

	for (size_t i = 1; i < s->threads.n && !g->previous.function; i++) {
		forget_frames(&more);
		if (!s->threads.v[i].secondary || !collect(&more, &s->threads.v[i]))
			continue;
		g->previous = more.frames[0];
		g->previous.function = xstrdup(more.frames[0].function);
		g->previous.file = more.frames[0].file ? xstrdup(more.frames[0].file) : NULL;
		g->other = callable(&more, more.frames, more.nframes);
	}
	forget_frames(&more);
}

static err_t not_callable(const struct goal *g, const char *path)
{
	const char *function = g->frames[g->nframes - 1].function;
	char *name = term_text_of(function, strlen(function)); /* the stack may come from anywhere */
	err_t e = err_new(ERR_NOANSWER, "%s: '%s', the outermost frame of %s, is no %sfunction, so no test can call it",
			  path, name, g->api->soname, g->api->program ? "" : "exported ");

	free(name);
	return e;
}

/* Which functions the stack has instead, and what of it could not be read. */
static err_t none_of_ours(const struct api *a, const struct stack *s, const char *path)
{
	struct strbuf b = { 0 };
	unsigned n = 0;

	for (size_t i = 0; i < s->threads.n; i++)
		for (size_t k = 0; k < s->threads.v[i].frames.n; k++) {
			const char *f = s->threads.v[i].frames.v[k].function;

			if (f && n++ < FUNCTIONS_NAMED)
				strbuf_fmt(&b, "%s%s", b.n ? ", " : " (it has ", f);
		}
	strbuf_str(&b, !b.n ? "" : n > FUNCTIONS_NAMED ? ", ...)" : ")");
	char *odd = stack_odd_text(s), *names = term_text_of(b.n ? b.s : "", b.n);
	err_t e = err_new(ERR_NOANSWER, "%s: none of the frames is one of %s: by its name, its module or its offset%s%s",
			  path, a->soname, names, odd);
	free(odd);
	free(names);
	strbuf_free(&b);
	return e;
}

err_t goal_of(const struct api *a, const struct stack *s, const char *path, struct goal *out)
{
	*out = (struct goal){ .api = a, .kind = s->kind };
	TRY(place_open(a->path, &out->images));
	choose_thread(out, s);
	out->by_name = !out->nframes;
	if (out->by_name)
		choose_thread(out, s);
	if (!out->nframes)
		return none_of_ours(a, s, path);
	out->crashing = callable(out, out->frames, out->nframes);
	if (!out->crashing)
		return not_callable(out, path);
	/* What lies outside the crashing function is not called by us. */
	for (unsigned i = out->nframes; i-- > 0;)
		if (out->frames[i].entry == out->crashing->offset ||
		    same_function(out->frames[i].function, out->crashing->name)) {
			for (unsigned k = i + 1; k < out->nframes; k++) {
				free(out->frames[k].function);
				free(out->frames[k].file);
			}
			out->nframes = i + 1;
			break;
		}
	if (out->kind == STACK_DEADLOCK)
		choose_other(out, s);
	if (out->kind == STACK_RACE)
		choose_previous(out, s);
	return NULL;
}

void goal_free(struct goal *g)
{
	forget_frames(g);
	free(g->previous.function);
	free(g->previous.file);
	img_set_free(g->images);
	free(g->nearest);
}

/* ---- matching ---- */

static bool same_kind(const struct goal *g, const struct failure *f)
{
	switch (g->kind) {
	case STACK_DEADLOCK: return f->end == JOB_DEADLOCK;
	case STACK_FREED: return f->end == JOB_SIGNAL && f->misuse == HEAP_FREED;
	case STACK_OVERRUN: return f->end == JOB_SIGNAL && f->misuse == HEAP_OVERRUN;
	case STACK_CRASH: return f->end == JOB_SIGNAL && (f->status == SIGSEGV || f->status == SIGBUS);
	case STACK_ABORT: return f->end == JOB_SIGNAL && f->status == SIGABRT;
	case STACK_ARITHMETIC: return f->end == JOB_SIGNAL && f->status == SIGFPE;
	default: return f->end == JOB_SIGNAL;
	}
}

/*
 * Frame by frame. A stack without debug information lacks inlined functions: those of the failure may be more. A line is
 * compared at the point of failure only, where both know it.
 */
static bool same_frames(const struct goal *g, const struct failure *f)
{
	unsigned at = 0;
	bool first = true;

	for (unsigned i = 0; i < f->nframes && at < g->nframes; i++) {
		struct img_frame frames[8];
		size_t n = img_frames(g->images, f->frames[i], frames, 8);

		for (size_t k = 0; k < n && at < g->nframes; k++) {
			const struct goal_frame *want = &g->frames[at];

			if (!same_function(want->function, frames[k].function)) {
				if (frames[k].inlined)
					continue;
				return false;
			}
			if (first && want->line && want->file && frames[k].line && frames[k].file && !g->any_line &&
			    (want->line != frames[k].line || strcmp(want->file, base(frames[k].file))))
				return false;
			first = false;
			at++;
		}
	}
	return at == g->nframes;
}

static bool same_deadlock(const struct goal *g, const struct failure *f)
{
	uint64_t x = g->crashing->offset, y = g->other->offset;

	return (f->calls[0] == x && f->calls[1] == y) || (f->calls[0] == y && f->calls[1] == x);
}

bool goal_wanted(void *arg, const struct failure *f)
{
	struct goal *g = arg;

	if (f->end == JOB_DEADLOCK)
		return g->kind == STACK_DEADLOCK && same_deadlock(g, f);
	if (same_kind(g, f) && same_frames(g, f))
		return true;
	if (f->thread) {
		g->near++;
		if (!g->nearest)
			g->nearest = testgen_failure_text(g->api, f);
	}
	return false;
}

bool goal_reaches(void *arg, const struct trace *t)
{
	struct goal *g = arg;
	uint64_t open[256];
	unsigned depth = 0;

	for (uint32_t i = 0; i < t->nevents; i++) {
		const struct job_event *e = &t->events[i];

		if (e->kind == JOB_LEAVE && depth)
			depth--;
		if (e->kind == JOB_CALL)
			depth = 0;
		if (e->kind != JOB_ENTER)
			continue;
		if (depth < 256)
			open[depth++] = e->address;
		/* The frames that have an entry, outermost first, in this order. */
		unsigned k = 0, want = g->nframes;
		while (want-- > 0) {
			if (!g->frames[want].entry)
				continue;
			while (k < depth && open[k] != g->frames[want].entry)
				k++;
			if (k++ >= depth)
				break;
		}
		if (want == UINT32_MAX)
			return true;
	}
	return false;
}

/* ---- the failure as a condition ---- */

static bool is_place(const struct goal *g, const struct goal_frame *want, uint64_t place, bool line)
{
	struct img_frame frames[8];
	size_t n = img_frames(g->images, place, frames, 8);

	for (size_t i = 0; i < n; i++)
		if (same_function(want->function, frames[i].function))
			return !line || (want->line && !g->any_line && frames[i].line == want->line);
	return false;
}

static bool is_at_line(void *goal, uint64_t place)
{
	struct goal *g = goal;

	return is_place(g, &g->frames[0], place, true);
}

static bool is_in_function(void *goal, uint64_t place)
{
	struct goal *g = goal;

	return is_place(g, &g->frames[0], place, false);
}

const struct solve_failure *goal_solve(struct goal *g)
{
	if (g->kind == STACK_DEADLOCK || g->kind == STACK_RACE || !g->nframes)
		return NULL;
	g->solve = (struct solve_failure){ .at_line = is_at_line, .in_function = is_in_function, .arg = g,
					   .bad_pointer = g->kind != STACK_ABORT && g->kind != STACK_ARITHMETIC };
	return &g->solve;
}

/* ---- a data race ---- */

static bool is_first(void *goal, uint64_t place)
{
	struct goal *g = goal;

	return is_place(g, &g->frames[0], place, g->frames[0].line && !g->any_line);
}

static bool is_second(void *goal, uint64_t place)
{
	struct goal *g = goal;

	return !g->previous.function || is_place(g, &g->previous, place, g->previous.line && !g->any_line);
}

const struct lab_race *goal_race(struct goal *g)
{
	if (g->kind != STACK_RACE)
		return NULL;
	g->race = (struct lab_race){ is_first, is_second, g };
	return &g->race;
}
