/*
 * The machine, seen from outside: a recorded run that can be executed again.
 *
 *   mach_open()    loads the trace: memory, modules, threads, paths
 *   mach_follow()  executes it along the recorded path, finds and commits one
 *                  order of all threads, and compares the end with the record
 *   mach_again()   executes the committed order once more, with hooks: every
 *                  access, branch and event, with symbolic values if asked
 *
 * Other orders of the same threads: analyzer/execute/orders.h.
 *
 * Time. A thread's time is its instruction number (0 before its first one; a
 * rep-prefixed instruction counts once). The run's time is the number of
 * instructions all threads together have executed in the committed order. Both
 * are the same in every execution of the same trace.
 *
 * What a caller may rely on: nothing here trusts the trace; an address from a
 * record may lie anywhere. Errors are for traces that cannot be executed at
 * all; a run that could be followed only in part is a result, not an error.
 * One struct mach_run is used by one thread at a time, and because libVEX has
 * global state only one thread of the process may be inside this room.
 */
#ifndef CSCHED_MACHINE_H
#define CSCHED_MACHINE_H

#include "analyzer/image/image.h"
#include "analyzer/expr/expr.h"
#include "common/err.h"
#include "common/trace_read.h"

struct mach_run;

struct mach_options {
	uint64_t max_insns;     /* stop following after so many; 0: no limit */
	double timeout;         /* seconds for mach_follow(); 0: no limit */
	uint32_t max_tries;     /* orders tried per mismatch; 0: the default */
	bool keep_checkpoints;  /* for mach_again() and mach_execute() from the middle */
	uint64_t until_insn;    /* stop when until_thread has executed so many; 0: run to the end */
	uint32_t until_thread;
	uint64_t until_pc;      /* or when it is about to execute this pc; 0: no pc */
	/* Called now and then; part is 0..1 or < 0 when unknown. True stops the work. */
	bool (*progress)(void *arg, uint64_t insns, double part);
	void *progress_arg;
};

/* Opens the machine for a trace. Both must outlive it. Modules of the trace
 * are added to images here. */
err_t mach_open(struct trc *t, struct img_set *images, const struct mach_options *o,
		struct mach_run **out);
void mach_close(struct mach_run *r);

struct mach_register_difference {
	const char *name; /* "rax" */
	uint64_t replayed, recorded;
};

enum mach_end {
	MACH_END_FAILURE,    /* the recorded failure was reached */
	MACH_END_EXIT,       /* the run ended as recorded, without failure */
	MACH_END_PATH,       /* the record ends here (killed, or recording stopped) */
	MACH_END_UNTIL,      /* options.until_* */
	MACH_END_STOPPED,    /* progress(), timeout or max_insns said so */
	MACH_END_DIVERGED,   /* no order was found that follows the record */
	MACH_END_UNDECODED,  /* an instruction the machine does not know */
	MACH_END_NATIVE,     /* the record says the thread left translated code */
};

struct mach_result {
	enum mach_end end;
	char *why;            /* in words; malloc'd; NULL for EXIT and FAILURE */
	bool failure_recorded, failure_reached;
	bool same_thread, same_pc, same_kind;
	struct mach_register_difference differ[TRC_NREGS];
	size_t ndiffer;
	bool exact;           /* reached the end and nothing is undetermined or different */
	bool output_identical;
	uint64_t output_bytes;
	uint64_t branches, indirects, syscalls, locked, signals, nondet; /* checked */
	uint64_t insns, native_insns;
	uint64_t mismatches, tries, rollbacks; /* of the search */
	uint64_t forced;      /* loads: see struct mach_forced */
	uint64_t buffered;    /* of these, explained by a store buffer */
	char **undetermined;  /* what a race left open, one sentence each */
	size_t nundetermined;
	char **notes;         /* assumptions made while executing */
	size_t nnotes;
	bool final_compared;  /* the trace has the stream `final` ... */
	uint64_t final_bytes, final_differ; /* ... and so many bytes differ */
	uint64_t final_first; /* address of the first that does */
	double seconds;
	uint32_t thread;      /* the last one to run */
	uint64_t pc;
};

err_t mach_follow(struct mach_run *r, struct mach_result *out);
void mach_result_free(struct mach_result *res);

/*
 * A load that saw what no order of the recorded accesses gives it: the machine put
 * the value there for this one instruction. (A store that was still in a store
 * buffer does this.) Executing again forces it again.
 */
struct mach_forced {
	uint32_t thread;
	uint32_t size;    /* bytes, up to 8 */
	bool logged;      /* the record says what it saw; else chosen to follow the recorded path */
	uint64_t insn;    /* number of the instruction in its thread, as in struct mach_access */
	uint64_t pc, address;
	uint64_t value;   /* what it saw ... */
	uint64_t memory;  /* ... and what memory held */
	bool buffered;    /* a store that was still in its thread's store buffer explains it */
	uint32_t store_thread;
	uint64_t store_pc;
};

