/*
 * The trace on disk: what the shim writes and the analyzer reads.
 *
 * A trace is a directory NAME.PID.csched of streams, one file each:
 *
 *   process    identity, modules, threads, notes, the failure, the end
 *   tN.rec     thread N: sync events, system calls, signals, timestamps
 *   tN.path    thread N: path bytes (mode "path" only)
 *   frags      the translator's fragment table: what path bytes mean
 *   memory     writable memory and mappings at take-over
 *   final      memory at the end of the run (option final=1, for tests)
 *
 * In mode "path" the first chunks of t0.rec, frags and t0.path are *guests* in the file of the process
 * stream, behind its first: a small program needs no files for them, which cost more than all else that its
 * recording does. Their own files then begin with the second chunk.
 *
 * The first chunks of other threads lie there as well, in both modes, in *slots*: several are made at a time, and a thread
 * takes the next that is free. Its own file, if there is one, begins with the second chunk.
 *
 * A flight recorder (options ring=, last=) begins anew from time to time, with a checkpoint. What it records from one
 * to the next is an *epoch*: the files above, called eE.process, eE.tN.rec ... with E counting from 1; only frags goes on.
 * eE.memory is the checkpoint, with the threads in it: TRC_STATE. It gets this name when it is whole, so an epoch that has
 * none (but the first) can be read only behind the one before, which it continues. A checkpoint may hold only what has changed since
 * an earlier one (TRC_BASE); of an epoch that is gone it may be all that is left, and is called eE.pages then. Positions in streams count on, and so do tickets and
 * the order of system calls. What stands before TRC_EPOCH in eE.process repeats what an earlier one said.
 *
 * N counts threads in order of creation, from 0. A stream is a sequence of
 * chunks; a chunk is a 64-byte header and a payload. Chunks are written
 * through shared file mappings, so whatever was stored before a SIGKILL is on
 * disk. A sealed chunk carries its length and checksum. The last chunk of a
 * stream may be open: its unused tail is zero. It need not be the last in the file,
 * see enum trc_place.
 *
 * Record streams (all but *.path): the payload is a sequence of 8-byte aligned
 * records; the first 8 bytes (type, flags, size) are stored last, in one
 * store, so a zero head means "the end". Records never cross a chunk.
 *
 * Path streams: no record has a zero first byte, see trace_path_format.h.
 *
 * All numbers are little-endian. csched-trace(5) is the reference for people;
 * this header is the reference for programs. Readers must check everything:
 * traces come from elsewhere.
 */
#ifndef CSCHED_COMMON_TRACE_FORMAT_H
#define CSCHED_COMMON_TRACE_FORMAT_H

#include "common/trace_sum.h"

#include <stddef.h>
#include <stdint.h>

#define TRC_VERSION 11
#define TRC_VERSION_GUESTS 6 /* from this on the process stream's file may hold beginnings of others ... */
#define TRC_VERSION_SLOTS 8  /* ... and of any thread */
#define TRC_VERSION_EPOCHS 9
/*
 * Still read: 1 lacks TRC_AGAIN, 2 has a time in every one, 3 has no cases, 4 no TRC_AGAINS, 5 no
 * guests, 6 no TRC_TICKET_NEXT, 7 no slots, 8 no epochs, 9 no objects, 10 no checkpoints with differences.
 */
#define TRC_VERSION_OLDEST 1
#define TRC_MAGIC 0x6b6e686368637363ull /* "cschchnk" */
#define TRC_CHUNK_OPEN UINT32_MAX

enum trc_stream {
	TRC_STREAM_PROCESS = 1,
	TRC_STREAM_THREAD,
	TRC_STREAM_PATH,
	TRC_STREAM_FRAGS,
	TRC_STREAM_MEMORY,
	TRC_STREAM_FINAL,
};

/*
 * Where a chunk lies in its file. The writer uses a live chunk again and again: when
 * it is full, its contents are appended to the file as a chunk of their own and it goes
 * on under the next sequence number. So it lies before chunks that come before it.
 * The last chunk in the file may be a copy half made, recognised by having a live
 * chunk's sequence number: the live one counts.
 */
enum trc_place {
	TRC_PLACE_SEQUENCE = 0, /* behind its predecessor, as usual */
	TRC_PLACE_LIVE = 1,     /* somewhere before its successors' place */
	TRC_PLACE_MOVED = 2,    /* killed while being emptied: only its capacity means something */
	TRC_PLACE_FREE = 3,     /* a slot that no thread has taken: likewise */
};

