/*
 * What a pointer points to: "fifo->count".
 *
 * Memory without a name of its own (the heap, somebody else's stack) is named
 * by the way the program reached it: a variable that is live at the access and
 * whose value, read as its type says, leads to the address. Variables of the
 * accessing frame come first, then globals, then its callers (the access may be
 * in memcpy); shorter ways come before longer ones, and everything before the
 * variables of library code, whose `__x` and `mutex` say nothing to the reader.
 * The search is breadth-first and bounded.
 */
#include "analyzer/image/internal.h"
#include "common/runtime_names.h"

#include <string.h>

enum {
	MAX_LEVELS = 3,     /* a->b->c->d */
	MAX_POINTERS = 2048,
	MAX_ELEMENTS = 16,  /* of an array of pointers that is looked through */
	MAX_CALLERS = 3,
	MAX_FRAMES = 16,
};

/* Costs: the cheapest way to an address is taken. */
enum {
	COST_GLOBAL = 4,
	COST_THIS = 6, /* every method has one: a global that leads there says more, a caller's variable does not */
	COST_FRAME = 8,
	COST_INEXACT = 16,
	COST_LEVEL = 64,
	COST_LIBRARY = 200,
	COST_BYTES = 256, /* a char * leads anywhere */
};

struct pointer {
	struct img_module *m;
	uint64_t value;
	Dwarf_Die pointee;
	bool reference;
	int cost;
	char *text;
};

struct hunt {
	struct img_set *set;
	uint64_t addr;
	size_t size;
	const struct img_context *ctx;
	VEC(struct pointer) pointers;
	int budget; /* of memory reads */
	int best;   /* cost of what is in out; INT_MAX: nothing */
	struct img_name *out;
};

/* ---- collecting pointers ------------------------------------------------ */

/* An object at a known place; its text is "queue" or "queue->head". */
struct object {
	struct img_module *m;
	uint64_t addr;
	const char *text;
	const char *dot; /* "." or "->" */
	int cost;
};

static void add_pointer(struct hunt *h, struct img_module *m, uint64_t value, Dwarf_Die *pointee,
			bool reference, int cost, const char *text)
{
	if (value < IMG_PAGE || h->pointers.n >= MAX_POINTERS)
		return;
	struct pointer p = { m, value, *pointee, reference, cost, xstrdup(text) };

	/* Declared here, defined in another file of the program. */
	img_type_complete(m, &p.pointee);
	vec_push(&h->pointers, p);
}

static void collect(struct hunt *h, const struct object *o, Dwarf_Die *type, int depth);

/* silent: the member is the library's own, and what it holds is known by the whole. */
static void collect_member(struct hunt *h, const struct object *o, Dwarf_Die *die, bool silent, int depth)
{
	struct object inner = *o;
	uint64_t offset = 0;
	Dwarf_Attribute attr;
	Dwarf_Die type;
	const char *name = img_die_name(die);
	int tag = dwarf_tag(die);

	if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
	    dwarf_hasattr(die, DW_AT_external) || dwarf_hasattr(die, DW_AT_bit_size) ||
	    !img_die_type(die, &type))
		return;
	if (dwarf_attr(die, DW_AT_data_member_location, &attr) && dwarf_formudata(&attr, &offset))
		return;
	inner.addr = o->addr + offset;
	if (tag == DW_TAG_inheritance || !name || silent || img_member_hidden(die)) {
		collect(h, &inner, &type, depth + 1);
		return;
	}
	char *text = xasprintf("%s%s%s", o->text, o->dot, name);

	inner.text = text;
	inner.dot = ".";
	collect(h, &inner, &type, depth + 1);
	free(text);
}

