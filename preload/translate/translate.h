/*
 * The translator: runs an unmodified program from a code cache and leaves the
 * path it took in tN.path. This header is the map of the room.
 *
 * ---- What happens to an instruction
 *
 * Application code is never executed in place. A *fragment* (fragment.c) is a
 * straight run of instructions, copied verbatim into a cache region that lies
 * within 2 GB of the module, so that rip-relative operands need only another
 * displacement. Direct jumps and calls are followed, and branches back to its own
 * beginning a few times; up to TR_MAX_SIDES conditional branches inside are *side
 * exits*. Everything that would leave the fragment ends in one of:
 *
 *   direct exit    `jmp rel32`, first to a stub that enters the dispatcher, then
 *                  patched ("linked", link.c) to the successor's body
 *   side exit      `jcc rel32`, first to a stub; when taken for the first time it
 *                  gets a few bytes of its own that record k and jump on, or run on
 *                  into the successor when that is made at this moment
 *   indirect exit  ret, call *x, jmp *x: target to rcx, then a jump through a table (table.c)
 *                  indexed by the low bits of the target. Each bucket points to
 *                  a chain of *entry stubs* that compare the target (lea + jrcxz:
 *                  flags stay alone), record the fragment's id and fall into its body
 *                  Where it is known to what few targets one leads, the fragment
 *                  compares the target itself (indirect.c): the usual one is followed, for
 *                  others it records which and leaves by a direct exit
 *   special exit   system calls, rdtsc and kin, the record primitive: to C code
 *
 * Return addresses on the application's stack are the original ones, so
 * unwinding, exceptions, longjmp and backtrace() need no help.
 *
 * ---- What is stolen
 *
 *   %gs     base of struct tr_ctx, one per thread (programs that use %gs run natively)
 *   xmm15   the record pointer: where the next path byte goes. A pointer in memory
 *           would make every record wait for the store before it. Instructions that
 *           name xmm15 get the application's value swapped in from ctx->vec15.
 *   low 2 GB  one area for tables that emitted code reaches with 32-bit addresses:
 *           indirect table, constants, return addresses, order shards
 *
 * A path record uses a general register that is dead at that point (a short
 * liveness scan) or spills one to ctx. Emitted code never touches the flags:
 * mov, lea, xchg, jrcxz, pext, paddq only.
 *
 * ---- Boundaries
 *
 * At the first byte of a fragment's body every register but xmm15 holds the
 * application's value: a *boundary*. Signals are delivered only there or at a
 * system call's return (signal.c): the kernel runs our handler on a stack of
 * ours; it notes the signal, blocks the others and single-steps to the next
 * boundary; there the application's own frame is built by deliver.c, with
 * application addresses only. Native code (dispatcher, system calls, record
 * primitive) is compiled with general registers only, so entering it saves
 * sixteen registers and the flags, nothing else.
 *
 * A fault inside a fragment is mapped back to the application's instruction by
 * walking the fragment again (fault.c): each fragment keeps the emitted length
 * of every instruction. A fault on the guard page behind a path chunk moves the
 * record pointer to the next chunk and goes on.
 *
 * ---- Generations
 *
 * Code goes away in one way only (tr_drop_all in link.c): every exit is
 * unlinked, the tables are emptied, the generation is counted up. It happens when
 * code that was translated is unmapped or made writable; at the first thread
 * creation: while there is one thread, locked instructions are plain copies;
 * afterwards each takes a ticket (order.c), as do plain accesses that control
 * wants ordered; and when the path has grown long enough to show what is hot (profile.c):
 * fragments made from then on follow the usual way of their branches, through code
 * that other fragments hold. A thread notes the generation it
 * lives in when it next passes the dispatcher; until all have passed, no fragment of an older
 * one is linked again, and none is entered by the table, so a direct successor is never ambiguous to a reader.
 *
 * ---- When it cannot go on
 *
 * Writable code (JIT compilers), %gs, instructions the decoder does not know:
 * tr_detach() (native.c). All threads leave the cache at their next exit and
 * go on natively, with the program's own signal handlers reinstalled; one note.
 *
 * Locking: tr_lock() guards the cache, the fragment and exit tables and the code
 * ranges. Signal handlers take no lock. Nothing here calls libc.
 */