struct trc_chunk {
	uint64_t magic;
	uint16_t version;
	uint16_t stream;   /* enum trc_stream */
	uint32_t thread;   /* N for tN.*, 0 otherwise */
	uint32_t sequence; /* 0, 1, 2 ... inside the stream */
	uint32_t capacity; /* payload bytes that fit; the next chunk starts behind them */
	uint64_t start;    /* payload bytes in all earlier chunks of this stream */
	uint64_t header_sum; /* trc_checksum() of the 32 bytes above; written first */
	uint32_t length;   /* payload bytes used, or TRC_CHUNK_OPEN */
	uint32_t place;    /* enum trc_place */
	uint64_t checksum; /* trc_checksum() of the payload once sealed */
	uint64_t reserved2;
};
_Static_assert(sizeof(struct trc_chunk) == 64, "chunk header is 64 bytes");

/* ---- records ---- */

struct trc_rec {
	uint16_t type;  /* enum trc_type; 0 is never written */
	uint16_t flags; /* meaning depends on the type */
	uint32_t size;  /* of the whole record, a multiple of 8, at least 8 */
};

enum trc_type {
	/* process stream */
	TRC_KV = 1,       /* identity: one key, one value */
	TRC_MODULE,       /* a file-backed mapping of an ELF file */
	TRC_THREAD,       /* a thread came to life */
	TRC_THREAD_NAME,
	TRC_NOTE,         /* degradation or assumption, in words */
	TRC_FAILURE,
	TRC_STACK,        /* raw stack and registers of one thread at the failure */
	TRC_BLOCKED,      /* one blocked thread of a deadlock or hang */
	TRC_WITHDRAWN,    /* the failure before it was none: the program went on */
	TRC_CHILD,        /* fork, vfork or posix_spawn made a process */
	TRC_EXEC,         /* the process is about to become another program */
	TRC_END,          /* how the run ended */
	TRC_EPOCH,        /* what was carried over from the epoch before ends here */
	TRC_THREAD_ID,    /* of a thread whose ancestors are gone */
	/* thread streams */
	TRC_SYNC = 32,    /* an interposed operation */
	TRC_START,        /* registers at the start of the thread (first record, path mode) */
	TRC_ENTER,        /* system call entry */
	TRC_LEAVE,        /* system call return with its effects */
	TRC_NONDET,       /* rdtsc, cpuid, rdrand ... */
	TRC_SIGNAL,       /* a handler is about to run */
	TRC_TIME,         /* timestamp for a path position */
	TRC_REGS,         /* registers at a system call (option check=1) */
	TRC_GENERATION,   /* fragments of a later generation from here on */
	TRC_NATIVE,       /* the thread left translated code */
	TRC_THREAD_EXIT,
	TRC_AGAIN,        /* an interposed operation like an earlier one of this thread */
	TRC_STOP,         /* stopped for good, because another thread ends the process (option final=1) */
	TRC_AGAINS,       /* several such operations in a row, a byte each */
	/* frags stream */
	TRC_FRAGMENT = 64,
	TRC_DROPPED,      /* fragments of an address range are gone */
	/* memory and final streams */
	TRC_REGION = 96,  /* one mapping */
	TRC_PAGES,        /* contents */
	TRC_STATE,        /* one thread at a checkpoint */
	TRC_TICKETS,      /* the next ticket of each shard, at a checkpoint */
	TRC_BASE,         /* what a checkpoint is a difference to: its first record */
	TRC_LEFT,         /* pages that an earlier checkpoint has and that hold what their mapping begins with */
	TRC_CARRIED,      /* an operation before the checkpoint that still matters */
};

/* Process stream. Strings are not terminated; lengths are in bytes. */

struct trc_kv {
	struct trc_rec rec;
	uint32_t key_len, value_len;
	char data[]; /* key, then value */
};

struct trc_module {
	struct trc_rec rec;
	uint64_t start, end, offset; /* mapping and file offset */
	uint64_t tsc;     /* 0: there at take-over */
	uint32_t prot;    /* PROT_* */
	uint8_t build_id_len, pad;
	uint16_t path_len;
	uint8_t build_id[32];
	char path[];
};

