/*
 * Which code is libc's own synchronisation. Its plain accesses race by design
 * (pthread_mutex_trylock looks before it tries, pthread_join reads a thread id
 * that the kernel clears, a condition variable spins on its group's signals, malloc
 * counts its arenas), and every program runs it: there, all recordings with threads
 * note order and value.
 *
 * Ranges come from the dynamic symbols. Functions without one (start_thread, the
 * slow paths) lie behind one that has: a range goes on up to the next symbol.
 * Those of malloc's arenas lie before one: that range begins where the function
 * before it ends. malloc's variables are known by the instructions that use them.
 */
#include "preload/translate/build.h"
#include "preload/translate/hooks.h"

#include <elf.h>
#include <link.h>

#define RANGES_MAX 512
#define RANGE_LONGEST 16384u /* malloc's is the longest, 0x2900 bytes in glibc 2.36 */

enum wanted {
	NOTHING,
	ALL,
	/* Spinning would leave 10 bytes for each turn, and the branch tells as much. */
	STORES,
	/* The lock word alone, at offset 0: owner, count and kind are the holder's or constant. */
	WORD,
	/* malloc's own variables: how many arenas, which are free, where the next heap goes.
	 * Arenas and chunks are their owner's, or behind a lock. */
	GLOBALS,
	GLOBAL_STORES,
	/* The thresholds: free raises them without a lock, sysmalloc and _int_free compare with them. */
	THRESHOLDS,
};

static const struct {
	const char *prefix;
	enum wanted wanted;
} families[] = {
	/* The first that fits counts. What every lock passes is left alone. */
	{ "pthread_getspecific", NOTHING },   { "__pthread_getspecific", NOTHING },
	{ "pthread_setspecific", NOTHING },   { "__pthread_setspecific", NOTHING },
	{ "pthread_self", NOTHING },          { "pthread_equal", NOTHING },
	{ "pthread_mutex_trylock", WORD },    { "__pthread_mutex_trylock", WORD },
	{ "pthread_mutex_", NOTHING },        { "__pthread_mutex_", NOTHING },
	{ "pthread_spin_", STORES },
	{ "pthread_", ALL },                  { "__pthread_", ALL },
	{ "sem_", ALL },                      { "thrd_", ALL },
	{ "mtx_", ALL },                      { "cnd_", ALL },
	{ "call_once", ALL },                 { "__lll_lock_", ALL },
	/* _int_malloc and _int_free, behind it, load what hardly ever changes all the time. */
	{ "__default_morecore", GLOBAL_STORES },
	{ "__libc_free", THRESHOLDS },
};

static const struct {
	const char *name;
	enum wanted wanted;
} before[] = {
	{ "__default_morecore", GLOBALS },
};

struct range {
	uint64_t start, end;
	enum wanted wanted;
};

static struct range ranges[RANGES_MAX] RAW_LARGE;
static unsigned nranges;
static bool ready;

#define THRESHOLDS_MAX 8
static uint64_t thresholds[THRESHOLDS_MAX]; /* the variables that free itself stores to */
static unsigned nthresholds;

static bool starts_with(const char *s, const char *prefix)
{
	while (*prefix && *s == *prefix)
		s++, prefix++;
	return !*prefix;
}

static bool same(const char *a, const char *b)
{
	return starts_with(a, b) && starts_with(b, a);
}

static enum wanted family_of(const char *name)
{
	for (unsigned i = 0; i < sizeof families / sizeof *families; i++)
		if (starts_with(name, families[i].prefix))
			return families[i].wanted;
	return NOTHING;
}

/* ---- the symbols of a library ---- */

struct symbols {
	uint64_t bias;
	const Elf64_Sym *sym;
	const char *names;
	const uint32_t *hash; /* DT_GNU_HASH */
	const char *soname;
	uint32_t count;
};

/* Every symbol that can be looked up is in a chain of the hash table. */
static uint32_t count_symbols(const uint32_t *h)
{
	uint32_t nbuckets = h[0], first = h[1], last = 0;
	const uint32_t *buckets = h + 4 + 2 * h[2], *chain = buckets + nbuckets;

	for (uint32_t i = 0; i < nbuckets; i++)
		if (buckets[i] > last)
			last = buckets[i];
	if (last < first)
		return 0;
	while (!(chain[last - first] & 1))
		last++;
	return last + 1;
}

static bool symbols_of(const struct link_map *m, struct symbols *s)
{
	uint64_t soname = 0;

	*s = (struct symbols){ .bias = m->l_addr };
	for (const Elf64_Dyn *d = m->l_ld; d && d->d_tag; d++) {
		/* ld.so may or may not have added the bias in place. */
		uint64_t p = d->d_un.d_ptr < s->bias ? d->d_un.d_ptr + s->bias : d->d_un.d_ptr;

		switch (d->d_tag) {
		case DT_SYMTAB: s->sym = (const Elf64_Sym *)p; break;
		case DT_STRTAB: s->names = (const char *)p; break;
		case DT_GNU_HASH: s->hash = (const uint32_t *)p; break;
		case DT_SONAME: soname = d->d_un.d_val; break;
		}
	}
	if (!s->sym || !s->names || !s->hash || !soname)
		return false;
	s->soname = s->names + soname;
	return true;
}

static bool is_function(const Elf64_Sym *y)
{
	unsigned type = ELF64_ST_TYPE(y->st_info);

	return y->st_shndx && y->st_value && (type == STT_FUNC || type == STT_GNU_IFUNC);
}

/* ---- ranges, sorted by start ---- */

