#include "analyzer/symtrace/extract_level.h"

#include "common/vec.h"

#include <string.h>

enum pc_class {
	PC_PROGRAM,
	PC_STUB,    /* a PLT entry of the program: names the function called */
	PC_RUNTIME,
	PC_MOVER,   /* the same, of a function that works on its caller's data, or not known of which */
	PC_SCANNER, /* a mover that reads text in blocks, beyond its ends */
	PC_BELOW,   /* loader, shim, a sanitizer's run-time: never on the program's behalf, whoever called */
};

/* A function of the C library that program code called. */
struct callee {
	const char *name; /* NULL: none */
	bool mover;       /* works on the program's data ... */
	bool deep;        /* ... in all that it calls, too */
	bool printer;     /* writes text for people */
};

struct pc_entry {
	uint64_t pc; /* 0: free */
	enum pc_class class;
	struct callee callee; /* PC_STUB; of the C library's, where a function is entered */
	const char *stub;   /* the same, of any module */
	const char *memory; /* see level_memory() */
	enum level_memory memory_at;
};

#define QUICK 32768u
/* Beside class + 1, in three bits. */
#define QUICK_MEMORY 8u /* see level_memory() */
#define QUICK_OWN 16u /* see level_is_own() */

struct thread_level {
	struct callee callee;
	bool in_program; /* its last access was program code's */
	enum level_scan scan;
	struct level_text text;
};

/* Who enters a function touches memory soon: a register is saved, or what it is for. */
#define ENTRY_BYTES 32

struct level {
	struct img_set *images;
	struct pc_entry *table;
	size_t size, used; /* size is a power of two */
	uint64_t quick[QUICK]; /* pc << 5 | what it is: asked at every access, so it must stay in the cache */
	VEC(struct thread_level) threads;
	VEC(char *) names;
	bool sanitized;    /* code of a sanitizer's run-time was seen */
};

static const char *const runtime_modules[] = {
	"libc.so", "libc-2", "ld-linux", "ld-2", "libpthread", "libcsched", "librt.", "libdl.",
	"linux-vdso", "[vdso]", "libm.so", "libgcc_s",
};

/* Of these, lazy binding and recording happen in the middle of any call. */
static const char *const below_modules[] = { "ld-linux", "ld-2", "libcsched", "linux-vdso",
					     "[vdso]" };

/* What a sanitizer's run-time does is not the program; linked statically (clang) its functions tell it. */
static const char *const sanitizer_modules[] = { "libasan", "libtsan", "libubsan", "liblsan", "libhwasan", "libclang_rt." };
static const char *const sanitizer_symbols[] = {
	"__asan", "__tsan", "__ubsan", "__lsan", "__sanitizer", "__interception", "__interceptor_", "___interceptor_",
};
/* But for these, which do what the program wrote as an atomic operation. */
static const char *const sanitizer_atomics[] = { "__tsan_atomic" };

/* AddressSanitizer's shadow on x86-64 Linux, which instrumented code looks at before each access. */
#define SHADOW_FROM 0x7fff8000ull
#define SHADOW_TO 0x10007fff8000ull

/* Program code that a person did not write: what it decides is decided by its caller. */
static const char *const language_modules[] = { "libstdc++", "libc++", "libgcc_s" };

/* Between numbers and text in the caller's memory. (Those that use a stream have a state of their own.) */
#define CONVERTERS                                                                                      \
	"atoi", "atol", "atof", "sprintf", "snprintf", "vsprintf", "vsnprintf", "sscanf", "vsscanf", \
	"isoc99_sscanf", "isoc23_sscanf", "isoc23_strto"

/* Functions of the C library whose accesses are the caller's. */
static const char *const movers[] = {
	"mem", "str", "stp", "wmem", "wcs", "bcopy", "bzero", "bcmp",
	"qsort", "bsearch", "swab",
	CONVERTERS,
};