struct trc_thread {
	struct trc_rec rec;
	uint32_t thread, parent; /* indices; main is its own parent */
	uint32_t ordinal;        /* j: the j-th child of its parent, from 1; 0 for main */
	uint32_t tid;            /* the kernel's */
	uint64_t tsc;
	uint64_t pthread;        /* pthread_t, or 0 for a raw clone */
};

struct trc_thread_name {
	struct trc_rec rec;
	uint32_t thread, name_len;
	char name[];
};

struct trc_note {
	struct trc_rec rec; /* flags: 0 assumption, 1 degraded (recording is incomplete) */
	uint64_t tsc;
	uint32_t thread, text_len;
	char text[];
};

enum trc_failure_kind {
	TRC_FAIL_ASSERT = 1, /* detail: expression \0 file \0 line \0 function */
	TRC_FAIL_ABORT,      /* detail: glibc's or libstdc++'s message, if any */
	TRC_FAIL_SIGNAL,
	TRC_FAIL_EXCEPTION,  /* detail: type name (mangled) */
	TRC_FAIL_DEADLOCK,
	TRC_FAIL_HANG,
	TRC_FAIL_EXIT,       /* status named by fail_exit= */
	TRC_FAIL_USER,       /* csched_fail(); detail: why */
};

/* x86-64 order: rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15, rip, rflags */
#define TRC_NREGS 18
#define TRC_RSP 4
#define TRC_RIP 16
#define TRC_RFLAGS 17

struct trc_failure {
	struct trc_rec rec; /* flags: enum trc_failure_kind */
	uint64_t tsc;
	uint32_t thread;
	int32_t signal, code, status; /* siginfo's si_signo, si_code; exit status */
	uint64_t address;             /* si_addr */
	uint64_t regs[TRC_NREGS];     /* application addresses */
	uint64_t path_pos;            /* of the failing thread, path mode */
	uint32_t text_len;   /* the reason in words, one line */
	uint32_t detail_len;
	char data[];         /* text, then detail */
};

struct trc_stack {
	struct trc_rec rec; /* flags: 1 when the registers are only rip/rsp as last seen */
	uint32_t thread, length;
	uint64_t regs[TRC_NREGS];
	uint64_t address; /* of the first byte: rsp less the red zone */
	uint8_t bytes[];
};

struct trc_blocked {
	struct trc_rec rec;
	uint32_t thread;
	uint16_t op;      /* enum trc_op */
	uint16_t cycle;   /* 1: part of the cycle of owners */
	uint64_t object;
	uint64_t site;    /* where it waits */
	uint32_t owner;   /* thread index, or UINT32_MAX */
	uint32_t pad;
	uint64_t owner_site; /* where the owner took it, 0 unknown */
};

struct trc_withdrawn {
	struct trc_rec rec;
	uint64_t tsc;
};

struct trc_child {
	struct trc_rec rec; /* flags: 0 fork, 1 vfork, 2 spawn */
	uint64_t tsc;
	uint32_t thread, pid;
};

struct trc_exec {
	struct trc_rec rec;
	uint64_t tsc;
	uint32_t thread, path_len;
	char path[];
};

struct trc_end {
	struct trc_rec rec; /* flags: 0 exit, 1 killed by signal, 2 exec */
	uint64_t tsc;
	int32_t status;  /* exit status or signal number */
	uint32_t thread;
};

struct trc_epoch {
	struct trc_rec rec;
	uint64_t tsc;
	uint32_t epoch;
	uint32_t pause; /* microseconds that threads stood still for the checkpoint before, when it was taken; 0 there is none */
};

/* csched save sends SIGSEGV with this si_code. */
#define TRC_SAVE_CODE (-79)

struct trc_thread_id {
	struct trc_rec rec;
	uint32_t thread, id_len;
	char id[];
};

/* Thread streams. */