#ifndef CSCHED_TRANSLATE_TRANSLATE_H
#define CSCHED_TRANSLATE_TRANSLATE_H

#include "common/trace_format.h"
#include "preload/raw.h"
#include "preload/record/stream.h"
#include "preload/shim.h"
#include "preload/translate/decode.h"
#include "preload/translate/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How long a fragment may be: side exits, instructions, direct jumps and calls that are followed. Of
 * code that is known to be hot (profile.c) longer ones leave fewer bytes: with 32, 256 and 12 instead of 16, 96 and 4 pigz leaves
 * 28 instead of 36 MB, python3 43 instead of 58.
 */
#define TR_MAX_SIDES TRC_MAX_SIDES
#define TR_MAX_INSNS 256
#define TR_MAX_FOLLOW 12
#define TR_COLD_SIDES 16
#define TR_COLD_INSNS 96
#define TR_COLD_FOLLOW 4 /* jumps only, see direct_transfer() */
#define TR_STRAIGHT_SIDES 6 /* where nothing is known yet: code behind is often never reached */
#define TR_MAX_BACK 8
#define TR_MAX_CALLS 8
#define TR_TARGETS 4 /* of one indirect branch that are looked for one after the other */
#define TR_MAX_ITEMS 16
#define TR_NSIG 64

/* struct kernel sigaction and what siginfo_t holds, as the kernel lays them out. */
struct tr_sigaction {
	uint64_t handler, flags, restorer, mask;
};

struct tr_siginfo {
	int32_t signo, error, code, pad;
	union {
		uint64_t address;
		uint8_t rest[112];
	};
};
_Static_assert(sizeof(struct tr_siginfo) == 128, "siginfo_t is 128 bytes");

struct tr_signal_table {
	struct tr_sigaction act[TR_NSIG + 1];
};

struct tr_stack {
	uint64_t sp;
	int32_t flags, pad;
	uint64_t size;
};

/* A crash that the program handles itself: as long as its handler runs nobody knows whether it is the failure. */
struct tr_crash {
	uint64_t frame, low; /* of the handler: it runs as long as the stack pointer is between them; 0: there is none */
	struct shim_fault fault;
	uint64_t regs[TRC_NREGS];
	uint64_t returned;   /* the handler has: where on the path, plus one */
	bool written;
};

#define TR_QUEUE 4
#define TR_HELD 5 /* one for each of SIG_FAULTS */

