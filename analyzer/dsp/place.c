#include "analyzer/dsp/internal.h"
#include "common/runtime_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *dsp_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

bool dsp_is_runtime(const struct sym_frame *f)
{
	return (f->file && runtime_header(f->file)) ||
	       dsp_is_in_runtime_module(f);
}

bool dsp_is_in_runtime_module(const struct sym_frame *f)
{
	return f->module && runtime_module(dsp_basename(f->module));
}

bool dsp_is_in_library(const struct sym_trace *t, const struct sym_event *e)
{
	const struct sym_stack *k = e->stack < t->nstacks ? &t->stacks[e->stack] : NULL;

	return k && k->n && dsp_is_in_runtime_module(&k->frames[0]);
}

const struct sym_frame *dsp_place(const struct sym_trace *t, const struct sym_event *e)
{
	const struct sym_stack *s;

	if (!e || e->stack >= t->nstacks || !t->stacks[e->stack].n)
		return NULL;
	s = &t->stacks[e->stack];
	for (uint32_t i = 0; i < s->n; i++)
		if (s->frames[i].file && s->frames[i].line && !dsp_is_runtime(&s->frames[i]))
			return &s->frames[i];
	for (uint32_t i = 0; i < s->n; i++)
		if (!dsp_is_runtime(&s->frames[i]))
			return &s->frames[i];
	return &s->frames[0];
}

bool dsp_same_calls(const struct sym_trace *t, const struct sym_event *a, const struct sym_event *b)
{
	const struct sym_stack *x, *y;

	if (a->stack >= t->nstacks || b->stack >= t->nstacks || a->stack == b->stack)
		return true;
	x = &t->stacks[a->stack];
	y = &t->stacks[b->stack];
	if (x->n != y->n)
		return false;
	for (uint32_t i = 0; i < x->n; i++)
		if (x->frames[i].pc != y->frames[i].pc)
			return false;
	return true;
}

bool dsp_same_place(const struct sym_trace *t, const struct sym_event *a, const struct sym_event *b)
{
	const struct sym_frame *x = dsp_place(t, a), *y = dsp_place(t, b);

	return a->pc == b->pc && (!x || !y || x->pc == y->pc);
}

/* The part of a path that no program writes: "_M_release". */
static bool is_internal_function(const char *path)
{
	const char *last = strrchr(path, ':');

	last = last ? last + 1 : path;
	return !strncmp(last, "_M_", 3) || !strncmp(last, "_S_", 3);
}

/* "__atomic_base" is "atomic" and "_Deque_iterator" "iterator" to who wrote the call: implementations of what they name. */
static void say_class(struct strbuf *b, const char *s, size_t n)
{
	static const char *const suffixes[] = { "_base", "_impl", "_pthread" };
	static const char iterator[] = "_iterator";

	if (n && *s == '~') {
		strbuf_char(b, '~');
		s++;
		n--;
	}
	if (!n || *s != '_') {
		strbuf_add(b, s, n);
		return;
	}
	for (; n && *s == '_'; n--)
		s++;
	if (n >= sizeof iterator - 1 && !strncmp(s + n - (sizeof iterator - 1), iterator, sizeof iterator - 1)) {
		strbuf_str(b, iterator + 1);
		return;
	}
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t k = strlen(suffixes[i]);

		if (n > k && !strncmp(s + n - k, suffixes[i], k))
			n -= k;
	}
	for (; n; n--, s++)
		strbuf_char(b, *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s);
}

/* The path of a library's function, class by class; takes it. */
static char *spoken_path(char *path)
{
	struct strbuf b = { 0 };
	const char *at = path, *end;

	/* What an operator is called is no path: "operator->". */
	for (; (end = strstr(at, "::")); at = end + 2) {
		say_class(&b, at, (size_t)(end - at));
		strbuf_str(&b, "::");
	}
	say_class(&b, at, strlen(at));
	free(path);
	return strbuf_take(&b);
}

/* "std::vector<int, std::allocator<int> >::push_back" is "vector::push_back" to who wrote the call. */
static char *without_templates(const char *name)
{
	static const char *const spaces[] = { "std::", "__cxx11::", "__gnu_cxx::" };
	const char *keep = strstr(name, "operator"); /* its < and > are its name */
	struct strbuf b = { 0 };
	unsigned depth = 0;

	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
		if (!strncmp(name, spaces[i], strlen(spaces[i])))
			name += strlen(spaces[i]);
	/* "__atomic_base<int>::load" is a layer of "atomic". */
	if (!strncmp(name, "__atomic_base<", 14) || !strncmp(name, "__atomic_base::", 15)) {
		strbuf_str(&b, "atomic");
		name += 13;
	}
	for (const char *s = name; *s; s++) {
		bool counts = !keep || s < keep;

		depth += counts && *s == '<';
		if (!depth)
			strbuf_char(&b, *s);
		depth -= counts && *s == '>' && depth;
	}
	return strbuf_take(&b);
}