enum trc_op {
	TRC_OP_NONE,
	TRC_OP_CREATE, TRC_OP_THREAD_MAIN, TRC_OP_EXIT, TRC_OP_JOIN, TRC_OP_TRYJOIN,
	TRC_OP_TIMEDJOIN, TRC_OP_DETACH, TRC_OP_CANCEL,
	TRC_OP_LOCK, TRC_OP_TRYLOCK, TRC_OP_TIMEDLOCK, TRC_OP_UNLOCK,
	TRC_OP_MUTEX_INIT, TRC_OP_MUTEX_DESTROY, TRC_OP_CONSISTENT,
	TRC_OP_RDLOCK, TRC_OP_TRYRDLOCK, TRC_OP_TIMEDRDLOCK,
	TRC_OP_WRLOCK, TRC_OP_TRYWRLOCK, TRC_OP_TIMEDWRLOCK, TRC_OP_RWUNLOCK,
	TRC_OP_SPINLOCK, TRC_OP_SPINTRYLOCK, TRC_OP_SPINUNLOCK,
	TRC_OP_WAIT, TRC_OP_TIMEDWAIT, TRC_OP_SIGNAL, TRC_OP_BROADCAST,
	TRC_OP_BARRIER_INIT, TRC_OP_BARRIER,
	TRC_OP_SEM_INIT, TRC_OP_SEM_OPEN, TRC_OP_SEM_WAIT, TRC_OP_SEM_TRYWAIT,
	TRC_OP_SEM_TIMEDWAIT, TRC_OP_SEM_POST,
	TRC_OP_ONCE,
	TRC_OP_FORK, TRC_OP_VFORK, TRC_OP_EXEC, TRC_OP_SPAWN,
	TRC_OP_PROCESS_EXIT, TRC_OP_QUICK_EXIT, TRC_OP_ABORT, TRC_OP_ASSERT, TRC_OP_USER_FAIL,
	TRC_OP_PANIC, /* a Rust panic begins to unwind; object: the exception */
	TRC_OP_FUTEX, /* only in TRC_BLOCKED: a wait for a futex that the program made itself */
	TRC_OP_COUNT
};

/*
 * When inside the operation the record was written. Operations that cannot
 * block write one TRC_AT_DONE. A blocking one writes TRC_AT_DONE alone when it
 * got through at once, else TRC_AT_BLOCK and, once through, TRC_AT_DONE. A
 * cond wait always writes TRC_AT_BLOCK (it releases the mutex there) and
 * TRC_AT_DONE; once: BLOCK before the initialiser may run, DONE after.
 * Releases (unlock, post, signal, create, exit) are written *before* the real
 * call, acquisitions after it: an event's timestamp lies inside its effect. A
 * release that was refused is written again with its error. TRC_OP_CREATE is
 * written as TRC_AT_BEGIN before (thread: the child's number) and TRC_AT_DONE
 * after (object: pthread_t, result); FORK, EXEC and SPAWN likewise. The child
 * writes TRC_OP_THREAD_MAIN at TRC_AT_BEGIN (site: its routine) and
 * TRC_OP_EXIT at TRC_AT_DONE.
 */
enum trc_at { TRC_AT_DONE, TRC_AT_BLOCK, TRC_AT_BEGIN };

struct trc_sync {
	struct trc_rec rec; /* flags: op | at << 12 */
	uint64_t tsc;
	uint64_t object;
	uint64_t site;   /* return address in the caller of the interposed function */
	int32_t result;  /* errno-style; 0 for records before the real call */
	uint32_t thread; /* CREATE, JOIN: index of the other thread; else UINT32_MAX */
	uint64_t value;  /* WAIT: mutex; BARRIER_INIT, SEM_INIT: count; MUTEX_INIT: type */
};
/*
 * Threads do the same few operations over and over. One that may be repeated is written with a
 * number behind it (size tells); until another gets that number, TRC_AGAIN with it stands for
 * the same record with another timestamp. Readers show TRC_AGAIN as TRC_SYNC. One of eight bytes
 * has no timestamp (tsc 0): in path mode, where the path says what came before it, and
 * no other thread touched the object since this one last did.
 */
#define TRC_SYNC_SLOTS 128
struct trc_sync_named {
	struct trc_sync sync;
	uint32_t slot, pad; /* below TRC_SYNC_SLOTS */
};

struct trc_again {
	struct trc_rec rec; /* flags: slot */
	uint64_t tsc;       /* may be missing, see above */
};

/*
 * Several without a timestamp in a row: flags has the slot of the first, as before; each further one is a byte, its
 * slot + 1. Zeros behind them fill the record up. The writer makes it longer while it is the stream's last.
 */
struct trc_agains {
	struct trc_rec rec;
	uint8_t more[];
};
#define TRC_SYNC_OP(flags) ((flags) & 0xfff)
#define TRC_SYNC_AT(flags) ((flags) >> 12)

struct trc_start {
	struct trc_rec rec;
	uint64_t regs[TRC_NREGS];
	uint64_t fs_base, gs_base; /* as the application sees them */
	uint64_t tsc;
	uint64_t clear_tid;        /* address the kernel clears at exit, 0 none */
	uint32_t xsave_len, pad;
	uint8_t xsave[];           /* standard (not compacted) XSAVE layout */
};

