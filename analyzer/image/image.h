/*
 * Images: what ELF and DWARF know about a recorded process.
 *
 * A struct img_set stands for the address space of one process. Modules are
 * added with the mappings the recorder saw and leave when they are unmapped.
 * Everything asked of the set is asked in run-time addresses of that process.
 *
 * What a caller may rely on:
 *  - Modules may be missing, stripped, changed or hostile. Then answers have
 *    less detail (down to "libfoo.so+0x1234" and "0x7f..."), never a guess
 *    and never a crash. What was missing is reported once per module: img_notes().
 *  - `const char *` results and struct img_type belong to the set and live as
 *    long as it does. `char *` results belong to the caller: free().
 *  - Answers about a pc or a variable are cached; asking again is cheap.
 *  - One set is used by one thread at a time (libdw is not thread-safe).
 */
#ifndef CSCHED_ANALYZER_IMAGE_H
#define CSCHED_ANALYZER_IMAGE_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct img_set;
struct img_module;

struct img_set *img_set_new(void);
void img_set_free(struct img_set *set);

/* ---- modules ---------------------------------------------------------- */

/* One line of /proc/PID/maps. prot: PROT_READ | PROT_WRITE | PROT_EXEC. */
struct img_mapping {
	uint64_t start;
	uint64_t end;
	uint64_t file_offset;
	uint32_t prot;
};

struct img_module_desc {
	const char *path;         /* as recorded; its basename is the module's name */
	const uint8_t *build_id;  /* as recorded; NULL: the file cannot be verified */
	size_t build_id_len;
	const struct img_mapping *maps;
	size_t n_maps;
	bool named;               /* by the user, who vouches for it: no build-id is needed to show its sources */
	const char *packed_file;  /* the module's file inside a packed trace, or NULL */
	const void *memory;       /* the ELF image itself (vdso), copied; or NULL */
	size_t memory_size;
};

/*
 * Adds a module. Its file is taken from the first of: memory, packed_file, the
 * recorded path (and the same path below each directory of $CSCHED_DEBUG_PATH),
 * debuginfod. Debug information comes from the file itself, then
 * /usr/lib/debug/.build-id, .gnu_debuglink, $CSCHED_DEBUG_PATH, debuginfod.
 * debuginfod is asked only when DEBUGINFOD_URLS is set.
 *
 * A file that is merely missing is no error: the module stays known by name and
 * a note is left. A file whose build-id differs is ERR_INPUT, with the module,
 * the expected and the found build-id in the message; the module is known by
 * name all the same, so a caller that can live without its code may go on.
 * *out (may be NULL) is set in every case.
 */
err_t img_add_module(struct img_set *set, const struct img_module_desc *desc,
		     struct img_module **out);

/* More mappings of a known module (a later mmap of the same file). */
void img_add_mapping(struct img_module *m, const struct img_mapping *map);

/*
 * [lo, hi) was unmapped or replaced. The parts are no longer read by img_read;
 * names and frames still find them as long as nothing newer lies there.
 */
void img_remove_range(struct img_set *set, uint64_t lo, uint64_t hi);

/* The module mapped at addr, or NULL. */
struct img_module *img_module_at(struct img_set *set, uint64_t addr);
size_t img_modules(struct img_set *set, struct img_module *const **out);

const char *img_module_name(const struct img_module *m);  /* "libfoo.so.1" */
const char *img_module_path(const struct img_module *m);  /* as recorded */
const char *img_module_file(const struct img_module *m);  /* the file used, or NULL */
uint64_t img_module_bias(const struct img_module *m);     /* run-time - ELF address */
bool img_module_has_code(const struct img_module *m);     /* its file was found */
bool img_module_has_debug(const struct img_module *m);    /* DWARF was found */

/* The build-id of an ELF file in hex ("" when it has none); NULL: not an ELF file. */
char *img_build_id_of_file(const char *path);

/* What could not be found or verified, one sentence each, in order of discovery. */
size_t img_notes(struct img_set *set, const char *const **out);