struct tr_ctx {
	struct tr_ctx *self;
	uint64_t regs[16];
	uint64_t rflags, pc;
	uint64_t scratch_rcx, scratch_rdx, spill;
	uint64_t ptr;     /* valid while in native code */
	uint64_t stack;
	uint64_t exit, resume, kind;
	uint64_t pending;
	uint64_t shard, spin;
	uint64_t native_gs;
	uint64_t scratch_r11;
	uint8_t vec15[64];
	uint64_t split;
	struct shim_thread *thread;
	uint64_t ticket;
	/* from here on only C looks */
	uint8_t *path_begin, *path_end;
	struct tr_ctx *next;       /* all contexts, never unlinked */
	struct tr_ctx *next_leaving; /* of those whose threads end */
	uint32_t alive;            /* cleared by the kernel when the thread is really gone; vfork: by the parent */
	uint32_t go;               /* set by the parent once the clone is recorded */
	uint64_t kernel_mask;      /* new threads: signal mask to begin with */
	bool in_call;              /* blocked or running in a system call */
	bool native;               /* left translated code for good */
	bool vfork_child;
	bool no_tsc;               /* PR_SET_TSC: as far as the program knows, rdtsc faults. We need it */
	bool own_process;          /* shares our memory, but is no thread of ours: can be killed alone */
	bool stepping;             /* single-stepping to a boundary */
	bool path_dead;            /* path bytes go nowhere any more */
	bool in_callout;
	bool poked;                /* made to leave, perhaps out of a system call */
	bool stopped;              /* stop.c: for good */
	bool unasked;              /* epoch.c: is sent no signal */
	bool nudged;               /* epoch.c: a system call that was interrupted is to be made again */
	uint32_t resting;          /* epoch.c: in a system call that may take any time */
	uint32_t epoch;            /* the last one it has a record in */
	struct tr_parked *parked;  /* epoch.c: stands still at a boundary */
	uint64_t fs_base;          /* as far as it was looked at, or set by a system call */
	bool falls_silent;         /* once it is native, no system call of ours */
	uint64_t generation;       /* last one this thread noted */
	uint8_t *scratch;          /* for path bytes that go nowhere; NULL until it is needed */
	uint64_t clear_tid;        /* the application's */
	struct {
		uint64_t at;       /* the area the program believes registered; 0: none */
		uint32_t len, signature;
	} rseq;
	uint64_t sigmask;          /* as the application believes it to be */
	uint64_t wait_mask;        /* sigsuspend and kin: mask in force when interrupted */
	bool has_wait_mask;
	struct tr_signal_table *signals; /* shared, or a vfork child's own: */
	struct tr_signal_table own_signals;
	struct tr_stack alt;       /* the application's sigaltstack */
	struct tr_siginfo queue[TR_QUEUE];
	struct tr_siginfo held[TR_HELD]; /* sent fault signals the application has blocked */
	struct tr_siginfo passed;  /* what is known of one that another thread has passed on to this one */
	int32_t passing;           /* its number; 0: none is on its way */
	struct tr_siginfo fault;   /* synchronous signal on its way to delivery ... */
	uint32_t fault_fragment;   /* id, when it happened inside one */
	uint64_t fault_error, fault_trap, fault_cr2; /* ... and what its frame shows */
	bool step_pushf;           /* the instruction being stepped pushes the flags */
	uint64_t fork_next;        /* in a forked child: where it goes on */
	void *map;                 /* the mapping everything lives in */
	size_t map_len;
	uint64_t last_time;        /* tsc of the last TRC_TIME */
	uint64_t profile_from;     /* profile.c: in the chunk, where ... */
	uint32_t profile_frag;     /* ... this fragment begins */
	uint32_t profile_made;     /* fragments there were when the last chunk ended */
	struct tr_crash crash;
};
_Static_assert(offsetof(struct tr_ctx, regs) == CTX_REGS, "layout.h");
_Static_assert(offsetof(struct tr_ctx, rflags) == CTX_FLAGS, "layout.h");
_Static_assert(offsetof(struct tr_ctx, pc) == CTX_PC, "layout.h");
_Static_assert(offsetof(struct tr_ctx, scratch_rcx) == CTX_RCX, "layout.h");
_Static_assert(offsetof(struct tr_ctx, scratch_rdx) == CTX_RDX, "layout.h");
_Static_assert(offsetof(struct tr_ctx, spill) == CTX_SPILL, "layout.h");
_Static_assert(offsetof(struct tr_ctx, ptr) == CTX_PTR, "layout.h");
_Static_assert(offsetof(struct tr_ctx, stack) == CTX_STACK, "layout.h");
_Static_assert(offsetof(struct tr_ctx, exit) == CTX_EXIT, "layout.h");
_Static_assert(offsetof(struct tr_ctx, resume) == CTX_RESUME, "layout.h");
_Static_assert(offsetof(struct tr_ctx, kind) == CTX_KIND, "layout.h");
_Static_assert(offsetof(struct tr_ctx, pending) == CTX_PENDING, "layout.h");
_Static_assert(offsetof(struct tr_ctx, shard) == CTX_SHARD, "layout.h");
_Static_assert(offsetof(struct tr_ctx, spin) == CTX_SPIN, "layout.h");
_Static_assert(offsetof(struct tr_ctx, native_gs) == CTX_NATIVE_GS, "layout.h");
_Static_assert(offsetof(struct tr_ctx, split) == CTX_SPLIT, "layout.h");
_Static_assert(offsetof(struct tr_ctx, vec15) == CTX_VEC15, "layout.h");
_Static_assert(offsetof(struct tr_ctx, thread) == CTX_THREAD, "layout.h");
_Static_assert(offsetof(struct tr_ctx, ticket) == CTX_TICKET, "layout.h");