/*
 * System calls: `seq` comes from one global counter, so entries and returns of
 * all threads are totally ordered. A call that never returned has no LEAVE.
 * Result -512: a signal came before the call began; it will be made again.
 */
struct trc_enter {
	struct trc_rec rec; /* flags: system call number */
	uint64_t tsc;
	uint64_t seq;
	uint64_t path_pos;  /* bytes of tN.path before this call */
	uint64_t pc;        /* of the syscall instruction */
	uint64_t args[6];
};

struct trc_leave {
	struct trc_rec rec; /* flags: system call number */
	uint64_t tsc;
	uint64_t seq;
	int64_t result;
	uint32_t thread;    /* clone: index of the new thread; else UINT32_MAX */
	uint32_t neffects;
	/* neffects times struct trc_effect, each followed by its bytes, 8-aligned */
};

enum trc_effect_kind {
	TRC_EFFECT_WRITE,  /* the kernel wrote these bytes here */
	TRC_EFFECT_FILE,   /* a fresh file mapping holds these bytes; the rest reads as zero */
	TRC_EFFECT_MODULE, /* contents come from the ELF file named by a TRC_MODULE; no bytes */
	TRC_EFFECT_OUTPUT, /* what the program handed to write/send: for comparison only */
	TRC_EFFECT_OUTPUT_SUM, /* the same, when it is long: struct trc_output_sum */
	TRC_EFFECT_OBJECT, /* a shared mapping begins here: struct trc_object */
};

struct trc_output_sum {
	uint64_t length; /* bytes from `address` on, at most TRC_OUTPUT_MAX */
	uint64_t sum;    /* trc_checksum() of them */
};
#define TRC_OUTPUT_MAX 4096

struct trc_effect {
	uint64_t address;
	uint32_t length; /* bytes that follow (0 for MODULE) */
	uint32_t kind;   /* enum trc_effect_kind */
};

enum trc_nondet_kind {
	TRC_RDTSC = 1, TRC_RDTSCP, TRC_CPUID, TRC_XGETBV, TRC_RDRAND, TRC_RDSEED, TRC_RDPID,
};

struct trc_nondet {
	struct trc_rec rec; /* flags: enum trc_nondet_kind */
	uint64_t pc;
	uint64_t path_pos;
	uint64_t rax, rbx, rcx, rdx; /* after the instruction */
	uint64_t dest;               /* RDRAND, RDSEED, RDPID: new value of the register */
	uint32_t reg;                /* its number; 16 none */
	uint32_t rflags;             /* after */
};

/*
 * A handler runs. The frame was built by the shim at `frame` (bytes follow);
 * the interrupted state is inside it. The position: path_pos and
 * interrupted_pc. A signal from outside is always delivered at a fragment
 * boundary or a system call's return (interrupted_pc is the syscall instruction
 * itself when the call is to be made again), so no instruction count is needed. A fault is delivered
 * where it happened: inside `fragment`, whose items may have been recorded and
 * whose exit was not. rt_sigreturn's TRC_LEAVE has the pc it went to as result.
 */
struct trc_signal {
	struct trc_rec rec; /* flags: signal number */
	uint64_t tsc;
	uint64_t seq;       /* as for system calls */
	uint64_t path_pos;
	uint64_t interrupted_pc;
	uint64_t regs[TRC_NREGS]; /* at the handler's first instruction */
	uint64_t frame;
	uint32_t frame_len;
	uint32_t fragment; /* a fault: id of the fragment it happened in; 0: at a boundary */
	uint8_t bytes[];
};

struct trc_time {
	struct trc_rec rec;
	uint64_t tsc;
	uint64_t path_pos;
};

struct trc_regs {
	struct trc_rec rec;
	uint64_t path_pos;
	uint64_t regs[TRC_NREGS];
	uint64_t vector_sum; /* trc_checksum() of ymm0..ymm15, 512 bytes */
};

/*
 * From path_pos on, and there from pc on: fragments that leave no byte may stand between. 0:
 * whatever is at path_pos.
 */
struct trc_generation {
	struct trc_rec rec;
	uint64_t generation;
	uint64_t path_pos;
	uint64_t pc;
};