/* "__GI___libc_free", "cfree" and "__memcpy_avx_unaligned" as their callers know them. */
static char *spoken_name(const char *function)
{
	static const char *const prefixes[] = { "__GI_", "__libc_", "__" };
	static const char *const variants[] = { "_avx", "_sse", "_evex", "_erms", "_generic" };
	const char *s = function;
	size_t n;

	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (!strncmp(s, prefixes[i], strlen(prefixes[i])))
			s += strlen(prefixes[i]);
	if (!strcmp(s, "cfree"))
		s = "free";
	n = strlen(s);
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		const char *cut = strstr(s, variants[i]);

		if (cut && cut > s && (size_t)(cut - s) < n)
			n = (size_t)(cut - s);
	}
	return xasprintf("%.*s", (int)n, s);
}

/* "sync::poison::mutex::Mutex::lock" is "Mutex::lock" to who wrote the call: Rust's modules say where its library keeps things. */
static char *without_modules(const char *name)
{
	char *whole = without_templates(name);
	const char *from = whole, *last = NULL;

	for (const char *s = strstr(whole, "::"); s; s = strstr(s + 2, "::")) {
		from = last ? last + 2 : whole;
		last = s;
	}
	char *text = xstrdup(from);

	free(whole);
	return text;
}

static bool is_rust_library(const char *file)
{
	return file && (!strncmp(file, "/rustc/", 7) || !strncmp(file, "library/", 8) || strstr(file, "/rustlib/src/rust/"));
}

char *dsp_via(const struct sym_trace *t, const struct sym_event *e)
{
	const struct sym_frame *place = dsp_place(t, e);
	const struct sym_frame *frames;

	if (!place || !order_is_access(e))
		return NULL;
	frames = t->stacks[e->stack].frames;
	/* Without a frame of the program the innermost one is the place itself. */
	if (place == frames || !dsp_is_runtime(&place[-1]))
		return NULL;
	if (is_rust_library(place[-1].file))
		return without_modules(place[-1].function);
	/* Of a function without a name only the library is known. */
	if (strstr(place[-1].function, ".so") && strstr(place[-1].function, "+0x"))
		return NULL;
	if (!strstr(place[-1].function, "::"))
		return spoken_name(place[-1].function);
	char *path = without_templates(place[-1].function);

	if (!is_internal_function(path))
		return spoken_path(path);
	free(path);
	return NULL;
}

const char *dsp_subject(const struct sym_trace *t, const struct sym_event *e)
{
	if (order_is_access(e))
		return e->target < t->nvars ? t->vars[e->target].name : "";
	if (e->peer < t->nthreads)
		return t->threads[e->peer].id;
	if (e->op == SYM_FAIL || e->op == SYM_START || e->op == SYM_EXIT || e->op == SYM_FENCE)
		return "";
	return e->target < t->nobjects ? t->objects[e->target].name : "";
}

char *dsp_where(const struct sym_trace *t, struct sched_ref r)
{
	const struct sym_event *e = order_event_at(t, r);
	const struct sym_frame *f = dsp_place(t, e);

	/* The program has no line there: its thread has ended, or not begun. */
	if (f && dsp_is_in_runtime_module(f))
		return xstrdup(dsp_basename(f->module));
	if (f && f->file && f->line)
		return xasprintf("%s:%u", dsp_basename(f->file), f->line);
	if (f && f->file)
		return xasprintf("%s in %s", f->function, dsp_basename(f->file));
	/* An offset into a library says nothing to who calls it. */
	if (f && f->module && strstr(f->function, "+0x") && (dsp_is_runtime(f) || strstr(f->function, ".so")))
		return xasprintf("%s", dsp_basename(f->module));
	/* "?" is what other tools' traces have for a name. */
	if (f && strcmp(f->function, "?"))
		return xasprintf("%s", f->function);
	if (e && e->pc)
		return xasprintf("0x%" PRIx64, e->pc);
	return xasprintf("event %u", r.index);
}

static const char *const verbs[SYM_OP_COUNT] = {
	[SYM_READ] = "reads", [SYM_WRITE] = "writes", [SYM_RMW] = "updates",
	[SYM_LOCK] = "locks", [SYM_RDLOCK] = "read-locks", [SYM_UNLOCK] = "unlocks",
	[SYM_TRYLOCK] = "tries to lock", [SYM_TRYRDLOCK] = "tries to read-lock",
	[SYM_WAIT] = "waits for", [SYM_SIGNAL] = "signals", [SYM_BROADCAST] = "broadcasts",
	[SYM_SEMWAIT] = "waits for", [SYM_SEMPOST] = "posts",
	[SYM_BARRIER_ENTER] = "arrives at", [SYM_BARRIER_LEAVE] = "leaves",
	[SYM_ONCE_BEGIN] = "enters", [SYM_ONCE_END] = "finishes",
	[SYM_FORK] = "creates", [SYM_JOIN] = "joins", [SYM_FENCE] = "fences",
	[SYM_START] = "starts", [SYM_EXIT] = "ends", [SYM_FAIL] = "fails",
};