static void collect_elements(struct hunt *h, const struct object *o, Dwarf_Die *array, int depth)
{
	uint64_t count[1], size;
	Dwarf_Die element;

	/* Only one dimension: tables of tables of pointers are not how people share. */
	if (img_array_dimensions(array, count, 1) != 1 || !img_die_type(array, &element) ||
	    !img_type_size(&element, &size))
		return;
	for (uint64_t i = 0; i < count[0] && i < MAX_ELEMENTS; i++) {
		char *text = xasprintf("%s[%llu]", o->text, (unsigned long long)i);
		struct object inner = { o->m, o->addr + i * size, text, ".", o->cost };

		collect(h, &inner, &element, depth + 1);
		free(text);
	}
}

static bool may_hold_pointer(Dwarf_Die *type)
{
	uint64_t size;

	return img_type_size(type, &size) && size >= 8;
}

static void collect(struct hunt *h, const struct object *o, Dwarf_Die *type, int depth)
{
	Dwarf_Die die, child;
	uint64_t value;
	bool reference, silent;

	if (depth > 6 || h->budget-- <= 0 || !img_type_strip(type, &die) || !may_hold_pointer(&die))
		return;
	switch (dwarf_tag(&die)) {
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		if (img_type_pointee(&die, &child, &reference) &&
		    img_memory_read(h->set, h->ctx->mem, o->addr, &value, 8))
			add_pointer(h, o->m, value, &child, reference, o->cost, o->text);
		return;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		silent = img_rust_wrapper(&die);
		if (dwarf_child(&die, &child))
			return;
		do {
			collect_member(h, o, &child, silent, depth);
		} while (dwarf_siblingof(&child, &child) == 0);
		return;
	case DW_TAG_array_type:
		collect_elements(h, o, &die, depth);
		return;
	}
}

struct local {
	struct hunt *h;
	int cost;
};

static bool is_library_function(struct img_module *m, Dwarf_Die *function)
{
	static const char *const prefix[] = { "_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx",
					      "_ZNK9__gnu_cxx" };
	const char *name = img_linkage_name(function), *file = img_declared_in(function);

	/* __gthread_mutex_lock() is in no namespace. */
	if (file && runtime_header(file))
		return true;
	for (size_t i = 0; name && i < sizeof prefix / sizeof *prefix; i++)
		if (!strncmp(name, prefix[i], strlen(prefix[i])))
			return true;
	return img_is_runtime(m);
}

/* A template of the library's is compiled into the program, but is no caller of the program's own. */
static bool is_library_frame(const struct img_eval *e)
{
	Dwarf_Die function;

	if (!e->function)
		return img_is_runtime(e->m);
	function = e->function->die;
	return is_library_function(e->m, &function);
}

/* An object that has a name of its own is known by that in its methods, too: "pool.free", not "this->free". */
static void collect_this(struct local *l, struct img_eval *e, Dwarf_Die *pointee, uint64_t value, int cost)
{
	struct img_name object = { 0 };
	uint64_t size;
	bool named = img_type_size(pointee, &size) && size &&
		     img_name_fixed(l->h->set, value, size, l->h->ctx, &object) && object.start == value;

	if (named)
		add_pointer(l->h, e->m, value, pointee, true, cost, object.text);
	else
		add_pointer(l->h, e->m, value, pointee, false, cost + COST_THIS, "this");
	free(object.text);
}

static bool collect_local(void *arg, struct img_eval *e, Dwarf_Die *die, Dwarf_Die *function)
{
	struct local *l = arg;
	struct img_location at = img_locate(e, die);
	const char *name = img_die_name(die);
	Dwarf_Die type, bare, pointee;
	uint64_t value = 0;
	bool reference;
	int cost = l->cost;

	if (at.where == IMG_LOST || !name || !img_die_type(die, &type))
		return false;
	/* What the recorder's own wrappers call it means nothing to anybody. */
	if (!strncmp(img_module_name(e->m), "libcsched", 9))
		return false;
	if (is_library_function(e->m, function))
		cost += COST_LIBRARY;
	bool points = img_type_strip(&type, &bare) && img_type_pointee(&bare, &pointee, &reference);

	if (points && !strcmp(name, "this") && img_location_read(e, at, &value, 8)) {
		collect_this(l, e, &pointee, value, cost);
	} else if (at.where == IMG_IN_MEMORY) {
		struct object o = { e->m, at.value, name, ".", cost };

		collect(l->h, &o, &type, 0);
	} else if (points && img_location_read(e, at, &value, 8)) {
		add_pointer(l->h, e->m, value, &pointee, reference, cost, name);
	}
	return false;
}

