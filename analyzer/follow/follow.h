/*
 * Following a recorded run. The hardest part of the room; read this first.
 *
 * ---- What the record says
 *
 * Each thread left its path (every conditional branch and indirect target), its
 * inputs (system call results and what the kernel wrote, rdtsc and kin) and its
 * place in two orders: `seq`, one total order of all system call entries and
 * returns, signals and thread exits; and per shard of addresses a total order
 * (tickets) of the locked instructions, and of plain accesses at sites that a
 * hunt has found to be shared. Between such *ordered points* a thread runs a
 * *segment*: plain code whose order against the segments of other threads was
 * not recorded, but for coarse timestamps. Of some loads (at shared sites, in
 * libc's locks) it says what they saw.
 *
 * ---- What the machine does
 *
 * It executes one thread at a time. Which thread: the one whose clock shows the
 * earliest time, among those whose next ordered point is due (the next in seq,
 * the next ticket of its shard). A thread's clock is set by each record that
 * carries a timestamp and in between runs on with the bytes of its path, up to the
 * next such record (of a thread that lost its processor on the way: as if that had been at the end of it);
 * and it never shows less than what the ticket before showed. In a
 * program without data races any order of segments that respects the ordered
 * points gives the same values, so this never goes wrong; the path is compared
 * all the same, at every branch.
 *
 * ---- When the guess was wrong
 *
 * With data races (libc has benign ones, and the bug we are after is often one)
 * a segment may read a value that the recorded run did not see there. Then some
 * branch goes the wrong way, some indirect target, system call or argument
 * differs: a *mismatch*. It names a thread, and the wrong read lies somewhere
 * before it.
 *
 * The machine goes back to a *checkpoint* (memory is copy-on-write, so one
 * costs next to nothing) and executes the stretch again, watched: who reads
 * what, who writes it. The reads of the mismatching thread that another
 * thread's write could have answered differently are the candidates, those that the
 * branch was made of first (sources.c), then the latest. For each there are two ways out, tried in turn: the read must come
 * *before* a write that it saw, or *after* a write that it did not see. Either is
 * an *edge* between two positions (thread, instruction number); edges restrict
 * when a thread may pass a position, in addition to the ordered points. Places
 * in which the read would see the same again are left out; of a logged load it
 * is known what it must see, so few places or none remain. A try that brings
 * the mismatching thread past the branch without breaking another is kept, and
 * the search goes on from there with its edges (they are a stack: when nothing
 * helps, the last one is taken back and its next alternative tried). A thread
 * that goes wrong itself when looking ahead is often the cause: its reads come
 * next. A write that is held again and again for the same reader is held *lazily*,
 * until nobody else can go on: the reader may be a loop that waits for it.
 *
 * A sum that threads have added to without a lock is seen to be wrong only in the end, far behind the
 * update that was lost; what it must have been is found by trying values on the thread that looks at it, and then a
 * place where as much can have been lost (totals.c).
 *
 * Clocks are guesses, so a logged load whose value is not there yet is waited for first: the others
 * go on a little (waits.c). And a store may have been in a *store buffer*: its thread went on, others
 * did not see it yet. Of a logged load that saw the older value this can be checked (buffers.c),
 * and is then as good an answer as an order; orders are tried first.
 *
 * A thread that waits in a loop of plain loads says by itself whether it is early or what it waits for is:
 * it stands still, or the write is held, until both fit (spins.c).
 *
 * When no order helps, a load is *forced*: it sees the logged value, or without one a
 * value that follows the recorded branch, although memory holds something else
 * (see items.c). Effort is bounded in tries and seconds, and the more a stretch
 * has cost the sooner loads are forced. What remains is reported as a divergence.
 *
 * When the run has come far enough past a mismatch the state becomes the new
 * checkpoint: the order up to there is *committed*.
 *
 * ---- What it proves
 *
 * At the end thread, pc and kind of the failure are compared with the record,
 * and the registers. A racy value that no branch tested may still differ: such
 * registers, output bytes and (with the stream `final`) memory are listed as
 * undetermined by the trace. Only a run without any is called exact.
 *
 * The order that was found is kept as a log of steps: so many instructions of
 * this thread, this system call's return, ... Executing the log again is
 * deterministic; that is mach_again().
 */