struct tr_frag {
	uint64_t pc;
	uint8_t *body;
	uint8_t *entry;      /* indirect entry stub, NULL none */
	uint64_t generation;
	uint32_t id;
	uint32_t len;        /* of the body, bytes */
	uint32_t lens;       /* index of its emitted lengths in the pool */
	uint16_t ninsns;
	uint8_t kind;        /* enum trc_frag_kind */
	uint8_t nsides;
	/* for profile.c: */
	uint32_t exits;        /* the first of nsides + 1 exits in a row; none behind a TRAP */
	uint32_t passed_taken, guessed, cases; /* as in struct trc_fragment */
	uint16_t values;       /* bit i: item i is a value */
	uint8_t nitems;
};

struct tr_exit {
	uint64_t target;     /* application address */
	uint64_t pc;         /* special, side: of the instruction */
	uint8_t *patch;      /* rel32 to patch; NULL special, indirect */
	uint8_t *stub;       /* where it points while unlinked */
	uint8_t *body;       /* special: successor's body, once known */
	uint32_t frag;       /* index of the fragment it belongs to */
	uint8_t kind;        /* enum trc_frag_kind for special exits */
	uint8_t index;       /* side exits: k */
	uint8_t linked;
};

#define TR_XSAVE_MAX 8192u /* tr_available() sees to it */
#define TR_XSAVE_COMPONENTS 16

/* What is constant after tr_init(). */
struct tr_machine {
	bool avx, avx512, bmi2, fsgsbase;
	uint64_t xcr0;         /* without what must be asked for */
	uint32_t xsave_size;   /* standard layout, for xcr0 */
	uint32_t xsave_at[TR_XSAVE_COMPONENTS]; /* where it has which; 0 not at all */
	uint32_t avx_offset, zmm_offset;        /* the same, of the upper halves */
	uint64_t event_pc;
};
extern struct tr_machine tr_machine;

/* Process-wide state that changes. */
struct tr_state {
	uint64_t generation;
	bool multi;        /* more than one thread ever: tickets at locked instructions */
	bool unsettled;    /* some thread may still live in an older generation */
	bool detached;     /* everything goes native */
	bool stopping;     /* stop.c: every other thread is to stop at its next boundary */
	uint64_t seq;      /* order of system calls and signals */
	struct tr_ctx *contexts;
};
extern struct tr_state tr;

/* takeover.c */
bool tr_available(void);
const char *tr_why_not(void); /* when it is not */
void tr_takeover(void);

/* entry.S */
void tr_enter_direct(void);
void tr_enter_side(void);
void tr_enter_indirect(void);
void tr_enter_special(void);
void tr_enter_callout(void);
void tr_enter_event(void);
void tr_quick_leave(void);
void tr_quick_leave_end(void);
void tr_event_leave(void);
void tr_event_leave_end(void);
void tr_shard_spin(void);
void tr_shard_spin_end(void);
void tr_resume(void) __attribute__((noreturn));
void tr_resume_end(void);
void tr_resume_inside(void);
void tr_resume_inside_end(void);
void tr_from_handler(void);  /* tr_deliver(ctx) on the native stack, then resume */
void tr_event_ret(void);     /* rets, a byte each: where shim_event "returns" */
void tr_sigreturn(void *frame) __attribute__((noreturn)); /* natively, with this frame */
void tr_set_gs(uint64_t base);
void tr_start_here(struct tr_ctx *c);
void tr_restorer(void);      /* of our own handlers */
long tr_call_interruptible(struct tr_ctx *c, long nr, const uint64_t args[6]);
void tr_call_check(void);
void tr_call_insn(void);
void tr_call_abort(void);
long tr_clone(long nr, const uint64_t args[6], struct tr_ctx *child);
void tr_exit_thread(long status) __attribute__((noreturn));
/* Copies n bytes; returns false when either side faults. */
bool tr_copy(void *to, const void *from, size_t n);
void tr_copy_begin(void), tr_copy_end(void), tr_copy_fault(void);
#define TR_NOT_STARTED (-4096l) /* tr_call_interruptible: a signal came first */