/* Of these, those that have functions with other names do it. strdup() is none: it allocates. */
static const char *const deep_movers[] = { "qsort", "bsearch", "strto", CONVERTERS };

/* Functions that hand out or take back memory, as PLT entries and the symbols of the C library name them. */
static const struct {
	const char *symbol, *name;
} memory_functions[] = {
	{ "malloc", "malloc" },
	{ "__libc_malloc", "malloc" },
	{ "calloc", "calloc" },
	{ "__libc_calloc", "calloc" },
	{ "realloc", "realloc" },
	{ "__libc_realloc", "realloc" },
	{ "aligned_alloc", "aligned_alloc" },
	{ "memalign", "memalign" },
	{ "__libc_memalign", "memalign" },
	{ "strdup", "strdup" },
	{ "__strdup", "strdup" },
	{ "free", "free" },
	{ "__libc_free", "free" },
	{ "cfree", "free" },
	{ "_Znwm", "_Znwm" }, /* operator new(unsigned long) ... */
	{ "operator new(unsigned long)", "_Znwm" },
	{ "_Znam", "_Znam" },
	{ "operator new[](unsigned long)", "_Znam" },
	{ "_ZnwmSt11align_val_t", "_ZnwmSt11align_val_t" },
	{ "operator new(unsigned long, std::align_val_t)", "_ZnwmSt11align_val_t" },
	{ "_ZnamSt11align_val_t", "_ZnamSt11align_val_t" },
	{ "operator new[](unsigned long, std::align_val_t)", "_ZnamSt11align_val_t" },
	{ "_ZnwmRKSt9nothrow_t", "_ZnwmRKSt9nothrow_t" },
	{ "operator new(unsigned long, std::nothrow_t const&)", "_ZnwmRKSt9nothrow_t" },
	{ "_ZnamRKSt9nothrow_t", "_ZnamRKSt9nothrow_t" },
	{ "operator new[](unsigned long, std::nothrow_t const&)", "_ZnamRKSt9nothrow_t" },
};

static const char *memory_function(const char *symbol)
{
	for (size_t i = 0; symbol && i < sizeof memory_functions / sizeof *memory_functions; i++)
		if (!strcmp(symbol, memory_functions[i].symbol))
			return memory_functions[i].name;
	return NULL;
}

/* Functions whose branches decide only what a person reads. */
static const char *const printers[] = {
	"printf", "fprintf", "vprintf", "vfprintf", "dprintf", "puts", "fputs", "putchar", "putc",
	"fputc", "perror", "__printf_chk", "__fprintf_chk", "__vfprintf_chk",
};

static bool is_printer(const char *name)
{
	for (size_t i = 0; i < sizeof printers / sizeof *printers; i++)
		if (!strcmp(name, printers[i]))
			return true;
	return false;
}

static bool has_prefix(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(s, list[i], strlen(list[i])))
			return true;
	return false;
}

struct level *level_new(struct img_set *images)
{
	struct level *l = xcalloc(1, sizeof *l);

	l->images = images;
	l->size = 1 << 12;
	l->table = xcalloc(l->size, sizeof *l->table);
	return l;
}

void level_free(struct level *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->names.n; i++)
		free(l->names.v[i]);
	vec_free(&l->names);
	vec_free(&l->threads);
	free(l->table);
	free(l);
}

static struct pc_entry *slot(struct pc_entry *table, size_t size, uint64_t pc)
{
	size_t i = (pc * 0x9e3779b97f4a7c15ull >> 20) & (size - 1);

	while (table[i].pc && table[i].pc != pc)
		i = (i + 1) & (size - 1);
	return &table[i];
}

static void grow(struct level *l)
{
	struct pc_entry *bigger = xcalloc(l->size * 2, sizeof *bigger);

	for (size_t i = 0; i < l->size; i++)
		if (l->table[i].pc)
			*slot(bigger, l->size * 2, l->table[i].pc) = l->table[i];
	free(l->table);
	l->table = bigger;
	l->size *= 2;
}

