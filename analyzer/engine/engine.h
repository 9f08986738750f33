/*
 * The engine: executes guest code of one thread at a time.
 *
 * A block is a straight run of guest instructions, compiled once to bytecode:
 *
 *   integer code   lifted by libVEX, each IR statement one or no operation
 *   vector and     executed by the host's processor itself: a stub loads the
 *   floating code  registers the instruction names, executes it with its memory
 *                  operand redirected to a buffer, and stores them back. What
 *                  the hardware does with rounding, sticky flags and NaNs is
 *                  then right by construction, and any instruction the host
 *                  knows needs no table here.
 *   the rest       (rep, xsave, fs base ...) small functions of our own
 *
 * Operands are byte offsets into the frame: guest registers, temporaries and
 * constants lie in one reservation of address space. The guest registers of
 * the thread that runs are in the frame; those of the others in struct mach_cpu.
 *
 * Faults are exact. A write to a register that a later one in the block makes
 * superfluous is left out of the bytecode but kept in a side list; when an
 * operation faults, the list brings the registers up to date.
 */
#ifndef CSCHED_MACHINE_ENGINE_H
#define CSCHED_MACHINE_ENGINE_H

#include "analyzer/engine/memory.h"
#include "analyzer/engine/xstate.h"
#include "common/err.h"
#include "common/vec.h"

#include <valgrind/libvex_guest_amd64.h>

#define MACH_STATE_SIZE sizeof(VexGuestAMD64State)
#define MACH_OFF(reg) ((uint32_t)offsetof(VexGuestAMD64State, guest_##reg))
#define MACH_MAX_INSNS 64   /* per block */
#define MACH_JUMPS 4096
#define MACH_WORK (16u << 20) /* bytes: so much work inside an instruction before give_up() is asked */
#define MACH_SLOW 16u         /* a byte that is handled by itself, against one in a page of them */

/*
 * What AVX-512 adds to the vector registers that libVEX has room for: the upper
 * halves of 0 to 15, all of 16 to 31, and the masks.
 */
struct mach_wide {
	uint8_t upper[16][32];
	uint8_t high[16][64];
	uint64_t k[8];
};

/* Registers of a thread. */
struct mach_cpu {
	VexGuestAMD64State g;
	struct mach_wide wide;
	uint8_t fx[512] __attribute__((aligned(64))); /* FXSAVE layout; its XMM part is unused */
	uint64_t insns; /* executed so far */
};

struct mach_frame {
	VexGuestAMD64State g __attribute__((aligned(64)));
	struct mach_wide wide __attribute__((aligned(64)));
	uint8_t fx[512] __attribute__((aligned(64)));
	uint8_t operand[4096] __attribute__((aligned(64))); /* of native instructions */
	uint64_t flags; /* rflags around a native instruction */
};

#define MACH_WIDE(part) ((uint32_t)(offsetof(struct mach_frame, wide) + \
				     offsetof(struct mach_wide, part)))
/* All that can carry an expression and belongs to a thread. */
#define MACH_REGS_SIZE offsetof(struct mach_frame, fx)

/* Where temporaries and constants begin in the frame. */
#define MACH_TEMPS 0x4000u
#define MACH_TEMP_SIZE 16u
#define MACH_MAX_TEMPS 24576u
#define MACH_CONSTS (MACH_TEMPS + MACH_MAX_TEMPS * MACH_TEMP_SIZE)
#define MACH_FRAME_SIZE (64u << 20)
_Static_assert(sizeof(struct mach_frame) <= MACH_TEMPS, "the frame's head fits");

enum mach_code {
#define MACH_OP(name, ...) OP_##name,
#include "analyzer/engine/ops.def"
#undef MACH_OP
	OP_COUNT,
	OP_GONE = OP_COUNT /* while a block is compiled: to be left out */
};

struct mach_op {
	uint16_t code;  /* enum mach_code */
	uint8_t size;   /* bytes of the access, or of the result */
	uint8_t insn;   /* index of the guest instruction in the block */
	uint32_t d, a, b; /* frame offsets */
	uint64_t imm;   /* constant, pc, or pointer, depending on the code */
};

/* A register write that was left out because the one at op `until` follows. */
struct mach_late_put {
	uint32_t at, until; /* op indices */
	uint32_t offset, from;
};