const char *dsp_verb(enum sym_op op)
{
	return op < SYM_OP_COUNT && verbs[op] ? verbs[op] : "does";
}

/* FNV-1a */
static uint64_t hash_str(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

/*
 * Names without what changes from run to run: array indices, numbers of heap
 * objects, lines and addresses. "buf[3]" and "buf[17]" are one place in the source,
 * "0x7f12..." is none.
 */
static void stable_name(struct strbuf *b, const char *name)
{
	if (!strncmp(name, "0x", 2)) {
		strbuf_char(b, '?');
		return;
	}
	for (; *name; name++) {
		if (name[0] == '[' && name[1] >= '0' && name[1] <= '9') {
			strbuf_str(b, "[]");
			name += strcspn(name, "]");
			if (!*name)
				return;
		} else if ((*name == '#' || *name == ':') && name[1] >= '0' && name[1] <= '9') {
			name += strspn(name + 1, "0123456789");
		} else {
			strbuf_char(b, *name);
		}
	}
}

/*
 * Function and file; not the line, which moves with every edit above it, nor the thread, which may be any of
 * a pool. Nor operation and variable: of a bug that shows on two fields, or is cut into at its read in one run and
 * at its write in the next, all runs are reports of the same. Without symbols the variable has to do.
 */
static char *stable_event(const struct sym_trace *t, struct sched_ref r)
{
	const struct sym_event *e = order_event_at(t, r);
	const struct sym_frame *f = dsp_place(t, e);
	struct strbuf b = { 0 };

	stable_name(&b, f && strcmp(f->function, "?") ? f->function : e->peer == SYM_NONE ? dsp_subject(t, e) : "");
	strbuf_fmt(&b, "|%s", f && f->file ? dsp_basename(f->file) : "");
	return strbuf_take(&b);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef VEC(char *) texts_t;

static void add_text(texts_t *texts, const struct sym_trace *t, struct sched_ref r)
{
	if (order_event_at(t, r))
		vec_push(texts, stable_event(t, r));
}

/*
 * A wait that is not repeated is one bug wherever what was waited for went, and so is a condition variable for two things,
 * whoever was woken in vain.
 */
static bool gather_wait(texts_t *texts, const struct sym_trace *t, const struct dsp_hint *h)
{
	const struct dsp_step *s = h->nsteps ? &h->step[0] : NULL;
	const struct sym_event *e = s ? order_event_at(t, s->first) : NULL;

	if (e && s->kind == DSP_STEP_RECHECK)
		vec_push(texts, stable_event(t, s->first));
	else if (e && s->kind == DSP_STEP_WAKE_ALL)
		vec_push(texts, xstrdup(dsp_subject(t, e)));
	else
		return false;
	vec_push(texts, xstrdup(h->pattern));
	return true;
}

/* The root cause and what it cuts in two; without a cause the place of the failure has to do. */
static void gather_texts(texts_t *texts, const struct sym_trace *t, const struct dsp *d)
{
	const struct dsp_side *failing = &d->side[DSP_FAILING];

	if (gather_wait(texts, t, &d->hint))
		return;
	for (size_t i = 0; i < d->npairs; i++) {
		add_text(texts, t, d->pairs[i].before);
		add_text(texts, t, d->pairs[i].after);
	}
	for (size_t i = 0; i < d->nregions; i++) {
		add_text(texts, t, (struct sched_ref){ d->regions[i].thread, d->regions[i].first });
		add_text(texts, t, d->regions[i].end);
		add_text(texts, t, d->regions[i].intruder);
	}
	for (size_t i = 0; !d->npairs && i < failing->nevents; i++)
		add_text(texts, t, failing->events[i].ref);
}

void dsp_fingerprint(const struct sym_trace *t, struct dsp *d)
{
	texts_t texts = { 0 };
	uint64_t h = 0xcbf29ce484222325u;

	gather_texts(&texts, t, d);
	if (texts.n)
		qsort(texts.v, texts.n, sizeof *texts.v, by_text);
	for (size_t i = 0; i < texts.n; i++)
		if (!i || strcmp(texts.v[i], texts.v[i - 1]))
			h = hash_str(hash_str(h, texts.v[i]), "\n");
	for (size_t i = 0; i < texts.n; i++)
		free(texts.v[i]);
	vec_free(&texts);
	snprintf(d->fingerprint, sizeof d->fingerprint, "%012" PRIx64, h >> 16);
}