#define HAS_PREFIX(s, list) has_prefix(s, list, sizeof(list) / sizeof *(list))

/* __memcpy_avx_unaligned is memcpy, as far as it matters here. */
static bool is_mover(const char *name)
{
	return HAS_PREFIX(name + strspn(name, "_"), movers);
}

static struct callee callee_of(const char *name)
{
	return (struct callee){ name, is_mover(name), HAS_PREFIX(name + strspn(name, "_"), deep_movers),
				is_printer(name) };
}

/* "memcpy@plt" -> "memcpy", kept by the level; NULL when pc is no PLT entry. */
static const char *stub_name(struct level *l, uint64_t pc)
{
	const char *symbol = img_symbol(l->images, pc, NULL);
	const char *at = symbol ? strstr(symbol, "@plt") : NULL;

	if (!at)
		return NULL;
	char *name = xasprintf("%.*s", (int)(at - symbol), symbol);
	vec_push(&l->names, name);
	return name;
}

/* __strlen_avx2 and its like; their names say how wide the blocks are. */
static bool is_scanner(const char *name)
{
	return !strncmp(name + strspn(name, "_"), "str", 3) &&
	       (strstr(name, "_sse") || strstr(name, "_avx") || strstr(name, "_evex"));
}

static void classify_runtime(struct level *l, struct pc_entry *e)
{
	uint64_t offset = 0;
	const char *symbol = img_symbol(l->images, e->pc, &offset);

	/* memcpy looks at its arguments first, and never calls back. */
	if (symbol && (offset < ENTRY_BYTES || is_mover(symbol)))
		e->callee = callee_of(symbol);
	e->class = !symbol || is_mover(symbol) ? PC_MOVER : PC_RUNTIME;
	if (symbol && is_scanner(symbol))
		e->class = PC_SCANNER;
}

static bool is_sanitizer(struct level *l, const struct img_module *m, uint64_t pc)
{
	const char *symbol = img_symbol(l->images, pc, NULL);
	bool is = HAS_PREFIX(img_module_name(m), sanitizer_modules) || (symbol && HAS_PREFIX(symbol, sanitizer_symbols));

	l->sanitized |= is;
	return is && !(symbol && HAS_PREFIX(symbol, sanitizer_atomics));
}

bool level_is_shadow(const struct level *l, uint64_t address)
{
	return l->sanitized && address >= SHADOW_FROM && address < SHADOW_TO;
}

static void classify_memory(struct level *l, struct pc_entry *e)
{
	uint64_t offset = 0;
	const char *symbol = e->stub ? e->stub : img_symbol(l->images, e->pc, &offset);

	if (!e->stub && offset >= ENTRY_BYTES)
		return;
	e->memory = memory_function(symbol);
	if (e->memory)
		e->memory_at = !e->stub ? LEVEL_MEMORY_ENTRY :
			       e->class == PC_STUB ? LEVEL_MEMORY_STUB : LEVEL_MEMORY_RUNTIME;
}

static struct pc_entry *classify(struct level *l, uint64_t pc)
{
	struct pc_entry *e = slot(l->table, l->size, pc);

	if (e->pc)
		return e;
	if (l->used * 2 >= l->size) {
		grow(l);
		e = slot(l->table, l->size, pc);
	}
	l->used++;
	e->pc = pc;
	struct img_module *m = img_module_at(l->images, pc);
	e->stub = m ? stub_name(l, pc) : NULL;
	if (!m) {
		e->class = PC_PROGRAM; /* generated code is the program's */
	} else if (HAS_PREFIX(img_module_name(m), below_modules)) {
		e->class = PC_BELOW;
	} else if (HAS_PREFIX(img_module_name(m), runtime_modules)) {
		classify_runtime(l, e);
	} else if (e->stub) {
		e->class = PC_STUB;
		e->callee = callee_of(e->stub);
	}
	/* What it calls on its part says nothing of what the program has called. */
	if (m && (e->class == PC_PROGRAM || e->class == PC_STUB) && is_sanitizer(l, m, pc))
		e->class = PC_BELOW;
	if (m)
		classify_memory(l, e);
	return e;
}

