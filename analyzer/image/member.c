/*
 * From a type and an offset to what lies there: ".slot[2].next".
 *
 * The walk is bounded by a budget, because a hostile file can nest unions and
 * make types contain themselves.
 */
#include "analyzer/image/internal.h"
#include "common/runtime_names.h"

#include <string.h>

/* A lock is one thing to its user, whatever the C library puts into it. */
static const char *const whole_types[] = {
	"pthread_mutex_t", "pthread_cond_t", "pthread_rwlock_t", "pthread_barrier_t",
	"pthread_spinlock_t", "pthread_once_t", "sem_t", "mtx_t", "cnd_t", "once_flag",
};

/* Layers of the C++ library between an object and what it holds. */
static const char *const silent_members[] = {
	"_M_i", "_M_base", "_M_b", "_M_impl", "_M_mutex", "_M_cond", "_M_t", "_M_head_impl",
};

/*
 * Types of Rust's library whose members are its own business: what their user declared lies in them, or is the whole.
 * The text before the type's arguments.
 */
static const char *const rust_wrappers[] = {
	"Mutex", "RwLock", "Condvar", "Once", "OnceLock", "OnceState", "LazyLock", "ReentrantLock", "Barrier", "Flag",
	"UnsafeCell", "Cell", "RefCell", "SyncUnsafeCell", "Atomic", "AtomicBool", "AtomicI8", "AtomicU8", "AtomicI16",
	"AtomicU16", "AtomicI32", "AtomicU32", "AtomicI64", "AtomicU64", "AtomicIsize", "AtomicUsize", "AtomicPtr",
	"Arc", "Rc", "ArcInner", "RcInner", "Box", "Unique", "NonNull", "Pin", "ManuallyDrop", "MaybeUninit", "CachePadded",
};

static bool listed(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; name && i < n; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}
#define LISTED(name, list) listed(name, list, sizeof(list) / sizeof *(list))

static bool is_whole(Dwarf_Die *type)
{
	Dwarf_Die die = *type;

	for (int i = 0; i < 8; i++) {
		if (dwarf_tag(&die) == DW_TAG_typedef && LISTED(img_die_name(&die), whole_types))
			return true;
		Dwarf_Die next;

		int tag = dwarf_tag(&die);

		/* An array of locks is not one. */
		if (!img_die_type(&die, &next) || tag == DW_TAG_pointer_type ||
		    tag == DW_TAG_array_type)
			return false;
		die = next;
	}
	return false;
}

struct walk {
	struct img_path *p;
	int budget;
	uint64_t base; /* offset of the current thing from the beginning */
};

static void follow(struct walk *w, Dwarf_Die *type, uint64_t off, uint64_t size, int depth);

static void say(struct walk *w, const char *s)
{
	if (w->p->text)
		strbuf_str(w->p->text, s);
}

static void finish(struct walk *w, const struct img_type *type, uint64_t off, uint64_t size)
{
	w->p->type = type;
	w->p->start = w->base;
	w->p->exact = type && off == 0 && size == type->size;
}

/* ---- members ----------------------------------------------------------- */

struct member {
	Dwarf_Die type;
	const char *name;
	bool hidden;        /* nobody but a library knows it */
	uint64_t lo, hi;    /* bytes */
	unsigned bit_offset; /* from byte lo */
	unsigned bit_size;   /* 0: not a bit-field */
	bool silent;         /* its user does not know of it */
};

static bool number(Dwarf_Die *die, unsigned at, uint64_t *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	if (!dwarf_attr(die, at, &attr) || dwarf_formudata(&attr, &v))
		return false;
	*out = v;
	return true;
}

static bool location(Dwarf_Die *die, uint64_t *out)
{
	Dwarf_Attribute attr;
	Dwarf_Op *op;
	size_t n;

	*out = 0;
	if (!dwarf_attr(die, DW_AT_data_member_location, &attr))
		return true; /* unions, and bit-fields of DWARF 5 */
	if (dwarf_formudata(&attr, out) == 0)
		return true;
	if (dwarf_getlocation(&attr, &op, &n) || n != 1 || op->atom != DW_OP_plus_uconst)
		return false; /* a virtual base: its place is known only at run time */
	*out = op->number;
	return true;
}

static void set_bits(struct member *m, uint64_t from, uint64_t bits)
{
	m->lo = from / 8;
	m->bit_offset = (unsigned)(from % 8);
	m->bit_size = (unsigned)bits;
	m->hi = (from + bits + 7) / 8;
}

/*
 * What a class of the library hides under a plain name, as std::queue its container `c'. Names that begin with _ say
 * more: symtrace knows which of them are elements and which a size.
 */
bool img_member_hidden(Dwarf_Die *die)
{
	const char *name = img_die_name(die), *file;
	uint64_t access;

	if (!name || *name == '_' || !number(die, DW_AT_accessibility, &access) || access == DW_ACCESS_public)
		return false;
	file = img_declared_in(die);
	return file && runtime_header(file);
}

