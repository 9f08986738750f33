/* Locations: the shared bytes cut so that each event accesses one whole. */
#include "analyzer/symtrace/extract_internal.h"

#include <string.h>

static bool same_extent(const struct ext_location *a, const struct ext_location *b)
{
	return a->start == b->start && a->size == b->size && a->only_written == b->only_written;
}

static int by_extent(const void *a, const void *b)
{
	const struct ext_location *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->size != y->size ? x->size - y->size : x->only_written - y->only_written;
}

static void sort_extents(struct ext *x)
{
	size_t n = 0;

	if (!x->locations.n)
		return;
	qsort(x->locations.v, x->locations.n, sizeof *x->locations.v, by_extent);
	for (size_t i = 0; i < x->locations.n; i++)
		if (!n || !same_extent(&x->locations.v[n - 1], &x->locations.v[i]))
			x->locations.v[n++] = x->locations.v[i];
	x->locations.n = n;
}

void ext_locations_add(struct ext *x, uint64_t address, unsigned size, bool only_written)
{
	struct ext_location l = { .start = address, .size = (uint8_t)size, .var = SYM_NONE,
				  .only_written = only_written };

	/* Most accesses repeat the last one or its neighbour. */
	for (size_t i = 0; i < 4 && i < x->locations.n; i++)
		if (same_extent(&x->locations.v[x->locations.n - 1 - i], &l))
			return;
	vec_push(&x->locations, l);
	/* Thousands of rounds over the same locations must not pile up. */
	if (x->locations.n > (1u << 16) && (x->locations.n & (x->locations.n - 1)) == 0)
		sort_extents(x);
}

/*
 * Compilers and memset() write several variables at once, which tells nothing of what is one: two
 * counters that are set to zero together would be one location, and who changes the one
 * would be told to have changed the other. Such a write is in as many pieces as it meets locations. (Where only one part
 * is looked at that may be a part of one variable.)
 */
static bool is_about_several(const struct ext *x, size_t i)
{
	const struct ext_location *l = &x->locations.v[i], *end = x->locations.v + x->locations.n;
	const struct ext_location *k = l;
	uint64_t behind = 0; /* the first part */

	if (!l->only_written)
		return false;
	while (k > x->locations.v && (k[-1].start | 7) == (l->start | 7))
		k--;
	for (; k < end && k->start < l->start + l->size; k++) {
		if (k->only_written || k->start < l->start || k->start + k->size > l->start + l->size ||
		    k->size == l->size)
			continue;
		if (behind && k->start >= behind)
			return true;
		if (!behind || k->start + k->size > behind)
			behind = k->start + k->size;
	}
	return false;
}

void ext_locations_done(struct ext *x)
{
	VEC(struct ext_location) joined = { 0 };

	sort_extents(x);
	for (size_t i = 0; i < x->locations.n; i++) {
		struct ext_location l = x->locations.v[i];
		struct ext_location *last = joined.n ? &joined.v[joined.n - 1] : NULL;

		if (is_about_several(x, i))
			continue;
		if (last && l.start < last->start + last->size) {
			uint64_t end = l.start + l.size;
			if (end > last->start + last->size)
				last->size = (uint8_t)(end - last->start);
		} else {
			vec_push(&joined, l);
		}
	}
	vec_free(&x->locations);
	x->locations.v = joined.v;
	x->locations.n = joined.n;
	x->locations.cap = joined.cap;
}

/*
 * Whether a function's static variable is there already: who comes first makes it, the others wait. How
 * many threads wait for an atomic variable, a semaphore, a latch or a barrier, so that nobody is woken when nobody
 * waits. That is the compiler's and the C++ library's, and right in every order; as something that threads
 * share it would be the first difference between any two orders, and never the cause.
 */
static bool is_librarys_own(const char *symbol)
{
	static const char *const names[] = { "guard variable for ", "std::__detail::__waiter_pool_base::_S_for(" };

	for (size_t i = 0; symbol && i < sizeof names / sizeof *names; i++)
		if (!strncmp(symbol, names[i], strlen(names[i])))
			return true;
	return false;
}

void ext_locations_drop_librarys(struct ext *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->locations.n; i++) {
		uint64_t offset;

		if (!is_librarys_own(img_symbol(x->images, x->locations.v[i].start, &offset)))
			x->locations.v[n++] = x->locations.v[i];
	}
	x->locations.n = n;
}