#ifndef CSCHED_MACHINE_FOLLOW_H
#define CSCHED_MACHINE_FOLLOW_H

#include "analyzer/engine/engine.h"
#include "analyzer/follow/machine.h"
#include "analyzer/engine/shadow.h"
#include "common/path.h"

#define NO_THREAD UINT32_MAX

enum thread_life { LIFE_UNBORN, LIFE_RUNNING, LIFE_IN_CALL, LIFE_ENDED };

/* What a thread is about to do; ordered ones wait until they are due. */
enum action {
	ACT_RUN,      /* go on */
	ACT_ENTER,    /* system call entry: seq */
	ACT_LEAVE,    /* system call return: seq */
	ACT_SIGNAL,   /* a handler begins: seq */
	ACT_EXIT,     /* the thread ends: seq */
	ACT_STOP,     /* it is stopped, so that memory can be written down: seq */
	ACT_CLEAR,    /* its tid word becomes zero, some time after its exit: its ticket says when */
	ACT_TICKET,   /* an access that was ordered by a ticket */
	ACT_VALUE,    /* before a logged load, and memory does not hold what it saw: r->wanted */
	ACT_END,      /* its record ends here */
	ACT_FAILURE,  /* it stands at the recorded failure */
	ACT_MISMATCH, /* it does not follow the record; run->why */
	ACT_STOPPED,  /* run->stop_end: limit, undecoded instruction, native code */
	/* Only in the log of a run that has become another order (struct run_order). */
	ACT_ORDER_RUN,  /* so many instructions, freely */
	ACT_ORDER_DO,   /* what it stands before: an operation, a system call, rdtsc; insns: how many that counts for */
	ACT_ORDER_WAIT, /* its wait ends by time */
	ACT_ORDER_LOAD, /* the load half of an update that is done in halves ... */
	ACT_ORDER_STORE, /* ... whose instruction comes next: it sees what was loaded */
	ACT_ORDER_AGAIN, /* at the beginning: the call that it is in is made anew (insns: 1) or ends as recorded (0) */
};

/* A loop that waits for somebody to write these words: see spins.c. */
#define SPIN_WORDS 16u
struct spin_word {
	uint64_t address;
	uint32_t size;
	uint64_t value; /* when it was last looked at */
};

struct spin {
	uint64_t from, insn; /* the first read of its last round; how far it had come when it went wrong */
	uint64_t until;      /* the run's time: longer it does not wait */
	bool left;           /* it leaves, and ought not to */
	uint32_t nwords;
	struct spin_word words[SPIN_WORDS];
};

/* The branch by which such a loop goes on or is left. */
struct spin_branch {
	uint64_t pc, stays; /* where it goes to go round */
	size_t period;      /* instructions per round */
};

/* Everything about a thread that a checkpoint must hold; copied as a whole. */
struct thread_state {
	struct mach_cpu cpu;
	enum thread_life life;
	enum action action;
	bool vforked;           /* a process of its own, in this one's memory */
	size_t rec;             /* next record */
	const struct trc_enter *call; /* while in a system call */
	uint64_t cleared;       /* ACT_CLEAR: the word ... */
	uint32_t clear_value;   /* ... what it is set to ... */
	bool clear_ordered;     /* ... and has it a ticket? */
	const struct trc_thread_exit *exit; /* the record ... */
	size_t exit_words;      /* ... of whose robust mutexes so many are done, and its own word after them */
	uint64_t call_pc;       /* of the last system call: where it may be restarted */
	/* The thread's clock: at instruction clock_insn, byte clock_pos of the path, it was
	 * clock_tsc, and an instruction has been taking clock_rate / 256 ticks. */
	uint64_t clock_tsc, clock_insn, clock_pos;
	uint32_t clock_rate;
	uint64_t insns_now;     /* at the last branch, for marks on the path */
	uint32_t shard;         /* ACT_TICKET, ACT_CLEAR */
	uint32_t ticket;
	/* Between the halves of an update: what the first one loaded. */
	bool split;
	uint32_t split_size;
	uint64_t split_address, split_value;
	bool waiting;           /* it stands still in a loop: spin */
	struct spin spin;
	/* the path */
	struct path_cursor cursor;
	struct path_cursor before; /* as it was before the current step was decoded */
	bool in_step;
	uint32_t side, item;    /* of the step: what comes next */
};