struct trc_native {
	struct trc_rec rec; /* flags: 0 for good, 1 until it comes back at `pc` */
	uint64_t tsc;
	uint64_t path_pos;
	uint64_t pc;
	uint32_t text_len, pad;
	char text[];
};

enum { TRC_EXIT_ORDERED = 1 };

struct trc_thread_exit {
	struct trc_rec rec; /* flags: TRC_EXIT_ORDERED */
	uint64_t tsc;
	uint64_t seq;
	uint64_t path_pos;
	uint64_t cleared; /* address set to zero for joiners after `seq`, 0 none ... */
	uint64_t ticket;  /* ... at this place in its shard's order; with TRC_EXIT_ORDERED only */
	/* then one for each robust mutex that it held, as far as the record reaches; older traces have none */
};

struct trc_exit_word {
	uint64_t address;
	uint64_t ticket;
	uint32_t value, pad; /* what it was set to, before `cleared` */
};

static inline size_t trc_exit_words(const struct trc_thread_exit *e)
{
	return e->rec.size > sizeof *e ? (e->rec.size - sizeof *e) / sizeof(struct trc_exit_word) : 0;
}

struct trc_stop {
	struct trc_rec rec;
	uint64_t tsc;
	uint64_t seq;
	uint64_t path_pos;
	uint64_t pc; /* what it would have executed next */
};

/* ---- memory ---- */

enum trc_region_flag {
	TRC_REGION_SHIM = 1,   /* belongs to libcsched.so itself */
	TRC_REGION_STACK = 2,  /* the main thread's */
	TRC_REGION_HEAP = 4,
	TRC_REGION_SHARED = 8, /* MAP_SHARED: others may write it */
	TRC_REGION_VDSO = 16,
	TRC_REGION_OBJECT = 64, /* behind the path, at a multiple of 8: struct trc_object */
	TRC_REGION_BRK = 32,
};

/*
 * A file-backed private mapping stores only the pages that differ from the
 * file; a reader starts from the file (by build-id) or, lacking it, from zero.
 * Anonymous memory: pages not stored are zero.
 */
/* What a shared mapping shows: mappings of the same object show the same bytes. 0: not known. */
struct trc_object {
	uint64_t object;
	uint64_t offset; /* in it, of the mapping's first byte */
};

struct trc_region {
	struct trc_rec rec; /* flags: enum trc_region_flag, or-ed */
	uint64_t start, end, offset;
	uint32_t prot, path_len;
	char path[];
};

struct trc_pages {
	struct trc_rec rec;
	uint64_t address;
	uint32_t length, pad;
	uint8_t bytes[];
};

/*
 * A thread at a checkpoint: between two fragments, or with TRC_STATE_IN_CALL inside the system call at `regs[rip]`, whose
 * number and arguments are in its registers and whose TRC_ENTER was in an earlier epoch. What is in vector registers then is known when
 * it comes back (xsave_len is 0 here): the first record in its stream is TRC_START.
 */
enum { TRC_STATE_IN_CALL = 1 };

struct trc_state {
	struct trc_rec rec; /* flags: TRC_STATE_IN_CALL */
	uint32_t thread, xsave_len;
	uint64_t generation;
	uint64_t path_pos;
	uint64_t tsc;
	uint64_t regs[TRC_NREGS];
	uint64_t fs_base, gs_base;
	uint64_t clear_tid;
	uint8_t xsave[]; /* as in struct trc_start */
};

struct trc_shard_ticket {
	uint32_t shard, ticket;
};

/* Shards that are not named begin at 0. */
struct trc_tickets {
	struct trc_rec rec;
	uint32_t n, pad;
	struct trc_shard_ticket shards[];
};

/*
 * A checkpoint with what has changed since that of an earlier epoch: of the pages that it does not have, the last one counts that the
 * earlier one has, in the same way. Not of mappings that are shared with others in the earlier one: those are always there as a whole.
 */
struct trc_base {
	struct trc_rec rec;
	uint32_t epoch, since; /* 0: it is complete */
};

struct trc_left {
	struct trc_rec rec;
	uint64_t start, end;
};

/*
 * What a thread did before the checkpoint, as its TRC_SYNC would say it: locks it holds (TRC_AT_DONE), in the order in which it
 * acquired them, and what it waits for (TRC_AT_BLOCK), last.
 */
struct trc_carried {
	struct trc_sync sync; /* flags: op | at << 12, as there */
	uint32_t by, pad;     /* the thread */
};

#include "common/trace_path_format.h"

#endif