/* The last range that starts at or below the address, or NULL. */
static struct range *range_below(uint64_t address)
{
	unsigned lo = 0, hi = nranges;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (ranges[mid].start <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &ranges[lo - 1] : NULL;
}

/* size: of the function. Behind trylock lies what every unlock passes, behind free other code. */
static void add(uint64_t start, uint64_t size, enum wanted w)
{
	struct range *below = range_below(start);
	unsigned at = below ? (unsigned)(below - ranges) + 1 : 0;

	if ((below && below->start == start) || nranges == RANGES_MAX)
		return;
	for (unsigned i = nranges++; i > at; i--)
		ranges[i] = ranges[i - 1];
	ranges[at] = (struct range){ start, w == WORD || w == THRESHOLDS ? start + size : UINT64_MAX, w };
}

/* Where the function before the address ends; not further back than a range may reach. */
static uint64_t end_before(const struct symbols *s, uint64_t address)
{
	uint64_t end = address - RANGE_LONGEST;

	for (uint32_t i = 1; i < s->count; i++) {
		uint64_t at = s->bias + s->sym[i].st_value + s->sym[i].st_size;

		if (is_function(&s->sym[i]) && at > end && at <= address)
			end = at;
	}
	return end;
}

static void add_before(const struct symbols *s, const Elf64_Sym *y)
{
	uint64_t at = s->bias + y->st_value;

	for (unsigned i = 0; i < sizeof before / sizeof *before; i++)
		if (same(s->names + y->st_name, before[i].name))
			add(end_before(s, at), 0, before[i].wanted);
}

static bool is_store(const struct insn *in)
{
	return in->map == 0 && (in->op == 0x88 || in->op == 0x89 || in->op == 0xc6 || in->op == 0xc7);
}

static bool is_global(const struct insn *in)
{
	return (in->modrm & 0xc7) == 5; /* relative to rip */
}

static uint64_t global_at(uint64_t pc, const struct insn *in)
{
	int32_t disp;

	__builtin_memcpy(&disp, (const uint8_t *)pc + in->disp_off, sizeof disp);
	return pc + in->len + (int64_t)disp;
}

/* They have no symbol of their own: the code of free names them. */
static void find_thresholds(uint64_t pc, uint64_t size)
{
	struct insn in;

	for (uint64_t end = pc + size; pc < end; pc += in.len) {
		if (!insn_decode(&in, (const uint8_t *)pc, end - pc, pc))
			return;
		if (in.cls == INSN_NORMAL && (in.flags & INSN_MEM) && is_global(&in) && is_store(&in) &&
		    nthresholds < THRESHOLDS_MAX)
			thresholds[nthresholds++] = global_at(pc, &in);
	}
}

static bool is_threshold(uint64_t address)
{
	for (unsigned i = 0; i < nthresholds; i++)
		if (thresholds[i] == address)
			return true;
	return false;
}

static void add_library(struct symbols *s)
{
	s->count = count_symbols(s->hash);
	for (uint32_t i = 1; i < s->count; i++) {
		enum wanted w = is_function(&s->sym[i]) ? family_of(s->names + s->sym[i].st_name) :
							  NOTHING;

		if (!w)
			continue;
		add(s->bias + s->sym[i].st_value, s->sym[i].st_size, w);
		add_before(s, &s->sym[i]);
		if (w == THRESHOLDS)
			find_thresholds(s->bias + s->sym[i].st_value, s->sym[i].st_size);
	}
	for (uint32_t i = 1; i < s->count; i++) {
		uint64_t at = s->bias + s->sym[i].st_value;
		struct range *r = is_function(&s->sym[i]) ? range_below(at - 1) : NULL;

		if (r && r->end > at)
			r->end = at;
	}
}

static void find_ranges(void)
{
	struct symbols s;

	for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next)
		if (symbols_of(m, &s) && (same(s.soname, "libc.so.6") || same(s.soname, "libpthread.so.0")))
			add_library(&s);
	/* What no symbol ends (the last of a library) is not taken further than a function goes. */
	for (unsigned i = 0; i < nranges; i++)
		ranges[i].end = tr_min(ranges[i].end, ranges[i].start + RANGE_LONGEST);
}

/* ---- instructions ---- */

/* The stack is the thread's own, as is what %fs points to. */
static bool is_own(const struct insn *in)
{
	return (in->flags & INSN_USES_FS) ||
	       ((in->modrm & 7) == 4 && (in->sib & 7) == 4 && !(in->rex & 1));
}

/* movslq (table,index,4),reg: where a switch goes; such tables are constants. */
static bool is_jump_table(const struct insn *in)
{
	return in->map == 0 && in->op == 0x63 && !in->disp_len && (in->modrm & 7) == 4 &&
	       in->sib >> 6 == 2;
}

static bool is_wanted(enum wanted w, uint64_t pc, const struct insn *in)
{
	bool threshold = nthresholds && is_global(in) && is_threshold(global_at(pc, in));

	switch (w) {
	case WORD: return !in->disp_len;
	case STORES: return is_store(in);
	case GLOBALS: return is_global(in);
	case GLOBAL_STORES: return threshold || (is_global(in) && is_store(in));
	case THRESHOLDS: return threshold;
	default: return true;
	}
}

unsigned libc_wishes(uint64_t pc, const struct insn *in)
{
	if (!ready)
		find_ranges();
	ready = true;
	const struct range *r = range_below(pc);

	if (!r || pc >= r->end || in->cls != INSN_NORMAL || !(in->flags & INSN_MEM) || is_own(in) ||
	    is_jump_table(in))
		return 0;
	return is_wanted(r->wanted, pc, in) ? CTL_ORDER | CTL_LOG_VALUE : 0;
}
