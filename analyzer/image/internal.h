/*
 * What the files of this room share. Nobody else includes this.
 *
 * "address" is a run-time address of the recorded process, "vaddr" an address
 * as written in the ELF file: address = vaddr + bias (modulo 2^64).
 */
#ifndef CSCHED_ANALYZER_IMAGE_INTERNAL_H
#define CSCHED_ANALYZER_IMAGE_INTERNAL_H

#include "analyzer/image/image.h"
#include "common/strbuf.h"
#include "common/vec.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <libelf.h>

#define IMG_PAGE 4096ull

/* No sane program nests deeper; a hostile file must not exhaust our stack. */
enum { IMG_MAX_DEPTH = 64 };

/* ---- table.c: 64-bit key -> 64-bit value ---- */

struct img_table {
	struct img_slot {
		uint64_t key;
		uint64_t value;
		bool used;
	} *slot;
	size_t n;
	size_t cap; /* a power of two, or 0 */
};

uint64_t *img_table_find(const struct img_table *t, uint64_t key);
void img_table_put(struct img_table *t, uint64_t key, uint64_t value);
void img_table_free(struct img_table *t);

/* ---- elf.c: one open ELF file ---- */

struct img_elf {
	int fd; /* -1: none, or an image in memory */
	Elf *elf;
	char *path;
};

struct img_segment {
	uint64_t vaddr;
	uint64_t offset;
	uint64_t filesz;
	uint64_t memsz;
	uint32_t flags; /* PF_* */
};

typedef VEC(struct img_segment) img_segments_t;

bool img_elf_open(struct img_elf *f, const char *path);
bool img_elf_open_fd(struct img_elf *f, int fd, const char *path); /* takes fd */
bool img_elf_open_memory(struct img_elf *f, void *image, size_t n);
void img_elf_close(struct img_elf *f);
bool img_elf_has_section(Elf *elf, const char *name);
void img_elf_segments(Elf *elf, img_segments_t *out);
bool img_elf_tls(Elf *elf, uint64_t *memsz, uint64_t *align);
bool img_elf_has_textrel(Elf *elf);
/* NULL when there is none; the bytes belong to the Elf. */
const uint8_t *img_elf_build_id(Elf *elf, size_t *n);

/* ---- modules ---- */

struct img_symbol {
	uint64_t vaddr;
	uint64_t size;
	const char *name;      /* linkage name, or "name@plt" */
	bool code;
	uint8_t rank; /* larger is preferred among symbols of one address */
};

struct img_function {
	uint64_t lo, hi; /* vaddr; a function in several pieces has several entries */
	uint64_t entry;
	Dwarf_Die die;
};

struct img_unit {
	Dwarf_Die die;      /* with the content (of the .dwo file when split) */
	Dwarf_Die skeleton; /* with the line table */
	bool indexed;
	VEC(struct img_function) functions; /* sorted by lo */
};

struct img_unit_range {
	uint64_t lo, hi; /* vaddr */
	size_t unit;
};

/* A variable with a fixed place: a vaddr, or an offset in the TLS block. */
struct img_variable {
	uint64_t lo;
	uint64_t size;
	Dwarf_Die die;
	const char *function; /* of a function's static variable, or NULL */
};

/* How to find the caller's registers at one pc (unwind.c). */
struct img_row {
	uint8_t cfa_reg;
	bool simple; /* false: ask libdw each time */
	bool signal;
	bool none;   /* no CFI here */
	int32_t cfa_offset;
	int32_t at_cfa[IMG_NREGS]; /* saved at CFA + this */
	uint32_t saved, same;      /* bit per register; neither: lost */
};

struct img_module {
	struct img_set *set;
	char *path;
	const char *name; /* points into path */
	uint8_t *build_id;
	size_t build_id_len;
	struct img_elf code;  /* elf NULL: not found */
	struct img_elf debug; /* separate debug file */
	struct img_elf alt;   /* what dwz moved out of it */
	void *memory;
	bool on_disk; /* this build lies where it was recorded, not only in the pack */
	uint64_t bias;
	uint64_t lo, hi; /* extent in the address space, with .bss */
	img_segments_t segments;
	bool text_written; /* DT_TEXTREL: the dynamic linker writes into the text */