/* cache.c */
bool tr_cache_init(void);
void tr_lock(void);
void tr_unlock(void);
struct tr_region *tr_region_for(uint64_t pc);
void tr_fetch_fault(struct tr_ctx *c, uint64_t pc); /* fault.c: nothing can be executed there */
struct tr_frag *tr_frag_of(uint64_t cache_pc);     /* fragment whose body holds it */
bool tr_in_cache(uint64_t cache_pc);
void *tr_alloc(size_t len);                        /* own memory, page granular */
void *tr_alloc_at(uint64_t address, size_t len, int prot);
void tr_populate(void *p, size_t len);
/* Memory that is used from its beginning on. */
/* Tables that are large for large programs only. */
struct tr_growing {
	uint8_t *base;
	size_t mapped, most;
	uint32_t own; /* which of ours */
};
bool tr_grow_begin(struct tr_growing *g, size_t most, size_t first);
bool tr_grow(struct tr_growing *g, size_t need); /* false: no room */
struct tr_area {
	uint8_t *start, *ready, *end; /* pages below `ready` are present */
};
void tr_stay_ahead(struct tr_area *a, const uint8_t *used);
void tr_own(void *p, size_t len);                  /* memory of ours that was mapped elsewhere */
bool tr_owns(uint64_t start, uint64_t end);        /* overlaps memory of ours */
uint64_t tr_owned_bytes(void);
extern bool tr_locks_future; /* mlockall(): what is mapped from now on is present at once, if it can be accessed */
uint64_t tr_owned_next(uint64_t address, uint64_t *end); /* next own range at or above */

struct tr_region {
	uint8_t *base, *hot, *hot_end, *cold, *end;
	struct tr_area hot_area, cold_area;
	uint32_t *frags; /* indices, by rising body address */
	uint32_t nfrags;
};

/*
 * order.c: what the recorder itself does to the application's memory takes a ticket,
 * too, and does it before the end. Nothing in between may wait for another thread.
 */
uint32_t tr_order_begin(uint64_t address);
void tr_order_end(uint64_t address);

/* code.c: executable ranges of the application */
struct tr_code {
	uint64_t start, end;
	bool writable;
	bool made; /* at run time: of no file, or of one that is shared, and so written elsewhere */
};
bool tr_code_refresh(void);
bool tr_code_is_known(void); /* false: what is not found may be there all the same */
void tr_code_none(void);                           /* the same by whoever reads that file anyway: ... */
void tr_code_line(const char *line);               /* ... forget all, then each line */
const struct tr_code *tr_code_at(uint64_t pc);
const struct tr_code *tr_code_in(uint64_t start, uint64_t end); /* some of it that is known */
size_t tr_code_avail(uint64_t pc);                 /* bytes that may be decoded, at most 15 */
const struct insn *tr_insn_at(uint64_t pc); /* until the next call; len 0: none */
void tr_code_update(uint64_t start, uint64_t end, int prot, bool made); /* mapped anew */
void tr_code_used(uint64_t pc);                    /* this page has been translated */
bool tr_code_is_used(uint64_t start, uint64_t end);
void tr_code_forget(void);