struct run_thread {
	uint32_t index;
	struct thread_state s;
	struct path_step step;  /* s.in_step: the current fragment */
	VEC(const struct trc_rec *) recs;
	size_t times_from, times_to; /* records between these are times: see behind_times() in thread.c */
	const struct trc_start *start;
	uint64_t failed_tsc, failed_pos; /* when, and where on its path, it failed; 0: it did not */
	struct trc_start *begun; /* `start', where it was not recorded: see unstarted.c, epoch.c */
	const struct trc_state *state; /* at the checkpoint that the run begins with; NULL: it was not there */
	struct trc_enter *resting; /* ... and was in this system call */
	uint64_t spun_out; /* at this instruction standing still in a loop did not help */
	struct shadow_cpu *shadow;
};

struct seq_event {
	uint64_t seq;
	uint32_t thread;
};

/* Contents of a stretch of a file. */
struct file_map {
	uint64_t start, end, offset;
	struct run_file *file; /* NULL: not to be had */
};

/* There are as many as turns in the run: 8 bytes each. More instructions than fit are several steps. */
struct log_step {
	uint64_t thread : 20; /* TRC_MAX_THREADS */
	uint64_t action : 6;  /* ACT_RUN: insns instructions; else that action */
	uint64_t insns : 38;
};
#define LOG_MOST_INSNS ((1ull << 38) - 1)

/* Instructions that the step takes, of the run and (but for ACT_ORDER_AGAIN) of its thread. */
static inline uint64_t run_step_insns(const struct log_step *s)
{
	if (s->action == ACT_RUN || s->action == ACT_ORDER_RUN || s->action == ACT_ORDER_DO)
		return s->insns;
	return s->action == ACT_ENTER || s->action == ACT_EXIT;
}

static inline bool run_is_of_order(const struct log_step *s)
{
	return s->action >= ACT_ORDER_RUN;
}

/*
 * The thread may not pass instruction `insn` before `other` has passed `other_insn`.
 * EDGE_LAZY there: not as long as anybody else can go on. EDGE_LATE: likewise, while the other's clock shows
 * less than the thread's next timestamp.
 */
#define EDGE_LAZY UINT64_MAX
#define EDGE_LATE (UINT64_MAX - 1)
#define EDGE_IS_OPEN(e) ((e)->other_insn >= EDGE_LATE) /* what it waits for is no position */
struct order_edge {
	uint32_t thread, other;
	uint64_t insn, other_insn;
};

/* A load that sees what it saw when recorded, whatever memory holds. */
struct load_force {
	struct mach_forced load;
	uint64_t serial; /* when it was decided: the search takes the latest back first */
	bool used;       /* memory held something else */
	bool split;      /* the load half of an update done in halves: nothing odd, see items.c */
	uint64_t time;   /* the run's, or a little less */
};

struct wanted_load {
	uint64_t address; /* 0: that of the only read of the instruction */
	uint32_t size;
	uint64_t value;
};

/* Memory that is mapped MAP_SHARED. */
struct shared_range {
	uint64_t start, end;
	bool file;
};

/*
 * Another order that the run has become (mach_execute() with `keep'): the steps behind a certain one of the log are that order's,
 * and the execute room performs them. What it knows beside memory and registers is a state that checkpoints copy.
 */
struct run_order {
	void *state;
	size_t size;
	void *arg;
	err_t (*step)(struct mach_run *r, const struct log_step *s);
	/* So many instructions of the thread, or fewer when something was seen or somebody asked to stop. */
	err_t (*part)(struct mach_run *r, uint32_t thread, uint64_t insns);
	void (*free)(struct mach_run *r);
};