/*
 * The bytes the process saw at [addr, addr + n) when they are certain to be
 * those of the file: a mapped segment that is never written, also not by the
 * dynamic linker (so no .data.rel.ro, though it is mapped read-only). All or
 * nothing.
 */
bool img_read(struct img_set *set, uint64_t addr, void *buf, size_t n);

/* ---- code: frames and symbols ------------------------------------------ */

struct img_frame {
	const char *function; /* "Queue::push", "name@plt"; "mod+0x12" when unknown */
	const char *file;     /* as the compiler wrote it, or NULL */
	unsigned line;        /* 0: unknown */
	unsigned column;
	const char *module;   /* name, or NULL when nothing is mapped there */
	uint64_t pc;
	uint64_t offset;      /* of pc from the start of the function, 0 if inlined */
	bool inlined;         /* into the next frame */
	bool implicit;        /* a constructor, destructor or assignment that the compiler wrote:
			       * its line is that of the class */
};

/*
 * The frames at pc, innermost first: inlined functions, then the real one.
 * At least one when max > 0. For a return address pass address - 1. C++ names
 * come without return type and parameters; img_symbol has them in full.
 */
size_t img_frames(struct img_set *set, uint64_t pc, struct img_frame *out, size_t max);

/* The C and C++ run-time, its headers included: the bug is in its caller. */
bool img_runtime_frame(const struct img_frame *f);

/* A C++ type as typeid names it ("St12out_of_range") for people. malloc'd. */
char *img_type_text(const char *mangled);

/* The symbol that holds addr (code or data), demangled, or NULL. */
const char *img_symbol(struct img_set *set, uint64_t addr, uint64_t *offset);

/* "symbol+0x12", "module+0x12" or "0x12": never NULL. */
char *img_symbol_text(struct img_set *set, uint64_t addr);

/* Address of a symbol by linkage name or demangled name; "name@plt" too. */
bool img_address_of(struct img_set *set, const char *name, uint64_t *addr);

/*
 * Addresses of the statements at file:line (file matches by trailing path
 * components). Returns how many there are, even beyond max.
 */
size_t img_addresses_of_line(struct img_set *set, const char *file, unsigned line,
			     uint64_t *out, size_t max);

/* Text of a source line without its newline, or NULL. $CSCHED_SOURCE_PATH is searched too. */
const char *img_source_line(struct img_set *set, const char *file, unsigned line);

/* ---- registers, memory, stacks ----------------------------------------- */

/* DWARF numbering of x86-64: note rdx before rcx, rsi/rdi before rbp/rsp. */
enum img_reg {
	IMG_RAX, IMG_RDX, IMG_RCX, IMG_RBX, IMG_RSI, IMG_RDI, IMG_RBP, IMG_RSP,
	IMG_R8, IMG_R9, IMG_R10, IMG_R11, IMG_R12, IMG_R13, IMG_R14, IMG_R15,
	IMG_RIP,
	IMG_NREGS
};

/* img_reg of x86 encoding order (rax rcx rdx rbx rsp rbp rsi rdi r8..r15). */
extern const uint8_t img_reg_of_x86[16];

struct img_regs {
	uint64_t r[IMG_NREGS];
	uint32_t known;    /* bit i: r[i] is known */
	uint64_t fs_base;  /* for thread-local variables; 0: unknown */
};
#define IMG_ALL_REGS ((1u << IMG_NREGS) - 1)

/* Memory of the process. read is all or nothing. */
struct img_memory {
	bool (*read)(void *arg, uint64_t addr, void *buf, size_t n);
	void *arg;
};

/*
 * The pcs of the call stack, innermost first, at most max. Entry 0 is rip; the
 * others lie inside their call instruction (return address - 1), so that each
 * can be given to img_frames as it is. Uses .eh_frame and .debug_frame, and the
 * frame pointer where there is neither.
 */