static bool read_member(Dwarf_Die *die, struct member *m)
{
	int tag = dwarf_tag(die);
	uint64_t size, bits, v;

	if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
	    dwarf_hasattr(die, DW_AT_external) || dwarf_hasattr(die, DW_AT_declaration) ||
	    !img_die_type(die, &m->type) || !location(die, &m->lo))
		return false;
	if (!img_type_size(&m->type, &size))
		size = 0; /* a flexible array reaches as far as its object does */
	m->name = tag == DW_TAG_member ? img_die_name(die) : NULL;
	m->hidden = img_member_hidden(die);
	m->bit_offset = m->bit_size = 0;
	m->silent = false;
	m->hi = size ? m->lo + size : UINT64_MAX;
	if (m->hi < m->lo)
		return false;
	if (!number(die, DW_AT_bit_size, &bits))
		return true;
	if (!bits || bits > 64)
		return false;
	if (number(die, DW_AT_data_bit_offset, &v))
		set_bits(m, v, bits);
	else if (number(die, DW_AT_bit_offset, &v) && v + bits <= size * 8)
		set_bits(m, m->lo * 8 + size * 8 - v - bits, bits); /* DWARF 3: from the top */
	else
		set_bits(m, m->lo * 8, bits);
	return true;
}

static bool overlaps(const struct member *m, uint64_t off, uint64_t size)
{
	return m->lo < off + size && off < m->hi;
}

bool img_rust_wrapper(Dwarf_Die *type)
{
	const char *name = img_die_name(type);
	size_t n = name ? strcspn(name, "<") : 0;
	Dwarf_Die unit;

	if (!n || !dwarf_diecu(type, &unit, NULL, NULL) || dwarf_srclang(&unit) != DW_LANG_Rust)
		return false;
	for (size_t i = 0; i < sizeof rust_wrappers / sizeof *rust_wrappers; i++)
		if (strlen(rust_wrappers[i]) == n && !strncmp(name, rust_wrappers[i], n))
			return true;
	return false;
}

static void into_member(struct walk *w, struct member *m, uint64_t off, uint64_t size, int depth)
{
	if (m->name && !m->silent && !m->hidden && !LISTED(m->name, silent_members)) {
		say(w, ".");
		say(w, m->name);
	}
	w->base += m->lo;
	off = off > m->lo ? off - m->lo : 0;
	if (m->bit_size)
		finish(w, img_type_of_bits(w->p->m, &m->type, m->bit_offset, m->bit_size), off,
		       size);
	else
		follow(w, &m->type, off, size, depth + 1);
}

/* A class may put its first members into the padding its base class ends in: they are its own. */
static void clip_base(struct walk *w, Dwarf_Die *type, struct member *base)
{
	Dwarf_Die die;
	struct member m;

	if (dwarf_child(type, &die))
		return;
	do {
		if (w->budget-- <= 0)
			return;
		if (dwarf_tag(&die) == DW_TAG_member && read_member(&die, &m) && m.lo > base->lo &&
		    m.lo < base->hi)
			base->hi = m.lo;
	} while (dwarf_siblingof(&die, &die) == 0);
}

/* A member of the type at `die`; false: none, or not touched. */
static bool touched_member(struct walk *w, Dwarf_Die *type, Dwarf_Die *die, uint64_t off,
			   uint64_t size, struct member *m)
{
	if (!read_member(die, m) || !overlaps(m, off, size))
		return false;
	if (dwarf_tag(die) != DW_TAG_inheritance || m->hi - m->lo == 1)
		return true;
	clip_base(w, type, m);
	return overlaps(m, off, size);
}

/* Names of the members that are touched, those of base classes among them; how many. */
static int list_members(struct walk *w, Dwarf_Die *type, uint64_t off, uint64_t size, int n,
			int depth)
{
	Dwarf_Die die, base;
	struct member m;

	if (depth > IMG_MAX_DEPTH || dwarf_child(type, &die))
		return n;
	do {
		if (w->budget-- <= 0 || n > 4)
			return n;
		if (!touched_member(w, type, &die, off, size, &m))
			continue;
		if (!m.name) {
			uint64_t from = off > m.lo ? off - m.lo : 0, to = off + size < m.hi ? off + size : m.hi;

			if (img_type_strip(&m.type, &base) && to - m.lo > from)
				n = list_members(w, &base, from, to - m.lo - from, n, depth + 1);
			continue;
		}
		if (++n > 4) {
			say(w, ",...");
			return n;
		}
		say(w, n == 1 ? ".{" : ",");
		say(w, m.name);
	} while (dwarf_siblingof(&die, &die) == 0);
	return n;
}

/* Several members at once, as by memcpy or a widened load: ".{head,tail}". */
static void several(struct walk *w, Dwarf_Die *type, uint64_t off, uint64_t size)
{
	if (list_members(w, type, off, size, 0, 0))
		say(w, "}");
	w->base += off;
	finish(w, NULL, 0, size);
}