struct checkpoint {
	uint64_t time;
	void *order;      /* a copy of the order's state, if there is one */
	uint64_t fresh;
	struct mem_image image;
	struct thread_state *threads;
	size_t seq, log, brk;
	uint32_t tickets[TRC_SHARDS];
	uint64_t ticket_times[TRC_SHARDS];
	size_t nfiles, undetermined;
	struct mach_result counts;
};

struct mach_run {
	struct trc *t;
	struct img_set *images;
	struct mach_options o;
	struct mach *m;
	struct path_frags *frags;
	struct run_thread *threads;
	size_t nthreads;
	uint32_t current;       /* whose registers are in the frame */
	VEC(struct seq_event) seqs; /* while it is loaded */
	uint32_t *calls;        /* the threads of all points in the order of system calls ... */
	size_t ncalls, seq;     /* ... how many, and which is next */
	uint32_t tickets[TRC_SHARDS];
	uint64_t ticket_times[TRC_SHARDS]; /* clocks at the last one of each */
	bool began;             /* at a checkpoint, not where the program did */
	VEC(const struct trc_carried *) carried; /* then: what threads hold and wait for ... */
	VEC(struct mach_object) before;          /* ... and what objects of theirs look like, by address */
	uint64_t brk;
	VEC(struct file_map) files;
	VEC(struct run_file *) opened;
	/* What others may change without a word in the record; only ever added to. */
	VEC(struct shared_range) shared;
	VEC(uint64_t) objects;  /* memory that may be mapped more than once: number i is at MEM_TOP + i * MEM_OBJECT */
	VEC(uint64_t) growing;  /* ends of mappings that grow downwards: the main stack, MAP_GROWSDOWN */
	unsigned blames;
	char *reason; /* blame.c: of the first mismatch that is not resolved */
	VEC(uint64_t) item_pcs; /* where to stop: instructions with items, and until_pc; sorted */
	VEC(struct load_force) forces; /* by thread and instruction number */
	uint64_t force_serial;
	VEC(struct mach_forced) forced; /* those that counted, in the end */
	const char *missing;    /* a module whose contents were needed and not to be had */
	uint64_t length;        /* the time at which the followed run ends */
	uint64_t time;          /* instructions of all threads ... */
	uint64_t stretch;       /* ... when the running thread stood at this one */
	VEC(struct log_step) log;
	size_t log_sealed;      /* steps before this belong to a checkpoint: not to be extended */
	VEC(struct checkpoint *) checkpoints;
	bool followed;
	struct mach_result res; /* counts while following */
	VEC(char *) undetermined;
	VEC(char *) notes;
	/* the last mismatch or stop */
	char *why;
	enum mach_end stop_end;
	uint64_t mismatch_pc;
	bool blamed;            /* why is about this thread, not about the last one to run */
	uint32_t blamed_thread;
	uint64_t blamed_insn;
	bool mismatch_load;     /* the instruction before is the very read that went wrong ... */
	struct wanted_load wanted; /* ... and should have seen this */
	/* the search */
	VEC(struct order_edge) edges;
	bool lazy_go;           /* nobody can go on but those that lazy edges hold */
	struct search *search;
	VEC(struct spin_branch) spins; /* that were seen */
	double deadline;        /* monotonic seconds; 0: none */
	uint64_t polled;        /* as worked, but what is slow counts for more: see run_progress() */
	uint64_t worked;        /* instructions executed, tries of the search included */
	uint64_t next_progress; /* in the same measure */
	bool following;         /* in mach_follow() */
	uint64_t let_go;        /* when the trace's files were last given back to the kernel */
	bool asked_to_stop, until_pc_reached, timed_out, looking_ahead;
	bool may_wait;          /* a thread may stop at ACT_VALUE */
	/* executing another order: the record is no longer followed exactly */
	bool free;
	/* executing the log: which order it was is settled. The first half of an update that was
	 * done in halves takes no instruction, so the log does not tell when its turn was. */
	bool by_log;
	struct execution *execution; /* of the execute room, while it is at work */
	/* It is told of each call of the record primitive, where it asked for that. */
	void (*at_event)(struct mach_run *r, uint32_t thread, unsigned op_at, uint64_t site);
	struct checkpoint *try_from; /* where mach_try() begins; NULL: not said */
	uint64_t fresh;         /* where its next new mapping goes */
	VEC(struct trc_sync *) computed; /* operations that execute/onward.c made up */
	struct run_seek *seek; /* seek.c; NULL: nobody moved about yet */
	struct run_order order; /* step is NULL: the run is the recorded one */
	/* mach_again */
	const struct mach_hooks *hooks;
	struct expr_pool *pool;
	uint64_t hooks_from;
};