/* fragment.c, link.c */
enum tr_found { TR_FOUND, TR_UNMAPPED, TR_UNTRANSLATABLE };
/* How control comes to an address for the first time: code for it can stand before the body. */
enum tr_way_kind { TR_WAY_OTHER, TR_WAY_SIDE, TR_WAY_ENTRY };
struct tr_way {
	enum tr_way_kind kind;
	uint32_t exit; /* TR_WAY_SIDE */
};
/* Translates when needed; locked. */
enum tr_found tr_find(uint64_t pc, const struct tr_way *way, struct tr_frag **f);
struct tr_frag *tr_lookup(uint64_t pc);
void tr_insert(struct tr_frag *f);
struct tr_frag *tr_frag_at(uint32_t index);
struct tr_frag *tr_frag_new(void);
bool tr_frag_known(uint32_t id);
uint32_t tr_frag_count(void);
struct tr_exit *tr_exit_at(uint32_t id);
uint32_t tr_exit_new(struct tr_exit **x);
/* Beside the emitted length of an instruction: how to read a fault in it. */
enum tr_len_flag {
	TR_LEN_TICKET = 0x8000, /* it faults with its shard's lock held */
	TR_LEN_VEC15 = 0x4000,  /* the application's xmm15 is in the register */
	TR_LEN_TAKEN = 0x2000,  /* a branch whose target comes next */
	TR_LEN_LOW15 = 0x1000,  /* of the application's xmm15 only 128 bits are */
};
#define TR_LEN(l) ((l) & 0x0fffu)
uint16_t *tr_lens(uint32_t at);
uint32_t tr_lens_new(const uint16_t *lens, unsigned n);
void tr_link_direct(struct tr_exit *x, struct tr_frag *f);
void tr_link_side(struct tr_exit *x, struct tr_frag *f);
void tr_publish(struct tr_frag *f);
/* The same, right before a body: emitted at tr_at, then in use once the body is there. */
bool tr_side_before(const struct tr_exit *x);
void tr_side_linked(struct tr_exit *x, const uint8_t *code);
bool tr_entry_before(const struct tr_frag *f);
void tr_entry_ready(struct tr_frag *f, uint8_t *code);
void tr_drop_all(void);
void tr_drop_all_inside(void); /* the caller goes on in a fragment that is dropped */
bool tr_settled(void);
#define TR_EXITS_MAX (1u << 23)
uint32_t tr_exit_next(void); /* id of the one made next */
/* Memory for exits to come, to be used until the next one is made; NULL: not so much. */
void *tr_exits_room(size_t len);

/* profile.c */
enum tr_usual { TR_USUAL_UNKNOWN, TR_USUAL_PASSED, TR_USUAL_TAKEN };
enum tr_usual tr_usual_way(uint64_t branch_pc);
bool tr_is_hot(uint64_t pc);
void tr_profile_begin(struct tr_ctx *c, uint64_t rip);
void tr_profile_end(struct tr_ctx *c, uint64_t end);
void tr_profile_stop(struct tr_ctx *c);
void tr_profile_forget(void);

/* targets.c: where indirect branches lead, the most frequent first */
struct tr_targets {
	uint64_t to[TR_TARGETS];
	unsigned n;
	bool usual; /* the first is where it goes nearly always */
	bool sure;  /* ... always */
};
struct tr_targets tr_targets_of(uint64_t pc);
void tr_targets_add(uint64_t pc, uint64_t to, uint32_t times);
void tr_targets_seen(uint64_t pc, uint32_t times);
bool tr_targets_clear(void); /* all; false: there is no memory for them */

extern struct rec_stream tr_frags_stream;

/* dispatch.c */
void tr_dispatch(struct tr_ctx *c);
void tr_go_on(struct tr_ctx *c); /* resume at c->pc */
void tr_new_generation(struct tr_ctx *c, uint64_t pc, uint64_t now);
/* From pc on, where it goes on. */
static inline void tr_note_generation(struct tr_ctx *c, uint64_t pc)
{
	uint64_t now = __atomic_load_n(&tr.generation, __ATOMIC_ACQUIRE);

	if (__builtin_expect(c->generation != now, 0))
		tr_new_generation(c, pc, now);
}