static void into_struct(struct walk *w, Dwarf_Die *type, const struct img_type *t, uint64_t off,
			uint64_t size, int depth)
{
	Dwarf_Die die;
	struct member m, hit;
	int hits = 0;
	bool inside = false;

	finish(w, t, off, size);
	if (dwarf_child(type, &die))
		return;
	do {
		if (w->budget-- <= 0)
			return;
		if (!touched_member(w, type, &die, off, size, &m))
			continue;
		/* An empty base class shares its byte with the first member. */
		if (hits && !m.name && dwarf_tag(&die) == DW_TAG_inheritance && m.hi - m.lo == 1)
			continue;
		if (hits && !hit.name && hit.hi - hit.lo == 1 && hit.lo == m.lo)
			hits--;
		hits++;
		hit = m;
		inside = m.lo <= off && off + size <= m.hi;
	} while (dwarf_siblingof(&die, &die) == 0);
	bool wrapper = hits && img_rust_wrapper(type);

	hit.silent = wrapper;
	if (hits == 1 && (inside || !(off == 0 && size == t->size)))
		into_member(w, &hit, off, size, depth);
	else if (hits > 1 && wrapper)
		finish(w, t, off, size);
	else if (hits > 1 && !(off == 0 && size >= t->size))
		several(w, type, off, size);
	else if (!hits && off)
		say(w, ".(padding)");
}

static void into_union(struct walk *w, Dwarf_Die *type, const struct img_type *t, uint64_t off,
		       uint64_t size, int depth)
{
	Dwarf_Die die;
	struct member m, best;
	bool any = false, exact = false;

	finish(w, t, off, size);
	if (dwarf_child(type, &die))
		return;
	do {
		if (w->budget-- <= 0)
			return;
		if (!read_member(&die, &m) || off < m.lo || off + size > m.hi)
			continue;
		struct img_path trial = { .m = w->p->m };
		struct walk tw = { &trial, w->budget, 0 };

		into_member(&tw, &m, off, size, depth);
		w->budget = tw.budget;
		if (!any || trial.exact)
			best = m;
		any = true;
		exact = trial.exact;
	} while (!exact && dwarf_siblingof(&die, &die) == 0);
	if (any)
		into_member(w, &best, off, size, depth);
}

/* ---- arrays ------------------------------------------------------------ */

static void into_array(struct walk *w, Dwarf_Die *type, const struct img_type *t, uint64_t off,
		       uint64_t size, int depth)
{
	Dwarf_Die element;
	uint64_t count[8], each, stride;
	size_t n = img_array_dimensions(type, count, 8);

	finish(w, t, off, size);
	if (!n || !img_die_type(type, &element) || !img_type_size(&element, &each) || !each ||
	    (off == 0 && size == t->size && size != each))
		return;
	if (number(type, DW_AT_byte_stride, &stride) && stride >= each && stride < 1u << 31)
		each = stride;
	uint64_t index = off / each, last = (off + (size ? size - 1 : 0)) / each, rows = 1;

	for (size_t i = 1; i < n; i++)
		if (!count[i] || __builtin_mul_overflow(rows, count[i], &rows))
			return;
	w->base += index * each;
	for (size_t i = 0; i < n; i++) {
		uint64_t from = index / rows, to = last / rows;

		if (w->p->text && (i + 1 < n || from == to))
			strbuf_fmt(w->p->text, "[%llu]", (unsigned long long)from);
		else if (w->p->text)
			strbuf_fmt(w->p->text, "[%llu..%llu]", (unsigned long long)from,
				   (unsigned long long)to);
		index -= from * rows;
		last -= from * rows;
		rows /= i + 1 < n ? count[i + 1] : 1;
		if (i + 1 == n && from != to) {
			finish(w, NULL, 0, size);
			return;
		}
	}
	follow(w, &element, off % each, size, depth + 1);
}

static void follow(struct walk *w, Dwarf_Die *type, uint64_t off, uint64_t size, int depth)
{
	const struct img_type *t = img_type_of(w->p->m, type);
	Dwarf_Die die;

	finish(w, t, off, size);
	if (w->budget-- <= 0 || depth > IMG_MAX_DEPTH || is_whole(type) ||
	    !img_type_strip(type, &die))
		return;
	switch (dwarf_tag(&die)) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		into_struct(w, &die, t, off, size, depth);
		return;
	case DW_TAG_union_type:
		into_union(w, &die, t, off, size, depth);
		return;
	case DW_TAG_array_type:
		into_array(w, &die, t, off, size, depth);
		return;
	default:
		if (off && w->p->text)
			strbuf_fmt(w->p->text, "+%llu", (unsigned long long)off);
	}
}

void img_path_follow(struct img_path *p, Dwarf_Die *type, uint64_t offset, uint64_t size)
{
	struct walk w = { p, 4096, 0 };

	if (offset + size < offset)
		return;
	follow(&w, type, offset, size, 0);
}