/* By thread and instruction. Valid after mach_follow(); belongs to the run. */
size_t mach_forced(const struct mach_run *r, const struct mach_forced **out);

/* ---- executing the committed order again, watched ---- */

enum mach_access_flags {
	MACH_READ = 1,
	MACH_WRITE = 2,
	MACH_ATOMIC = 4, /* part of a locked instruction; ends with atomic_end() */
	MACH_KERNEL = 8, /* by a system call or signal frame, not an instruction */
};

/* One access of 1, 2, 4 or 8 bytes; wider ones come in pieces of 8. Told before memory
 * changes: mach_read() gives what a write replaces. */
struct mach_access {
	uint32_t thread;
	uint16_t size;
	uint16_t flags;
	uint64_t pc;
	uint64_t address;
	uint64_t value;   /* read or written */
	uint64_t insn;    /* number of the instruction in its thread */
	uint64_t time;    /* number of the instruction in the run */
};

struct mach_branch {
	uint32_t thread;
	bool taken;
	bool indirect;  /* cond is "the target is the recorded one" */
	uint64_t pc, target;
	uint64_t insn, time;
	expr_id cond;   /* holds on the way taken; EXPR_NONE: concrete */
};

/* All may be NULL. Called in the order of execution. */
struct mach_hooks {
	void *arg;
	/* Before everything else: the run stands at `from` (a moment of mach_moment()). */
	void (*begin)(void *arg);
	/* Every access. With a pool: value is its expression (EXPR_NONE: concrete).
	 * A read may return a fresh symbol of 8 * size bits that stands for the
	 * value from here on; EXPR_NONE keeps what memory held. */
	expr_id (*access)(void *arg, const struct mach_access *a, expr_id value);
	/* The locked instruction at pc is over (it may have written nothing). */
	void (*atomic_end)(void *arg, uint32_t thread, uint64_t pc);
	/* Conditional branches always (pool or not), indirect ones when symbolic. */
	void (*branch)(void *arg, const struct mach_branch *b);
	/* A symbolic value was replaced by its concrete one: cond (it equals what it
	 * was) must hold; why names the reason ("address", "floating point", ...).
	 * Whatever cannot be said as a condition has cond EXPR_NONE. */
	void (*concretized)(void *arg, uint32_t thread, uint64_t pc, expr_id cond,
			    const char *why);
	void (*sync)(void *arg, uint32_t thread, const struct trc_sync *rec);
	/* leave is NULL at the entry, and for calls that never returned. */
	void (*syscall)(void *arg, uint32_t thread, const struct trc_enter *enter,
			const struct trc_leave *leave);
	void (*signal)(void *arg, uint32_t thread, const struct trc_signal *rec);
	void (*thread_start)(void *arg, uint32_t thread, uint32_t parent);
	void (*thread_exit)(void *arg, uint32_t thread);
	/* The end of the record was reached by this thread (failure or exit). */
	void (*end)(void *arg, uint32_t thread, uint64_t pc);
	/* Between blocks; true ends the execution early. */
	bool (*stop)(void *arg);
	/* Behind the end of the record the threads that neither failed nor ended go on, up to
	 * so many instructions each (0: none do); `onward` is called before that. What they do
	 * there is computed, not recorded, by go_onward: mach_go_onward() of execute/orders.h. */
	uint64_t onward_insns;
	void (*onward)(void *arg);
	void (*go_onward)(struct mach_run *r, uint64_t insns);
	/* access() returns no symbol before this time of the run (UINT64_MAX: never): until then
	 * there is nothing to shadow. */
	uint64_t symbols_from;
};

/*
 * Executes the committed order from the run's time `from` (0: the beginning)
 * to its end. Hooks are called from `from` on. pool may be NULL: no symbols.
 */
err_t mach_again(struct mach_run *r, uint64_t from, const struct mach_hooks *hooks,
		 struct expr_pool *pool);

/*
 * The latest moment at least so many instructions before the run's end at which the
 * machine can begin without executing what lies before it. 0: the beginning. Such moments
 * are kept with options.keep_checkpoints, the closer together the nearer to the end.
 */
uint64_t mach_moment(const struct mach_run *r, uint64_t before_end);
/* Instructions at the run's end that one thread executed alone. */
uint64_t mach_alone(const struct mach_run *r);
/* Does the thread fail inside the handler of a signal that somebody sent? Other orders are executed without signals. */
bool mach_fails_in_handler(const struct mach_run *r);
uint64_t mach_length(const struct mach_run *r); /* of the followed run: its last moment */
/* Instructions executed so far to follow and to execute again, tries included. */
uint64_t mach_worked(const struct mach_run *r);