	bool dwarf_tried;
	Dwarf *dwarf, *alt_dwarf;
	bool symbols_read;
	VEC(struct img_symbol) symbols; /* sorted by vaddr */
	VEC(char *) own_names; /* those the file does not spell so */
	bool units_read;
	VEC(struct img_unit) units;
	VEC(struct img_unit_range) ranges; /* sorted by lo */
	bool variables_read;
	VEC(struct img_variable) variables; /* sorted by lo */
	VEC(struct img_variable) tls;
	VEC(struct img_variable) holders; /* those of the first that hold pointers */

	struct img_table frame_of;         /* vaddr -> index in frames */
	VEC(struct img_frame) frames;      /* runs, each ended by function == NULL */
	struct img_table types;            /* see type.c */
	bool cfi_tried;
	Dwarf_CFI *eh_frame, *debug_frame;
	struct img_table row_of;           /* vaddr -> index in rows */
	VEC(struct img_row) rows;
	bool definitions_read;
	struct img_table definitions;      /* hash of the name -> index in definition */
	VEC(Dwarf_Die) definition;
	struct img_table heap_types;       /* vaddr of the call -> struct img_type * */
};

struct img_live {
	uint64_t start, end, file_offset;
	uint32_t prot;
	struct img_module *module;
};

struct img_set {
	VEC(struct img_module *) modules;
	VEC(struct img_live) live; /* sorted, disjoint */
	size_t last_live;          /* where the last look-up ended */
	VEC(const char *) notes;
	VEC(char *) strings;       /* owned texts handed out as const char * */
	struct img_table demangled; /* linkage name's address -> text's address */
	struct img_table brief;     /* name's address -> shorter text's address */
	struct img_table unknown_names; /* address outside of all modules -> its text */
	VEC(struct img_source *) sources;
	bool source_refused, build_dirs_told; /* once is enough */
	VEC(void *) blocks;        /* freed with the set */
};