/* path.c */
uint64_t tr_pos(const struct tr_ctx *c); /* bytes of tN.path so far; native code only */
void tr_path_byte(struct tr_ctx *c, unsigned byte);
void tr_path_target(struct tr_ctx *c, uint32_t id);
bool tr_path_open(struct tr_ctx *c);
void tr_path_next(struct tr_ctx *c, uint64_t at);
void tr_path_room(struct tr_ctx *c, uint64_t at, unsigned n);
void tr_path_close(struct tr_ctx *c);
void tr_time(struct tr_ctx *c);

/* syscall.c and friends */
uint64_t tr_syscall(struct tr_ctx *c, uint64_t pc, uint64_t next);
bool tr_nondet(struct tr_ctx *c, uint64_t pc); /* false: it faults */
uint64_t tr_seq(void);

/* signal.c, deliver.c, fault.c */
void tr_signals_init(struct tr_ctx *c);
extern struct tr_signal_table tr_shared_signals;
void tr_broken_base(void); /* an address to relate internal errors to */
void tr_deliver(struct tr_ctx *c);
struct tr_app_state {
	uint64_t regs[TRC_NREGS];
	uint64_t next;     /* the instruction after the one it is about */
	bool xmm15_is_app; /* the vector register holds the application's value ... */
	bool xmm15_low;    /* ... but for what is above its 128 bits */
};
bool tr_fault_state(struct tr_ctx *c, struct tr_frag *f, uint64_t rip, const uint64_t regs[16],
		    uint64_t rflags, struct tr_app_state *out);
void tr_unclobber(const struct tr_ctx *c, uint64_t ptr, uint64_t regs[16]);
void tr_fatal(struct tr_ctx *c, const struct tr_siginfo *si) __attribute__((noreturn));

/* thread.c */
struct tr_ctx *tr_ctx_new(struct shim_thread *t);
uint8_t *tr_ctx_last_page(struct tr_ctx *c);         /* nobody else uses it; a guard is behind it */
void tr_ctx_attach(struct tr_ctx *c);
void tr_ctx_leaving(struct tr_ctx *c);               /* its thread ends: another one's, once the kernel says so */
void tr_ctx_forget_leaving(void);                    /* all: they are not alive in a forked child */
struct tr_ctx *tr_self(void);
uint64_t tr_libc_rseq(void); /* the calling thread's area as libc lays it out; 0: this one has none */
void tr_record_machine(void); /* kv records: what the analyzer must know of it */
void tr_record_start(struct tr_ctx *c);
uint32_t tr_xsave(struct tr_ctx *c, void *area); /* the application's, standard layout */

/* What may be written can be read, too, on this processor. */
#define TR_READABLE (1 | 2) /* PROT_READ, PROT_WRITE */
/* snapshot.c, stop.c */
void tr_snapshot(enum trc_stream stream);
/*
 * A checkpoint in two parts, under tr_lock(): threads and memory that is shared with others, then the rest, perhaps in another process. False: it will not
 * be whole. Who leaves the second part to somebody else says so.
 */
struct tr_pages_what;
bool tr_checkpoint_begin(const struct tr_pages_what *what);
bool tr_checkpoint_end(const struct tr_pages_what *what, bool copy);
void tr_checkpoint_left(void);
/* After tr_detach(): every other thread leaves now, and not at some time. */
void tr_drive_out(struct tr_ctx *self);
#define TR_POKE (-77) /* si_code of the signal it does that with */
void tr_stop_others(struct tr_ctx *self);
void tr_stop_here(struct tr_ctx *c) __attribute__((noreturn));
/* native.c */
void tr_detach(struct tr_ctx *c, const char *why);
void tr_leave(struct tr_ctx *c) __attribute__((noreturn));

static inline uint64_t tr_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