/* epoch.c: a run that begins at a checkpoint */
err_t run_epoch_load(struct mach_run *r);
void run_epoch_begin(struct mach_run *r);

/* load.c */
err_t run_load(struct mach_run *r);
void run_file_map(struct mach_run *r, uint64_t start, uint64_t end, uint64_t offset,
		  const struct trc_module *module);
void run_files_free(struct mach_run *r);
void run_born(struct mach_run *r, struct run_thread *t); /* registers of its first moment */

/* What a system call at rip that creates a thread asks for; false: it does not, or its arguments cannot be read. */
struct spawn {
	uint64_t flags, stack, tls, parent_tid, child_tid;
};
uint64_t run_arg(const struct mach_run *r, unsigned i); /* of the system call at rip */
bool run_spawn_args(const struct mach_run *r, uint64_t nr, struct spawn *s);
/* The first moment of a thread of which nothing was recorded, from its creator that comes back from `call'. */
bool run_unstarted(struct mach_run *r, struct run_thread *child, const struct trc_enter *call,
		   const struct trc_leave *back);

/* thread_state.c, thread_stops.c, thread.c: one thread, up to its next action */
void run_switch(struct mach_run *r, uint32_t thread);
/* Leaves the frame: all registers are in the threads. */
void run_settle(struct mach_run *r);
void run_set_reg(struct mach_run *r, unsigned x86, uint64_t value); /* of the current thread */
/* Runs until something stops it; returns and stores the thread's action. limit: UINT64_MAX none. */
enum action run_thread_go(struct mach_run *r, struct run_thread *t, uint64_t limit, bool granted);
/* How far the engine may go at once: not past a forced load. */
uint64_t run_piece(struct mach_run *r, struct run_thread *t, uint64_t limit);
bool run_progress(struct mach_run *r); /* tells how far it is; true: stop */
const struct trc_rec *run_head(struct run_thread *t);
bool run_ended(const struct run_thread *t); /* no record but marks is left */
/* Why recording stopped before the program ended; NULL: it did not. */
const struct trc_note *run_degraded(const struct mach_run *r);
/* Between fragments, or on the way from one to the next with nothing of it to come. */
bool run_between(const struct run_thread *t);
void run_approach_signal(struct mach_run *r, struct run_thread *t); /* at one of the committed order */
bool run_failure_near(const struct mach_run *r, const struct run_thread *t);
bool run_fault_missed(const struct mach_run *r, const struct run_thread *t);
#define MISSED_FAULT "the recorded instruction failed (signal %d), here it did not"
enum action run_nondet(struct mach_run *r, struct run_thread *t); /* rdtsc and kin at rip */
void run_say(struct mach_run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
enum action run_mismatch(struct mach_run *r, uint64_t pc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t run_head_time(const struct run_thread *t); /* of the next record that has one */
void run_clock(struct run_thread *t, uint64_t insns, uint64_t tsc); /* was read: tsc */
/* Likewise, and says nothing about its speed. */
void run_clock_set(struct run_thread *t, uint64_t insns, uint64_t tsc);
uint64_t run_clock_between(const struct run_thread *t);
/* Between its last timestamp and its next it was not running for a while. */
bool run_was_stalled(const struct run_thread *t);
err_t run_step_again(struct run_thread *t);   /* after the state was restored */

/* The path item the instruction at pc left, and its place in t->s.item; NULL: none. */
const struct path_item *run_find_item(struct mach_run *r, struct run_thread *t, uint64_t pc,
				      enum trc_item_kind kind);

/* items.c: tickets and values at instructions; all about the one at rip */
struct insn;
bool run_insn_at(struct mach_run *r, uint64_t pc, struct insn *in); /* decodes it */
uint64_t run_shown_pc(struct mach_run *r, uint64_t pc); /* of a fault there, as the kernel shows it */
void run_items_load(struct mach_run *r);
bool run_items_on(const struct mach_run *r);
bool run_has_ticket(struct mach_run *r, struct run_thread *t);
/* Does memory hold what the recorded load saw? Else r->wanted tells. */
bool run_value_agrees(struct mach_run *r, struct run_thread *t);
/* Does the branch at pc take its target from memory, not from a register or the stack? */
bool run_is_memory_branch(struct mach_run *r, uint64_t pc);
void run_force(struct mach_run *r, const struct mach_forced *load);
void run_force_half(struct mach_run *r, const struct mach_forced *load); /* its store stays */
/* What the memory operand of the instruction at rip holds now; up to 8 bytes. */
bool run_operand_load(struct mach_run *r, uint64_t *address, uint32_t *size, uint64_t *value);
/* The first half of an update in halves is due: loads; false when it is none. */
bool run_split_load(struct mach_run *r, struct run_thread *t);
void run_split_store(struct mach_run *r, struct run_thread *t); /* before the second */
void run_unforce(struct mach_run *r, uint64_t serial);
struct load_force *run_next_force(const struct mach_run *r, uint32_t thread);
bool run_force_begin(struct mach_run *r, struct load_force *f);
void run_force_end(struct mach_run *r, const struct load_force *f);
void run_forces_publish(struct mach_run *r);
/* buffers.c: which of the forced loads store buffers explain */
void run_explain_forces(struct mach_run *r);

/* run.c */
void run_tell_branch(struct mach_run *r, const struct mach_block *b, int taken, uint64_t next);
/* From here on the hooks are called, with symbols; and no longer. */
void run_hooks_on(struct mach_run *r, const struct mach_hooks *hooks, struct expr_pool *pool, uint64_t from);
void run_hooks_off(struct mach_run *r);
err_t run_log_again(struct mach_run *r, size_t first, size_t last, bool *stopped);
err_t run_log_step(struct mach_run *r, const struct log_step *s);
err_t run_go_to(struct mach_run *r, uint64_t time, size_t *log);
/* Inside a step of the log if need be; *left is the rest of that step. */
err_t run_go_exactly(struct mach_run *r, uint64_t time, size_t *log, uint64_t *left);
uint64_t run_checkpoint_time(struct mach_run *r, uint64_t time); /* of the one it would start at */

/* seek.c: the thread stands at a pc that is looked for; true: that is far enough */
bool run_sight_stops(struct mach_run *r, struct run_thread *t);
bool run_sight_pcs(const struct mach_run *r);
void run_seek_lost(struct mach_run *r);
void run_seek_free(struct mach_run *r);

void run_computed_forget(struct mach_run *r); /* run.c */

/* calls.c: what ordered points do */
enum action run_perform(struct mach_run *r, struct run_thread *t);
enum action run_after_entry(struct run_thread *t); /* what a thread in a system call waits for */
/* frames.c */
void run_handler_state(struct mach_run *r);
void run_frame_shadow(struct mach_run *r, const struct trc_signal *s);
enum action run_return_from_handler(struct mach_run *r, struct run_thread *t);
void run_note(struct mach_run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void run_undetermined(struct mach_run *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* blame.c */
/* mappings.c */
/* Memory that a call changed, for everybody who watches. */
void run_kernel_wrote(struct mach_run *r, struct run_thread *t, uint64_t address, const uint8_t *bytes, size_t n);
/* What a call takes away, at its entry (l: its return, if that is known); what it maps, at its return. */
void run_take_mapping(struct mach_run *r, uint32_t thread, const struct trc_enter *e, const struct trc_leave *l);
void run_apply_mapping(struct mach_run *r, uint32_t thread, const struct trc_enter *en, const struct trc_leave *l);
void run_apply_in_part(struct mach_run *r, const struct trc_enter *e); /* there was a hole */
bool run_map_object(struct mach_run *r, uint64_t start, uint64_t end, unsigned prot, const struct trc_object *o);
void run_note_shared(struct mach_run *r, uint64_t start, uint64_t end, bool file);
/* Sets r->reason if there is one to be found; the run stands where a mismatch is, and does so
 * afterwards. alone: no other thread can be the reason, any read of its own may. */
void run_blame(struct mach_run *r, uint32_t thread, bool alone);
char *run_racy_reason(struct mach_run *r, uint32_t thread, uint64_t address);

/* checkpoint.c */
struct checkpoint *checkpoint_take(struct mach_run *r);
void checkpoint_restore(struct mach_run *r, const struct checkpoint *c);
void checkpoint_free(struct mach_run *r, struct checkpoint *c);

/* turns.c */
bool run_is_due(const struct mach_run *r, const struct run_thread *t);
uint64_t run_clock_now(const struct mach_run *r, const struct run_thread *t); /* its clock */
void run_clock_by_edges(struct mach_run *r, struct run_thread *t);
bool run_take_ticket(struct mach_run *r, struct run_thread *t);
/* The thread that should go on now, and for how many instructions; NULL: nobody can. */
struct run_thread *run_choose(struct mach_run *r, uint64_t *insns);
/* The instruction number up to which edges of the search let it go. */
uint64_t run_turn_limit(const struct mach_run *r, const struct run_thread *t);
static inline bool run_alive(const struct run_thread *t)
{
	return t->s.life == LIFE_RUNNING || t->s.life == LIFE_IN_CALL;
}

/* waits.c: t stands at ACT_VALUE; the others go on if that helps. Then it goes on, either way. */
void run_wait_for_value(struct mach_run *r, struct run_thread *t);

/* spins.c */
/* After a mismatch of t, when no order is being searched for: was it in a loop that waits, and is there a way on? */
bool run_spin(struct mach_run *r, struct run_thread *t);
bool run_spins_wait(const struct mach_run *r); /* does anybody stand still? */
void run_spins_look(struct mach_run *r);       /* who has got what it waited for goes on */
/* Nobody else can go on: they do, into their mismatches. False: nobody stood still. */
bool run_spins_give_up(struct mach_run *r);

/* follow.c */
double run_seconds(void); /* monotonic */
bool run_out_of_time(struct mach_run *r); /* or asked to stop */
/* What is executed again goes on when the time is over, to say what is known by then: but not for long,
 * and while the run is being followed not at all. */
bool run_is_hopeless(struct mach_run *r);
bool run_gives_up(void *arg); /* of struct mach: inside an instruction that takes long */
/* One turn of a thread: its action if it stands at one, then at most so many instructions. */
enum action run_turn(struct mach_run *r, struct run_thread *t, uint64_t insns);
void run_log(struct mach_run *r, uint32_t thread, enum action action, uint64_t insns);

/* search.c */
/* Takes a checkpoint to go back to, now and then. */
void search_checkpoint(struct mach_run *r);
/* After a mismatch of t: an earlier state with other edges; false: no order helps. */
bool search_resolve(struct mach_run *r, struct run_thread *t);
/* Nobody can go on: perhaps because of the edges of a try. */
bool search_stuck(struct mach_run *r);
bool search_is_idle(const struct mach_run *r);     /* nothing is being tried */
void search_restore(struct mach_run *r, size_t base); /* restores it, with its edges; later ones are dropped */
bool search_complain(struct mach_run *r); /* no order was found: r->why is the first mismatch */
void search_end(struct mach_run *r);

/* verdict.c */
void verdict_failure(struct mach_run *r, struct run_thread *t);
void verdict_final_memory(struct mach_run *r);
char *run_place(struct mach_run *r, uint64_t pc); /* "libfoo.so: function+0x12"; malloc'd */

#endif