struct ext_location *ext_location_at(struct ext *x, uint64_t address)
{
	size_t lo = 0, hi = x->locations.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		struct ext_location *l = &x->locations.v[mid];

		if (address < l->start)
			hi = mid;
		else if (address >= l->start + l->size)
			lo = mid + 1;
		else
			return l;
	}
	return NULL;
}

#define MAX_RENAMED 8        /* attempts to find a better name for a location */
#define MAX_STACK (8u << 20) /* bytes; the usual limit */
#define MAX_TLS (1u << 16)   /* bytes: thread-local variables lie right below what fs points to */

/* Registers of the thread whose stack or variables these are, as far as can be told. */
static bool stack_owner(void *arg, uint64_t address, struct img_regs *out)
{
	struct ext *x = arg;
	uint64_t nearest = MAX_STACK;
	struct img_regs regs;

	for (uint32_t i = 0; i < x->threads.n; i++) {
		if (!mach_img_regs(x->run, i, &regs))
			continue;
		uint64_t above = address - regs.r[IMG_RSP];

		if (regs.fs_base - address < MAX_TLS) {
			*out = regs;
			return true;
		}

		if (above < nearest) {
			nearest = above;
			*out = regs;
		}
	}
	return nearest < MAX_STACK;
}

size_t ext_location_from(const struct ext *x, uint64_t address)
{
	size_t lo = 0, hi = x->locations.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (x->locations.v[mid].start < address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* "completed.0": a static that only the linker's table knows, of code that was not compiled with the program's. */
static bool is_compilers(const struct img_name *n)
{
	const char *dot = n->type ? NULL : strrchr(n->text, '.');

	return dot && dot[1] && !dot[1 + strspn(dot + 1, "0123456789")];
}

static enum ext_quality quality_of(const struct img_name *n)
{
	if (is_compilers(n) || !strncmp(n->text, "0x", 2))
		return EXT_NAME_ADDRESS;
	if (*n->text == '*')
		return EXT_NAME_TARGET;
	/* What begins like that is the implementation's: a local of a macro, as in stdatomic.h. */
	if (n->borrowed || !strncmp(n->text, "__", 2))
		return EXT_NAME_BORROWED;
	/* Who points to an object says more than where it was allocated. */
	return strncmp(n->text, "this->", 6) && strncmp(n->text, "heap#", 5) ? EXT_NAME_GOOD :
									       EXT_NAME_MEMBER;
}

/* Data of a library: neither an offset into it nor the modules of Rust's own say anything to its user. */
static char *of_library(char *text)
{
	static const char *const inner[] = { "std::sys::", "core::", "alloc::" };
	char *so = strstr(text, ".so");

	/* The object's own offset comes before its library: "heap#5+0x84@libgomp.so.1+0xd138". */
	while (so && !strchr(".+", so[3]))
		so = strstr(so + 3, ".so");
	char *plus = so ? strstr(so, "+0x") : NULL;

	if (plus)
		*plus = '\0';
	for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
		if (strncmp(text, inner[i], strlen(inner[i])))
			continue;
		free(text);
		return xstrdup(EXT_RUST_LIBRARY);
	}
	return text;
}

char *ext_name(struct ext *x, uint32_t thread, uint64_t address, unsigned size, char **type,
	       struct ext_named *named)
{
	struct img_regs regs;
	struct img_memory mem = mach_img_memory(x->run);
	struct img_context ctx = { .mem = &mem, .owner = stack_owner, .owner_arg = x };
	struct img_name name;
	struct img_heap heap;

	if (mach_img_regs(x->run, thread, &regs))
		ctx.regs = &regs;
	if (ext_heap_find(x, address, &heap))
		ctx.heap = &heap;
	img_name_of(x->images, address, size, &ctx, &name);
	named->quality = (uint8_t)quality_of(&name);
	if (name.type && name.type->kind == IMG_ENUM && name.type->name && !sym_enum_names(x->trace, name.type->name)) {
		char *names = img_enumerators(name.type);

		if (names)
			sym_add_enum(x->trace, name.type->name, names);
	}
	char *spoken = of_library(ext_spoken(name.text));
	const char *known = name.type ? name.type->name : ext_spoken_type(spoken);

	if (type)
		*type = known ? xstrdup(known) : NULL;
	return spoken;
}

void ext_name_better(struct ext *x, uint32_t thread, uint64_t address, unsigned size,
		     struct ext_naming *n)
{
	struct ext_named found = { 0 };
	char *name, *type;

	if (n->named->tries == MAX_RENAMED || n->named->quality == EXT_NAME_GOOD)
		return;
	n->named->tries++;
	name = ext_name(x, thread, address, size, &type, &found);
	/* Where it was allocated says less than who points to it. */
	bool by_place = !strncmp(name, "heap#", 5) && n->named->quality > EXT_NAME_BORROWED;
	if (found.quality <= n->named->quality || by_place) {
		free(name);
		free(type);
		return;
	}
	n->named->quality = found.quality;
	if (n->below)
		*n->below = 0;
	free(*n->name);
	*n->name = name;
	if (n->type) {
		free(*n->type);
		*n->type = type;
	} else {
		free(type);
	}
}

/* Its name, if that is what the location is: a word of the C library, which has none to show. */
static char *cancellation(struct ext *x, struct ext_location *l)
{
	uint32_t target = share_cancelled(x->share, l->start);

	if (target == SYM_NONE || target >= x->threads.n)
		return NULL;
	l->named.quality = EXT_NAME_GOOD;
	return xasprintf("cancellation of %s", x->trace->threads[target].id);
}

/*
 * On a stack a location may be wider than the variable: before that lived there, something else
 * did. When the whole has no name, what is accessed of it may have one.
 */
static void name_part(struct ext *x, struct ext_location *l, const struct mach_access *a,
		      struct ext_naming *n)
{
	uint64_t from = a->address > l->start ? a->address : l->start;
	uint64_t end = l->start + l->size;

	if (a->address + a->size < end)
		end = a->address + a->size;
	if (l->named.quality != EXT_NAME_ADDRESS || from >= end || end - from >= l->size)
		return;
	ext_name_better(x, a->thread, from, (unsigned)(end - from), n);
	if (l->named.quality != EXT_NAME_ADDRESS && n->below)
		*n->below = (uint8_t)(8 * (from - l->start));
}

/*
 * What a stack held before is not what is shared there: when the first other thread comes, the
 * variable it comes for lives.
 */
static void name_foreign(struct ext *x, struct ext_location *l, const struct mach_access *a,
			 struct ext_naming *n)
{
	struct ext_named first = l->named;
	struct img_regs owner;
	struct img_heap heap;
	char *name = *n->name, *type = *n->type;
	uint8_t below = *n->below;

	l->named.foreign = true;
	if (ext_heap_find(x, l->start, &heap) || !stack_owner(x, l->start, &owner))
		return;
	*n->name = ext_name(x, a->thread, l->start, l->size, n->type, &l->named);
	*n->below = 0;
	l->named.tries = 0;
	name_part(x, l, a, n);
	if (l->named.quality == EXT_NAME_GOOD || l->named.quality > first.quality) {
		free(name);
		free(type);
		return;
	}
	free(*n->name);
	free(*n->type);
	*n->name = name;
	*n->type = type;
	*n->below = below;
	l->named.quality = first.quality;
}

uint32_t ext_location_var(struct ext *x, struct ext_location *l, const struct mach_access *a,
			  uint64_t before)
{
	if (l->var != SYM_NONE) {
		struct sym_var *v = &x->trace->vars[l->var];
		struct ext_naming n = { &v->name, &v->type, &l->named, &v->below };

		if (!l->named.foreign && a->thread != l->named.by)
			name_foreign(x, l, a, &n);
		ext_name_better(x, a->thread, l->start, l->size, &n);
		name_part(x, l, a, &n);
		return l->var;
	}
	struct sym_var v = { .address = l->start, .width = (uint8_t)(l->size * 8), .has_init = true };

	l->named.by = a->thread;
	v.name = cancellation(x, l);
	if (!v.name)
		v.name = ext_name(x, a->thread, l->start, l->size, &v.type, &l->named);
	name_part(x, l, a, &(struct ext_naming){ &v.name, &v.type, &l->named, &v.below });
	v.init = expr_const(x->trace->pool, v.width, before);
	l->var = sym_add_var(x->trace, &v);
	free(v.name);
	free(v.type);
	return l->var;
}
