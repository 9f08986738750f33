#include "analyzer/symtrace/extract_level.h"

#include "common/vec.h"

#include <string.h>

enum pc_class {
	PC_PROGRAM,
	PC_STUB,    /* a PLT entry of the program: names the function called */
	PC_RUNTIME,
	PC_BELOW,   /* loader and shim: never on the program's behalf, whoever called */
};

struct pc_entry {
	uint64_t pc; /* 0: free */
	enum pc_class class;
	bool mover;         /* PC_STUB: works on the program's data */
	bool printer;       /* PC_STUB: writes text for people */
	const char *callee; /* PC_STUB: belongs to the image */
	const char *stub;   /* the same, of any module */
};

#define QUICK 8192u

struct thread_level {
	const char *callee;
	bool mover, printer;
};

struct level {
	struct img_set *images;
	struct pc_entry *table;
	size_t size, used; /* size is a power of two */
	uint64_t quick[QUICK]; /* pc << 3 | class + 1: asked at every access, so it must stay in the cache */
	VEC(struct thread_level) threads;
	VEC(char *) names;
};

static const char *const runtime_modules[] = {
	"libc.so", "libc-2", "ld-linux", "ld-2", "libpthread", "libcsched", "librt.", "libdl.",
	"linux-vdso", "[vdso]", "libm.so", "libgcc_s",
};

/* Of these, lazy binding and recording happen in the middle of any call. */
static const char *const below_modules[] = { "ld-linux", "ld-2", "libcsched", "linux-vdso",
					     "[vdso]" };

/* Program code that a person did not write: what it decides is decided by its caller. */
static const char *const language_modules[] = { "libstdc++", "libc++", "libgcc_s" };

/* Functions of the C library whose accesses are the caller's. */
static const char *const movers[] = {
	"mem", "__mem", "str", "__str", "stp", "__stp", "wmem", "wcs", "bcopy", "bzero", "bcmp",
	"qsort", "bsearch", "swab",
};

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
	if (!m || has_prefix(img_module_name(m), runtime_modules,
			     sizeof runtime_modules / sizeof *runtime_modules)) {
		/* Code outside any module is generated: the program's. */
		e->class = !m ? PC_PROGRAM :
			   has_prefix(img_module_name(m), below_modules,
				      sizeof below_modules / sizeof *below_modules) ?
				   PC_BELOW : PC_RUNTIME;
	} else if ((e->callee = e->stub)) {
		e->class = PC_STUB;
		e->mover = has_prefix(e->callee, movers, sizeof movers / sizeof *movers);
		e->printer = is_printer(e->callee);
	}
	return e;
}

const char *level_stub(struct level *l, uint64_t pc)
{
	return classify(l, pc)->callee;
}

const char *level_any_stub(struct level *l, uint64_t pc)
{
	return classify(l, pc)->stub;
}

bool level_is_runtime(struct level *l, uint64_t pc)
{
	return classify(l, pc)->class >= PC_RUNTIME;
}

bool level_is_own(struct level *l, uint64_t pc)
{
	struct img_module *m = img_module_at(l->images, pc);

	return classify(l, pc)->class == PC_PROGRAM &&
	       !(m && has_prefix(img_module_name(m), language_modules,
				 sizeof language_modules / sizeof *language_modules));
}

static struct thread_level *thread_level(struct level *l, uint32_t thread)
{
	while (l->threads.n <= thread)
		vec_push(&l->threads, (struct thread_level){ .callee = "" });
	return &l->threads.v[thread];
}

static enum pc_class class_of(struct level *l, uint64_t pc)
{
	uint64_t *q = &l->quick[(pc ^ pc >> 13) % QUICK];

	if (*q >> 3 != pc || !*q)
		*q = pc << 3 | (classify(l, pc)->class + 1u);
	return (enum pc_class)((*q & 7) - 1);
}

bool level_is_program(struct level *l, uint32_t thread, uint64_t pc)
{
	const struct pc_entry *e;
	struct thread_level *t = thread_level(l, thread);

	switch (class_of(l, pc)) {
	case PC_PROGRAM:
		return true;
	case PC_STUB:
		e = classify(l, pc);
		t->callee = e->callee;
		t->mover = e->mover;
		t->printer = e->printer;
		return false; /* reading the GOT is the linker's business */
	case PC_BELOW:
		return false;
	default:
		return t->mover;
	}
}

void level_begin(struct level *l, uint32_t thread, uint64_t pc)
{
	const char *symbol = level_is_runtime(l, pc) ? img_symbol(l->images, pc, NULL) : NULL;

	if (symbol)
		thread_level(l, thread)->mover = has_prefix(symbol, movers, sizeof movers / sizeof *movers);
}

bool level_is_printing(struct level *l, uint32_t thread, uint64_t pc)
{
	return thread_level(l, thread)->printer && level_is_runtime(l, pc);
}

const char *level_callee(struct level *l, uint32_t thread)
{
	return thread_level(l, thread)->callee;
}