static void collect_globals(struct hunt *h, struct img_module *m)
{
	if (img_is_runtime(m))
		return;
	img_variables_read(m);
	for (size_t i = 0; i < m->holders.n; i++) {
		struct img_variable *v = &m->holders.v[i];
		const char *name = img_die_name(&v->die);
		struct object o = { m, v->lo + m->bias, name, ".", COST_GLOBAL };
		Dwarf_Die type;

		if (name && img_die_type(&v->die, &type))
			collect(h, &o, &type, 0);
	}
}

/* ---- does it lead there? ------------------------------------------------ */

static char *join(const struct pointer *p, const char *path)
{
	if (p->reference)
		return xasprintf("%s%s", p->text, path);
	if (*path == '.')
		return xasprintf("%s->%s", p->text, path + 1);
	if (!*path)
		return xasprintf("*%s", p->text);
	return xasprintf("(*%s)%s", p->text, path);
}

static bool is_bytes(Dwarf_Die *type)
{
	Dwarf_Die die;
	uint64_t size;

	return img_type_strip(type, &die) && dwarf_tag(&die) == DW_TAG_base_type &&
	       img_type_size(&die, &size) && size == 1;
}

/*
 * When nobody told us of the heap object: glibc's malloc keeps its size in
 * front of it, and the next object's header confirms it.
 */
static uint64_t chunk_size(struct hunt *h, uint64_t p)
{
	uint64_t head, next;

	if (p % 16 || !img_memory_read(h->set, h->ctx->mem, p - 8, &head, 8))
		return 0;
	uint64_t size = head & ~7ull;

	if (size < 32 || size % 16 || size > 1ull << 40)
		return 0;
	if (head & 2) /* a mapping of its own */
		return p % IMG_PAGE == 16 && size % IMG_PAGE == 0 ? size - 16 : 0;
	if (!img_memory_read(h->set, h->ctx->mem, p - 8 + size, &next, 8) || !(next & 1) ||
	    next < 32 || next > 1ull << 40)
		return 0;
	return size - 8;
}

/* How far the object p points to reaches when it is an array of elements of size. */
static uint64_t array_end(struct hunt *h, const struct pointer *p, uint64_t size)
{
	const struct img_heap *heap = h->ctx->heap;
	uint64_t end;

	if (p->reference)
		return 0;
	if (heap)
		end = p->value - heap->base < heap->size ? heap->base + heap->size : 0;
	else
		end = p->value + chunk_size(h, p->value);
	/* Room for two at least; malloc rounds up, so of small elements for more. */
	return end > p->value && end - p->value >= 2 * size + (heap || size > 8 ? 0 : 16) ? end : 0;
}

static void consider(struct hunt *h, struct pointer *p)
{
	uint64_t size, off = h->addr - p->value, index = 0;
	struct strbuf text = { 0 };
	struct img_path path = { .m = p->m, .text = &text };

	/* A library's text pointer: what lies somewhere behind it is not its text. */
	if (p->cost >= COST_LIBRARY && is_bytes(&p->pointee))
		return;
	if (p->value > h->addr || off > 1ull << 40 || !img_type_size(&p->pointee, &size) || !size)
		return;
	bool array = h->addr < array_end(h, p, size);

	if (off >= size && !array)
		return;
	index = off / size;
	strbuf_str(&text, "");
	img_path_follow(&path, &p->pointee, off - index * size, h->size);
	int cost = p->cost + (path.exact ? 0 : COST_INEXACT) +
		   (is_bytes(&p->pointee) ? COST_BYTES : 0) + (index ? 1 : 0);

	if (cost < h->best) {
		bool scalar = path.type && path.type->kind != IMG_STRUCT && !text.n;

		h->best = cost;
		free(h->out->text);
		*h->out = (struct img_name){
			.place = h->ctx->heap ? IMG_HEAP : IMG_NOWHERE, .type = path.type,
			.start = p->value + index * size + path.start,
			.text = array && (index || scalar) ?
					xasprintf("%s[%llu]%s", p->text, (unsigned long long)index,
						  text.s ? text.s : "") :
					join(p, text.s ? text.s : "") };
	}
	strbuf_free(&text);
}