void img_note(struct img_set *set, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Takes ownership of s. */
const char *img_keep(struct img_set *set, char *s);
void *img_keep_block(struct img_set *set, size_t n);
/* The C and C++ run-time libraries, allocators, and the shim. */
bool img_is_runtime(const struct img_module *m);
const struct img_live *img_live_at(struct img_set *set, uint64_t addr);

/* find.c */
err_t img_find_code(struct img_module *m, const struct img_module_desc *desc);
Dwarf *img_module_dwarf(struct img_module *m); /* NULL: none; tried once */
void img_find_close(struct img_module *m);

/* demangle.c */
const char *img_demangle(struct img_set *set, const char *name);
/* A type of Rust's library, of which only what it holds has a name to its user. */
bool img_rust_wrapper(Dwarf_Die *type);
char *img_rust_text(const char *name); /* of a name in Rust's own mangling; NULL: it is none. To be freed */
/* A demangled name without return type and parameters, long template arguments folded. */
const char *img_brief(struct img_set *set, const char *name);

/* symbol.c */
const struct img_symbol *img_symbol_at(struct img_module *m, uint64_t vaddr);

/* unit.c */
void img_units_read(struct img_module *m);
struct img_unit *img_unit_at(struct img_module *m, uint64_t vaddr);
/* *unit (may be NULL) is set even when no function is known there. */
const struct img_function *img_function_at(struct img_module *m, uint64_t vaddr,
					   struct img_unit **unit);
/* The scopes that hold vaddr, innermost first, ending with the function. */
size_t img_scopes_at(const struct img_function *f, uint64_t vaddr, Dwarf_Die *out, size_t max);
const char *img_linkage_name(Dwarf_Die *die);
/* Demangled; NULL when the DIE is nameless. */
const char *img_function_name(struct img_module *m, Dwarf_Die *die);
const char *img_die_name(Dwarf_Die *die);
bool img_die_type(Dwarf_Die *die, Dwarf_Die *type);

/* frames.c: entry of the unit's file table, or NULL. */
const char *img_file_name(Dwarf_Die *unit, uint64_t index);

/* variable.c */
void img_variables_read(struct img_module *m);
/* The one of v (sorted by lo) that holds at, or NULL. */
const struct img_variable *img_variable_at(const struct img_variable *v, size_t n, uint64_t at);

/* complete.c: replaces a mere declaration by the definition, if the module has one. */
void img_type_complete(struct img_module *m, Dwarf_Die *type);

/* type.c */
const struct img_type *img_type_of(struct img_module *m, Dwarf_Die *die);
const struct img_type *img_type_of_bits(struct img_module *m, Dwarf_Die *die,
					unsigned bit_offset, unsigned bit_size);
Dwarf_Die *img_type_die(const struct img_type *t); /* without cv and typedefs */
struct img_module *img_type_module(const struct img_type *t);
bool img_type_strip(Dwarf_Die *type, Dwarf_Die *out);
bool img_type_size(Dwarf_Die *type, uint64_t *size);
/* Elements per dimension, 0 where open. Returns the number of dimensions. */
size_t img_array_dimensions(Dwarf_Die *array, uint64_t *count, size_t max);
/* The type a pointer or reference points to; false for void and others. */
bool img_type_pointee(Dwarf_Die *type, Dwarf_Die *out, bool *reference);

/* member.c */
struct img_path {
	struct img_module *m;
	struct strbuf *text;         /* ".count", "[3].next" is appended; may be NULL */
	const struct img_type *type; /* result: of the innermost thing */
	uint64_t start;              /* result: its offset from where we began */
	bool exact;                  /* result: offset and size are those of the thing */
};
/* Follows type to what lies at [offset, offset + size). */
void img_path_follow(struct img_path *p, Dwarf_Die *type, uint64_t offset, uint64_t size);

/* locate.c */
enum img_where { IMG_LOST, IMG_IN_MEMORY, IMG_IN_REGISTER, IMG_IS_VALUE };

struct img_location {
	enum img_where where;
	uint64_t value; /* address, register number or the value itself */
};

/* What an expression may ask for while it is evaluated. */
struct img_eval {
	struct img_module *m;
	const struct img_regs *regs;
	const struct img_memory *mem;
	const struct img_function *function; /* for DW_OP_fbreg; may be NULL */
	uint64_t vaddr;                      /* pc */
	bool cfa_known;
	uint64_t cfa;
	bool is_return; /* rip of regs is a return address */
	int nested;     /* callers whose callers are asked */
};

struct img_location img_eval(struct img_eval *e, const Dwarf_Op *ops, size_t n,
			     Dwarf_Attribute *attr);
struct img_location img_locate(struct img_eval *e, Dwarf_Die *variable);
/* From mem, else from the files. */
bool img_memory_read(struct img_set *set, const struct img_memory *mem, uint64_t addr, void *buf,
		     size_t n);
bool img_location_read(const struct img_eval *e, struct img_location loc, void *buf, size_t n);

/* entry.c: what reg was when e's function was entered. */
bool img_entry_value(struct img_eval *e, unsigned reg, uint64_t *value);

/* unwind.c */
bool img_cfa(struct img_set *set, const struct img_regs *regs, const struct img_memory *mem,
	     bool is_return, uint64_t *cfa);
/* Turns regs into the caller's. signal: set when the caller was interrupted. */
bool img_unwind_step(struct img_set *set, struct img_regs *regs, const struct img_memory *mem,
		     bool is_return, bool *signal);

/* stack.c */
/* Prepares the evaluation of variables in the frame of regs. */
bool img_eval_begin(struct img_set *set, const struct img_regs *regs, const struct img_memory *mem,
		    bool is_return, struct img_eval *e);
/* Calls fn for each variable in scope, innermost first, until it returns true. */
typedef bool img_local_fn(void *arg, struct img_eval *e, Dwarf_Die *variable,
			  Dwarf_Die *function);
bool img_each_local(struct img_eval *e, img_local_fn *fn, void *arg);
bool img_name_on_stack(struct img_set *set, uint64_t addr, size_t size,
		       const struct img_regs *regs, const struct img_memory *mem,
		       struct img_name *out);

/* member.c: a member that only its class, one of a library's, knows under this name. */
bool img_member_hidden(Dwarf_Die *die);

/* pointer.c */
bool img_name_by_pointer(struct img_set *set, uint64_t addr, size_t size,
			 const struct img_context *ctx, struct img_name *out);

/* What a variable itself holds: global, thread-local or on a stack; not what a pointer leads to. */
bool img_name_fixed(struct img_set *set, uint64_t addr, size_t size, const struct img_context *c,
		    struct img_name *out);

/* name.c: fills out with the name of what lies at addr inside a variable at base. */
void img_name_variable(struct img_module *m, Dwarf_Die *die, Dwarf_Die *type, const char *name,
		       uint64_t base, uint64_t addr, size_t size, struct img_name *out);
/* The file whose line a DIE's declaration has, or NULL. */
const char *img_declared_in(Dwarf_Die *die);

/* source.c */
void img_sources_free(struct img_set *set);

#endif