/* ---- looking around: inside hooks, or where the last execution stopped ---- */

/* All or nothing; ignores protection. */
bool mach_read(struct mach_run *r, uint64_t address, void *buf, size_t n);
/* Registers in the order of trace_format.h; false: the thread does not exist. */
bool mach_regs(struct mach_run *r, uint32_t thread, uint64_t regs[TRC_NREGS],
	       uint64_t *fs_base);
/* What a function was called with. For a thread at its first instructions, which have not changed it yet. */
struct mach_entered {
	uint64_t args[2];
	uint64_t sp;      /* where the return address lies, at the very first ... */
	uint64_t site;    /* ... and what lies there; 0: nothing can be read */
};
bool mach_entered(struct mach_run *r, uint32_t thread, struct mach_entered *out);
/* The result of the function that the thread returns from. */
bool mach_returned(struct mach_run *r, uint32_t thread, uint64_t *out);
/* The same for the image room. */
bool mach_img_regs(struct mach_run *r, uint32_t thread, struct img_regs *out);
struct img_memory mach_img_memory(struct mach_run *r);
uint64_t mach_thread_insns(const struct mach_run *r, uint32_t thread);
bool mach_thread_alive(const struct mach_run *r, uint32_t thread); /* born and not ended */
/* The records that lie behind the thread; belong to the run. */
size_t mach_records(const struct mach_run *r, uint32_t thread, const struct trc_rec *const **out);
/*
 * A run that begins at a checkpoint: what threads held and waited for there, thread by thread, and the first bytes of objects of
 * synchronisation that it uses. NULL: not known, or the run has its beginning.
 */
bool mach_began(const struct mach_run *r);
size_t mach_carried(const struct mach_run *r, const struct trc_carried *const **out);
struct mach_object {
	uint64_t address;
	uint32_t words[8];
};
const struct mach_object *mach_object_before(const struct mach_run *r, uint64_t address);
uint64_t mach_time(const struct mach_run *r);
/* The mapping that holds address: bounds and whether it is some thread's stack. */
bool mach_mapping(struct mach_run *r, uint64_t address, uint64_t *lo, uint64_t *hi);
/* The first mapping that ends above `from`; prot as PROT_*. */
bool mach_mapping_above(struct mach_run *r, uint64_t from, uint64_t *lo, uint64_t *hi, unsigned *prot);
size_t mach_thread_count(const struct mach_run *r);

/* ---- moving about in the committed order: seek.c ---- */

/*
 * The run stands where exactly `time` of its instructions are executed, and what follows them without
 * another one has happened (results of system calls, signals). Beyond the end: at the end.
 */
err_t mach_seek(struct mach_run *r, uint64_t time);
/* Who executes the next instruction from here; at the end: who came to it. */
uint32_t mach_next_thread(const struct mach_run *r);
/* The time at which a thread has executed so many instructions; false: it never has. */
bool mach_position_time(const struct mach_run *r, uint32_t thread, uint64_t insn, uint64_t *time);
/*
 * The time just before an instruction of the thread: of its first one at or after `from`, or (back) of its
 * last one before. False: there is none.
 */
bool mach_thread_time(const struct mach_run *r, uint32_t thread, uint64_t from, bool back, uint64_t *time);

struct mach_span {
	uint64_t lo, hi;
	unsigned how; /* MACH_READ, MACH_WRITE */
};

/* Something that was looked for, by the instruction that `time` stands before. */
struct mach_seen {
	uint64_t time;
	uint32_t thread;
	bool access; /* of spans[span]; else an instruction at one of the pcs */
	bool kernel; /* by a system call or a signal */
	unsigned how;
	uint64_t pc, address;
	size_t span;
};

struct mach_sight {
	const uint64_t *pcs; /* sorted; about to be executed */
	size_t npcs;
	const struct mach_span *spans; /* accesses to these */
	size_t nspans;
	bool (*seen)(void *arg, const struct mach_seen *s); /* true: stop */
	void *arg;
};

/*
 * Executes from where the run stands to time `to`, and tells what is seen. Told to stop it ends at once for a
 * pc, and somewhere behind an access: mach_seek() goes to where one wants to be. options.progress may stop it.
 */
err_t mach_look(struct mach_run *r, uint64_t to, const struct mach_sight *s);

/* What mach_regs() leaves out. */
struct mach_vectors {
	uint8_t fx[512];      /* as FXSAVE has it, with the lower halves of ymm */
	uint8_t ymm[16][32];
	uint64_t fs_base, gs_base;
};
bool mach_vectors(struct mach_run *r, uint32_t thread, struct mach_vectors *out);

#endif