static unsigned look(struct level *l, uint64_t pc)
{
	const struct pc_entry *e = classify(l, pc);
	struct img_module *m = e->class == PC_PROGRAM ? img_module_at(l->images, pc) : NULL;
	bool own = e->class == PC_PROGRAM && !(m && HAS_PREFIX(img_module_name(m), language_modules));

	return (e->class + 1u) | (e->memory ? QUICK_MEMORY : 0) | (own ? QUICK_OWN : 0);
}

static inline unsigned quick(struct level *l, uint64_t pc)
{
	uint64_t *q = &l->quick[(pc >> 1 ^ pc >> 16) % QUICK];

	if (*q >> 5 != pc || !*q)
		*q = pc << 5 | look(l, pc);
	return *q & 31;
}

static inline enum pc_class class_of(struct level *l, uint64_t pc)
{
	return (enum pc_class)((quick(l, pc) & 7) - 1);
}

enum level_memory level_memory(struct level *l, uint64_t pc, const char **name)
{
	if (!(quick(l, pc) & QUICK_MEMORY))
		return LEVEL_NO_MEMORY;
	const struct pc_entry *e = classify(l, pc);

	*name = e->memory;
	return e->memory_at;
}

bool level_is_runtime(struct level *l, uint64_t pc)
{
	return class_of(l, pc) >= PC_RUNTIME;
}

bool level_is_own(struct level *l, uint64_t pc)
{
	return quick(l, pc) & QUICK_OWN;
}

static inline struct thread_level *thread_level(struct level *l, uint32_t thread)
{
	while (l->threads.n <= thread)
		vec_push(&l->threads, (struct thread_level){ .callee.name = "" });
	return &l->threads.v[thread];
}

/* From program code straight into the C library: a call without a PLT entry, or back from a callback. */
static void enter(struct level *l, struct thread_level *t, uint64_t pc)
{
	const struct pc_entry *e = classify(l, pc);

	t->in_program = false;
	if (e->callee.name)
		t->callee = e->callee;
}

bool level_is_program(struct level *l, uint32_t thread, uint64_t pc)
{
	struct thread_level *t = thread_level(l, thread);
	enum pc_class class = class_of(l, pc);

	t->scan = class != PC_SCANNER ? LEVEL_NO_SCAN : t->scan ? LEVEL_SCAN : LEVEL_SCAN_BEGINS;
	switch (class) {
	case PC_PROGRAM:
		t->in_program = true;
		return true;
	case PC_STUB:
		t->callee = classify(l, pc)->callee;
		t->in_program = false;
		return false; /* reading the GOT is the linker's business */
	case PC_BELOW:
		return false;
	default:
		if (t->in_program)
			enter(l, t, pc);
		return t->callee.mover &&
		       (class == PC_MOVER || class == PC_SCANNER || t->callee.deep);
	}
}

void level_begin(struct level *l, uint32_t thread, uint64_t pc)
{
	const char *symbol = level_is_runtime(l, pc) ? img_symbol(l->images, pc, NULL) : NULL;

	if (symbol)
		thread_level(l, thread)->callee = callee_of(symbol);
}

enum level_scan level_scan(struct level *l, uint32_t thread)
{
	return thread_level(l, thread)->scan;
}

struct level_text *level_text(struct level *l, uint32_t thread)
{
	return &thread_level(l, thread)->text;
}

bool level_is_printing(struct level *l, uint32_t thread, uint64_t pc)
{
	return thread_level(l, thread)->callee.printer && level_is_runtime(l, pc);
}

const char *level_callee(struct level *l, uint32_t thread)
{
	return thread_level(l, thread)->callee.name;
}