/* p points to an array of pointers: "slot[2]". */
static void expand_array(struct hunt *h, const struct pointer *p, Dwarf_Die *element)
{
	uint64_t end = array_end(h, p, 8);

	for (uint64_t i = 0; i < MAX_ELEMENTS && p->value + i * 8 + 8 <= end; i++) {
		char *text = xasprintf("%s[%llu]", p->text, (unsigned long long)i);
		struct object o = { p->m, p->value + i * 8, text, ".", p->cost + COST_LEVEL };

		collect(h, &o, element, 0);
		free(text);
	}
}

/* The pointers inside what the pointers [from, to) point to. */
static void expand(struct hunt *h, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		struct pointer p = h->pointers.v[i];
		struct object o = { p.m, p.value, p.text, p.reference ? "." : "->",
				    p.cost + COST_LEVEL };
		Dwarf_Die bare;

		if (!img_type_strip(&p.pointee, &bare))
			continue;
		if (dwarf_tag(&bare) == DW_TAG_pointer_type)
			expand_array(h, &p, &bare);
		else if (dwarf_tag(&bare) != DW_TAG_array_type)
			collect(h, &o, &p.pointee, 0);
	}
}

static void consider_from(struct hunt *h, size_t from)
{
	for (size_t i = from; i < h->pointers.n; i++)
		consider(h, &h->pointers.v[i]);
}

/*
 * The first level: variables of the accessing frame, globals beside it, and
 * variables of a few callers (not counting frames of the run-time libraries).
 * Ends as soon as nothing later could be cheaper than what was found.
 */
static void first_level(struct hunt *h)
{
	struct img_regs r = *h->ctx->regs;
	struct img_module *last = NULL;
	bool is_return = false, signal;

	for (int own = 0, all = 0; own <= MAX_CALLERS && all < MAX_FRAMES; all++) {
		struct img_eval e;
		struct local l = { h, own * COST_FRAME };
		size_t from = h->pointers.n;

		if (h->best <= l.cost)
			return;
		if (img_eval_begin(h->set, &r, h->ctx->mem, is_return, &e)) {
			img_each_local(&e, collect_local, &l);
			consider_from(h, from);
			from = h->pointers.n;
			if (h->best > COST_GLOBAL && e.m != last)
				collect_globals(h, e.m);
			consider_from(h, from);
			own += !is_library_frame(&e);
			last = e.m;
		}
		if (!img_unwind_step(h->set, &r, h->ctx->mem, is_return, &signal))
			return;
		is_return = !signal;
	}
}

bool img_name_by_pointer(struct img_set *set, uint64_t addr, size_t size,
			 const struct img_context *ctx, struct img_name *out)
{
	struct hunt h = { .set = set, .addr = addr, .size = size, .ctx = ctx, .budget = 8192,
			  .best = __INT_MAX__, .out = out };
	size_t from = 0;

	out->text = NULL;
	first_level(&h);
	/* What leads there only through library variables or bytes is the last resort. */
	for (int level = 1; level < MAX_LEVELS && h.best >= COST_LIBRARY; level++) {
		size_t to = h.pointers.n;

		expand(&h, from, to);
		consider_from(&h, to);
		from = to;
	}
	for (size_t i = 0; i < h.pointers.n; i++)
		free(h.pointers.v[i].text);
	vec_free(&h.pointers);
	out->borrowed = h.best >= COST_LIBRARY;
	return h.best != __INT_MAX__;
}