/* The same code may be compiled in several ways. */
enum block_variant {
	BLOCK_WHOLE,
	BLOCK_STEP,  /* a single instruction */
	BLOCK_ITEM,  /* stops at m->items, which never change */
	BLOCK_BREAK, /* stops at m->breaks */
	BLOCK_DEAD,  /* was made for other breakpoints or other code: no link leads here any more */
	BLOCK_STALE, /* its code may have changed: to be looked at before it is used again */
};

/* Places to stop at; sorted. */
struct mach_pcs {
	const uint64_t *v;
	size_t n;
};

enum mach_block_end {
	BLOCK_FALL,     /* straight on: too long, or something special follows */
	BLOCK_COND,     /* conditional branch, loop, jrcxz */
	BLOCK_DIRECT,   /* jmp, call */
	BLOCK_INDIRECT, /* jmp *x, call *x, ret */
	BLOCK_STOP,     /* the engine hands over: see enum mach_stop */
};

struct mach_block {
	uint64_t pc;
	uint64_t end_pc;     /* behind its last instruction */
	uint64_t last_pc;    /* of its last instruction */
	uint64_t target;     /* BLOCK_COND: when taken */
	struct mach_op *ops;
	uint32_t nops;
	uint8_t ninsns;
	uint8_t end;         /* enum mach_block_end */
	bool call, ret;      /* BLOCK_DIRECT, BLOCK_INDIRECT: which */
	uint8_t variant;     /* enum block_variant ... */
	uint8_t was;         /* ... before it became BLOCK_STALE */
	uint32_t temps;      /* temporaries in use */
	const uint8_t *bytes; /* what it was made from, up to end_pc */
	uint64_t insn_pc[MACH_MAX_INSNS + 1];
	struct mach_late_put *late;
	uint32_t nlate;
	struct mach_block *link[2]; /* successors: [0] end, [1] exit */
	struct mach_block *next;    /* in the hash chain */
};

enum mach_stop {
	STOP_NONE,
	STOP_LIMIT,     /* insn_limit was reached */
	STOP_SYSCALL,   /* rip is at the syscall instruction; it has no effect yet */
	STOP_NONDET,    /* rip is at rdtsc, cpuid, ... */
	STOP_EVENT,     /* rip is at the recorder's event primitive */
	STOP_BREAK,     /* rip is one of the places to stop at */
	STOP_FAULT,     /* rip is at an instruction that raises fault.signal */
	STOP_UNDECODED, /* rip is at an instruction the machine does not know */
	STOP_BRANCH,    /* the branch hook refused; rip is where the branch went */
	STOP_HOOK,      /* a hook asked for it; rip is the next instruction */
	STOP_WORK,      /* rip is at a string instruction that is half done: give_up() said so */
};

struct mach_fault {
	int signal, code; /* SIGSEGV, SEGV_MAPERR ... */
	uint64_t address;
};

struct mach;

/* taken is 0, 1, or 2 when both ways lead to the same place. */
typedef bool mach_branch_fn(void *arg, struct mach *m, const struct mach_block *b, int taken,
			    uint64_t next);

/*
 * Conditional branches that the caller knows to come next, so that the branch hook need not be
 * called for each: it is called for the first one that is another, or went another way.
 */
struct mach_expected {
	const struct mach_branch_at {
		uint64_t pc, other; /* as struct trc_side has it */
	} *next, *end;
	uint32_t taken; /* bit 0 is for the next one */
	uint64_t insns; /* executed when the last of them was met */
};

enum mach_access_how { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_LOCKED = 4 };

/* size is 1, 2, 4 or 8. Before a write, after a read. */
typedef void mach_access_fn(void *arg, struct mach *m, uint64_t pc, uint64_t address,
			    unsigned size, unsigned how, uint64_t value);

struct shadow;
struct native_code;
struct straight;
struct arena_chunk;