size_t img_unwind(struct img_set *set, const struct img_regs *regs,
		  const struct img_memory *mem, uint64_t *pcs, size_t max);
/* Likewise, and where each frame ends, behind its return address; 0: not known. */
size_t img_unwind_ends(struct img_set *set, const struct img_regs *regs, const struct img_memory *mem,
		       uint64_t *pcs, uint64_t *ends, size_t max);

/* ---- data: types, values, names ---------------------------------------- */

enum img_kind {
	IMG_OPAQUE,   /* DWARF does not say */
	IMG_SIGNED,
	IMG_UNSIGNED,
	IMG_CHAR,     /* printed as 97 'a' */
	IMG_BOOL,
	IMG_FLOAT,
	IMG_ENUM,
	IMG_POINTER,
	IMG_STRUCT,   /* struct, class, union */
	IMG_ARRAY,
};

/* Interned: equal types of one module are one pointer. */
struct img_type {
	enum img_kind kind;
	uint64_t size;        /* bytes */
	uint8_t bit_offset;   /* of a bit-field, from the lowest bit */
	uint8_t bit_size;     /* 0: not a bit-field */
	const char *name;     /* "int", "struct fifo *", "std::mutex" */
};

/* A heap object the caller knows of. */
struct img_heap {
	uint64_t base;
	uint64_t size;
	uint32_t id;                 /* the N of "heap#N" */
	const uint64_t *alloc_pcs;   /* call stack of the allocation as from img_unwind */
	size_t n_alloc_pcs;          /* (allocator's own frames may be left in) */
};

/* What the caller knows about the moment of an access. All may be NULL. */
struct img_context {
	const struct img_regs *regs;   /* before the instruction at regs->r[IMG_RIP] */
	const struct img_memory *mem;
	const struct img_heap *heap;   /* the object that holds addr */
	/* Registers of the thread whose stack holds this address; NULL: nobody knows. */
	bool (*owner)(void *arg, uint64_t address, struct img_regs *regs);
	void *owner_arg;
};

enum img_place { IMG_NOWHERE, IMG_GLOBAL, IMG_THREAD_LOCAL, IMG_STACK, IMG_HEAP };

struct img_name {
	char *text;                   /* malloc'd; never NULL */
	enum img_place place;
	const struct img_type *type;  /* of what is named, NULL: unknown */
	uint64_t start;               /* address of what is named (addr lies in it) */
	const char *function;         /* of a local variable, or NULL */
	const char *file;             /* declaration of the variable, or NULL */
	unsigned line;
	bool borrowed;                /* from a variable inside a library: tells the program's reader little */
};

/*
 * Names [addr, addr + size): "count", "fifo->count", "buf[3]", "pool.slot[2].next".
 * Tried in order: global or static variable; thread-local; stack variable of a
 * frame of the accessing thread, then of the owner; what a pointer variable that
 * is live at the access points to; the heap object ("heap#3@list.c:12->count"
 * when the allocation's DWARF gives the type, else "heap#3@list.c:12+0x10"); symbol+offset;
 * "0x...".
 * A struct accessed as a whole keeps its own name.
 */
void img_name_of(struct img_set *set, uint64_t addr, size_t size,
		 const struct img_context *ctx, struct img_name *out);

/* The type of the object allocated by this call stack, or NULL. */
const struct img_type *img_heap_type(struct img_set *set, const uint64_t *alloc_pcs, size_t n);

/*
 * n bytes at bytes, as type says: -1, 'enum name', true, 0x7f12, 1.5. Type NULL
 * or of another size than n: an unsigned number, hexadecimal when large. With a
 * set, pointers to code and globals get their symbol: 0x401136 <worker>.
 */
/* "OPEN=1 PAID=2": the names of an enumeration's values, so far as they fit a line; NULL: it has none. To be freed. */
char *img_enumerators(const struct img_type *type);
char *img_format_value(struct img_set *set, const struct img_type *type,
		       const void *bytes, size_t n);

#endif