struct mach {
	uint8_t *f;          /* the frame, as bytes */
	struct mach_frame *frame;
	struct mem *mem;
	uint64_t insns;      /* of the running thread */
	uint64_t insn_limit; /* stop before exceeding it */
	bool stop_asked;     /* set by hooks: ends the run at the next block */
	uint64_t event_pc, event_end; /* 0: none; where to go on behind it */
	enum block_variant breaking; /* BLOCK_ITEM, BLOCK_BREAK: where to stop; BLOCK_WHOLE: nowhere */
	struct mach_pcs items, breaks; /* set by mach_set_items(), mach_set_breaks() */
	mach_branch_fn *branch;
	void *branch_arg;
	struct mach_expected expected; /* only with a hook */
	mach_access_fn *access; /* selects the slow interpreter when not NULL */
	void (*locked_end)(void *arg, struct mach *m, uint64_t pc);
	void (*fence)(void *arg, struct mach *m);
	void *access_arg;
	struct shadow *shadow;  /* likewise */
	uint32_t *slots;        /* its expressions per 8 bytes of the frame; NULL: none */
	/* Asked now and then inside an instruction that takes long; true: enough. */
	bool (*give_up)(void *arg);
	void *give_up_arg;
	uint64_t work;       /* since it was asked: bytes, those that are told one by one MACH_SLOW-fold */
	struct mach_fault fault;
	char why[160];       /* STOP_UNDECODED: what and where */
	uint64_t native_insns;
	uint64_t native_pc;  /* the instruction that the host executes now; 0: none */
	bool in_lock;        /* inside a locked instruction ... */
	bool lock_loaded;    /* ... that has read its operand already */
	/* Some register has been used in 512 bits: native code handles all of each. Until
	 * then the upper 256 bits of every one are zero, and nobody need look. */
	bool wide;
	struct mach_xlayout xlayout;
	uint32_t mxcsr_masks; /* the guest's exception masks; the host runs masked */
	uint32_t mxcsr;       /* mxcsr_kept: the guest's, while the host's is anybody's */
	bool mxcsr_kept;
	/* position inside a block, for hooks */
	const struct mach_block *now;
	const struct mach_op *now_op;
	/* code */
	struct mach_block **blocks;
	size_t nblocks, blocks_cap;
	struct mach_block *jumps[MACH_JUMPS]; /* some of them, by pc: where indirect branches go */
	struct arena_chunk *arena; /* memory of all blocks */
	uint32_t consts;     /* next free constant */
	struct native_code *native;
	struct straight *straight; /* NULL: none on this host */
	enum mach_stop straight_stop;
	uint64_t lifted, flushes;
	bool flush_wanted;
};

err_t mach_engine_new(struct mach **out);
void mach_engine_free(struct mach *m);

/* Runs the thread in the frame until something stops it. */
enum mach_stop mach_engine_run(struct mach *m);

/* A register is used in 512 bits from here on. */
void mach_go_wide(struct mach *m);

/* Thread switch. */
void mach_cpu_init(struct mach_cpu *cpu);
void mach_cpu_load(struct mach *m, const struct mach_cpu *cpu);
void mach_cpu_store(struct mach *m, struct mach_cpu *cpu);

uint64_t mach_rflags(const VexGuestAMD64State *g);
void mach_set_rflags(VexGuestAMD64State *g, uint64_t rflags);

/* Inside a hook: bring the registers in the frame up to date for now_op. */
void mach_sync_registers(struct mach *m);

/* ---- compile.c ---- */
struct mach_block *mach_block_get(struct mach *m, uint64_t pc, enum block_variant variant);
void mach_blocks_flush(struct mach *m);
/* Bytes of [lo, hi) may become others: what was made from them is compared with memory before it is
 * executed again. The block that is being executed comes to its end. */
void mach_blocks_stale(struct mach *m, uint64_t lo, uint64_t hi);
/* The places stay the caller's. Items are set before anything is executed. */
void mach_set_items(struct mach *m, const uint64_t *pcs, size_t n);
void mach_set_breaks(struct mach *m, const uint64_t *pcs, size_t n);
bool mach_pcs_have(const struct mach_pcs *p, uint64_t pc);
uint32_t mach_const(struct mach *m, uint64_t lo, uint64_t hi);

/*
 * The guest's floating-point status must not see the arithmetic of those who are told what it
 * does. Setting it takes long, so it comes back only where it is needed: see exec.c.
 */
static inline void mach_mxcsr_keep(struct mach *m)
{
	if (!m->mxcsr_kept)
		m->mxcsr = __builtin_ia32_stmxcsr();
	m->mxcsr_kept = true;
}

static inline void mach_mxcsr_back(struct mach *m)
{
	if (m->mxcsr_kept)
		__builtin_ia32_ldmxcsr(m->mxcsr);
	m->mxcsr_kept = false;
}

static inline void *mach_at(const struct mach *m, uint32_t offset)
{
	return m->f + offset;
}

#endif
