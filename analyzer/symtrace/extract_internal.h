/* Shared by the files of the extraction; see extract.h for the walk. */
#ifndef CSCHED_SYMTRACE_EXTRACT_INTERNAL_H
#define CSCHED_SYMTRACE_EXTRACT_INTERNAL_H

#include "analyzer/symtrace/extract.h"
#include "analyzer/symtrace/extract_level.h"
#include "analyzer/symtrace/extract_survey.h"
#include "common/vec.h"

/* A branch that may turn out to be the one towards the failure. */
struct ext_decision {
	expr_id cond;    /* EXPR_NONE: none */
	size_t before;   /* so many conditions came before it */
	uint64_t insn;
};

/* What is remembered per thread while the window is built. */
/* A block that was freed: see extract_misuse.c. */
struct ext_freed {
	uint64_t base, size, key;
	uint32_t thread, stack; /* who did it; stack SYM_NONE: not known where */
	uint32_t event; /* its next one then; SYM_NONE: before the window */
	bool moved; /* it left the cache it was in, and is free all the same */
	bool gone; /* nothing is known of it any more */
};

struct ext_freed_slot {
	uint64_t granule; /* 0: none */
	uint32_t index;   /* of freed[], from 1 */
};

/* By descriptor: who closed it, unless it is open; see extract_closed.c. */
struct ext_closed {
	bool closed;
	uint32_t thread, stack;
	uint32_t user; /* the first thread that used it, + 1; 0: none did */
};

/* A mutex, and who destroyed it; see extract_destroyed.c. */
struct ext_destroyed {
	uint64_t object;
	uint32_t thread, stack;
};

struct ext_misuse_watch {
	struct ext_freed_slot *slots;
	size_t nslots, used, nstacks;
	size_t nmoved; /* of freed[] */
	VEC(struct ext_freed) freed;
};

struct ext_thread {
	uint64_t tsc;        /* last timestamp this thread passed */
	uint32_t untimed;    /* first event whose upper bound is still open */
	uint32_t release;    /* event that released the mutex of the current wait */
	uint32_t enter;      /* event that entered the current barrier round */
	bool entered;        /* it is in one, seen or not */
	const struct trc_sync *arriving; /* it is about to enter one, or NULL */
	const struct trc_sync *pending; /* TRC_AT_BLOCK without its TRC_AT_DONE */
	struct ext_freed freeing; /* free() under way, and where it returns to (0: none) */
	uint64_t free_site;
	uint64_t hand_site, hand_size; /* an allocation by whomever: where it returns to (0: none) */
	/* The thread's last access may have been that of a call of the program's: where it returns to (0: it
	 * was not), and where that lies. */
	uint64_t call_site, call_sp;
	/* allocation under way: return address (0: none), size, stack pointer at the call */
	uint64_t alloc_site, alloc_size, alloc_sp;
	/* A release is recorded before the real call and has happened when that returns:
	 * its point moves to the return (0: no release is under way). */
	uint64_t release_site;
	size_t release_point;
	/* A wait releases its mutex in the middle of the call, when it writes the mutex's
	 * first word (0: no such release is under way); release_point moves there. */
	uint64_t wait_mutex;
	uint64_t call_insn; /* instruction that counts as the current sync call */
	/* The last system call that returned, which execution of it, and events before it did. */
	uint64_t call_pc, call_n;
	uint32_t call_events;
	const struct trc_enter *inside; /* the system call that has not returned, or NULL */
	bool started;
	/* The locked instruction under way: its event, or SYM_NONE. */
	uint32_t atomic;
	/* Last symbolic branch, and last one of the program's own code. */
	struct ext_decision last, last_own;
	/* Last time the program read, through a pointer somebody else may have changed, which function to
	 * call: a virtual call goes by the object's class, and no branch shows it. */
	struct ext_decision last_virtual;
	/* Last one inside memcmp() or the like since the program's last branch, and the one that branch
	 * came behind: that two texts differ is decided there, the program tests a constant then. */
	struct ext_decision comparing, compared;
	uint64_t brink; /* last branch of the program's own code, symbolic or not: its instruction */
	/* Last "this address is the one recorded" condition, and where. */
	expr_id address_cond;
	uint64_t address_pc;
	size_t address_before; /* so many conditions came before it */
	uint64_t program_insn; /* last instruction of program code */
	uint32_t computed; /* first event behind the record, or SYM_NONE */
	struct ext_birth *birth; /* see extract_left.c; NULL: not seen */
	VEC(struct mach_point) points;
};

/* Bytes [start, start + size) that every event accesses whole. */
/* How good a name is that was found for something; better ones are looked for. */
enum ext_quality {
	EXT_NAME_ADDRESS,
	EXT_NAME_BORROWED, /* that of a variable inside a library */
	EXT_NAME_TARGET,   /* "*p" for some p that happened to be there */
	EXT_NAME_MEMBER,   /* "this->x": whose? "heap#3": who has it? */
	EXT_NAME_GOOD,
};

struct ext_named {
	uint8_t tries;   /* times a better name was looked for */
	uint8_t quality; /* enum ext_quality */
	bool foreign;    /* named, or tried to be, by an access of another thread than the first */
	uint32_t by;     /* the thread of the first access */
};

struct ext_location {
	uint64_t start;
	uint8_t size;
	bool only_written; /* while they are looked for: see ext_locations_add() */
	struct ext_named named;
	bool written; /* behind the gap of a window in the middle */
	uint32_t var; /* SYM_NONE until its first event */
};

struct ext_object {
	uint64_t address;
	enum sym_object_kind kind;
	uint32_t index; /* in the trace; SYM_NONE until its first event */
	uint32_t owner; /* exclusive owner now, or SYM_NONE */
	uint32_t depth;
	bool recursive;
	struct ext_named named;
	int64_t count;
	uint64_t arrived; /* barrier: so often */
	bool whole;       /* barrier: the current round began inside the window */
};

struct ext_block {
	uint64_t base, size;
	uint64_t site; /* inside the call that allocated it */
};

struct ext_counter {
	uint64_t pc; /* 0: free */
	uint64_t insn; /* of the last execution counted */
	uint64_t n;
	uint32_t thread;
};

/* A signal on its way. */
struct ext_sent {
	uint32_t thread, signal;
	uint32_t tid;    /* to whom; 0: any thread of the process */
	bool delivered;
	uint64_t pc, n;  /* the call */
};

/* What a descriptor stands for. */
struct ext_file {
	uint64_t opened; /* a number of its own; descriptors may share it. 0: it is closed, or not known */
	char *path;      /* or NULL */
};

struct ext_stack_seen {
	uint64_t hash; /* of its pcs; 0: free */
	uint32_t stack;
};

struct ext {
	struct trc *t;
	struct img_set *images;
	struct mach_run *run;
	const struct ext_options *o;
	struct share *share; /* the survey's */
	struct level *level;
	struct sym_trace *trace;
	uint64_t base;      /* where every execution begins: see extract_survey.h */
	uint64_t past;      /* replaying records before it: the how-manieth this is; else 0 */
	uint64_t from, to;  /* the window's first moment and its last */
	uint64_t accessed;  /* the moment of the last access */
	bool in_window;
	VEC(struct ext_thread) threads; /* by recorded index, as in the trace */
	VEC(struct ext_location) locations; /* sorted by start */
	VEC(struct ext_object) objects;
	VEC(struct ext_block) blocks; /* heap objects, in order of allocation */
	struct ext_misuse misuse, misused_fd, misused_stack, misused_lock;
	VEC(struct ext_past) sync_before; /* the window */
	bool sync_before_lost;
	struct ext_misuse_watch misuse_watch;
	VEC(struct ext_closed) closed;
	VEC(struct ext_destroyed) destroyed;
	VEC(struct ext_sent) sent;
	VEC(struct ext_interrupt) interrupts;
	VEC(struct ext_file) files; /* by descriptor */
	uint64_t nopened;
	VEC(struct ext_call) calls;
	bool calls_lost;
	struct ext_counter *counters;
	size_t ncounters, used_counters;
	bool failing_in_runtime; /* the failing thread died inside a library call ... */
	uint64_t failing_since;  /* ... that it entered after this instruction */
	uint64_t last_call_since; /* while it is looked for: survey->last_call is what came after this one */
	uint32_t failing;        /* recorded index, or SYM_NONE */
	const char *phase;
	bool stopped;
	uint32_t started;   /* threads so far */
	int common_fd;      /* a descriptor, not of a terminal's sort, that two threads used; -1: none */
	bool kernel_waits;  /* a call that may wait for another thread returned in the window */
	uint64_t steps; /* events so far */
	/* Behind the record: since when (0: not yet), until when events are kept, and what
	 * the failing thread's number and the failure's step are. */
	uint64_t onward, until;
	uint64_t failed_insn, failed_step;
	struct mach_point fate, brink; /* see struct ext_result */
	struct ext_stack_seen *stacks;
	size_t nstacks, stacks_cap;
	/* By symbol: a condition gives it its recorded value; how many conditions name it. */
	VEC(bool) pinned;
	VEC(uint32_t) named;
};

struct ext_thread *ext_thread(struct ext *x, uint32_t thread);

/* What is executed does not begin where the program did. */
static inline bool ext_is_part(const struct ext *x)
{
	return x->base || mach_began(x->run);
}

/* Instructions per thread behind the record; 0: none is to be executed. */
uint64_t ext_onward_insns(const struct ext *x);
/* The record ends here. */
void ext_onward(struct ext *x);

/* Does the window hold this moment? */
bool ext_is_inside(const struct ext *x, uint64_t time);
uint64_t ext_now(const struct ext *x);
/* The run has left a window in its middle. */
bool ext_is_behind(const struct ext *x);

/* Tells how far the execution is; true: stop. */
bool ext_stop(struct ext *x);
void ext_reset_level(struct ext *x);

/* extract_prelude.c: hooks for the beginning; the second also takes in the records before it. */
void ext_prelude_level(void *ext);
void ext_prelude(void *ext);

/* Does this access, or which part of it, make an event? (Keeps the level's state: call for every access.) Of a
 * string that is scanned *part is what is looked at in any case; else it is only set where the answer is yes. */
bool ext_matters(struct ext *x, const struct mach_access *a, struct mach_access *part);

/* n-th execution of pc by thread, counting this one; one instruction counts once.
 * Without the run's beginning that is known of calls only. */
uint64_t ext_count(struct ext *x, uint32_t thread, uint64_t pc, uint64_t insn);

/*
 * Adds an event of thread. pc is where a person sees it (sync: inside the call).
 * Fills in times, position and stack.
 */
uint32_t ext_event(struct ext *x, uint32_t thread, struct sym_event *e, uint64_t pc,
		   uint64_t occurrence, uint64_t insn);

/* The thread passed a timestamp: bounds the events around it. */
void ext_time(struct ext *x, uint32_t thread, uint64_t tsc);

/* extract_sync.c */
void ext_sync(struct ext *x, uint32_t thread, const struct trc_sync *rec);
/* All records before the beginning were taken in: who stood in a barrier had arrived. */
void ext_sync_settle(struct ext *x, uint32_t thread);
/* Every write of the third execution: some operations happen inside their call. */
void ext_sync_write(struct ext *x, const struct mach_access *a);
/* The operation of a thread that never got through, as its last event; SYM_NONE: none. */
uint32_t ext_sync_pending(struct ext *x, uint32_t thread);

/* extract_signals.c: a system call begins, or has returned; a handler begins */
/* extract_inside.c */
bool ext_may_wait(unsigned nr); /* a call through which threads may wait for each other, outside what is modelled */
void ext_inside_call(struct ext *x, uint32_t thread, const struct trc_enter *enter, bool returned);
void ext_inside_find(struct ext *x, struct ext_inside *out);

void ext_signals_call(struct ext *x, uint32_t thread, const struct trc_enter *enter, bool returned);
void ext_signals_delivered(struct ext *x, uint32_t receiver, uint32_t signal);

/* extract_files.c: a system call has returned */
void ext_files_call(struct ext *x, uint32_t thread, const struct trc_enter *enter, const struct trc_leave *leave);
void ext_files_free(struct ext *x);

/* extract_locate.c */
/* only_written: by an instruction that only writes. */
void ext_locations_add(struct ext *x, uint64_t address, unsigned size, bool only_written);
void ext_locations_done(struct ext *x);
/* Guards of static variables, and how many wait for an atomic one. */
void ext_locations_drop_librarys(struct ext *x);
/* The location that holds address. Never NULL for an address that was added. */
struct ext_location *ext_location_at(struct ext *x, uint64_t address);
/* Index of the first location at or behind address. */
size_t ext_location_from(const struct ext *x, uint64_t address);
uint32_t ext_location_var(struct ext *x, struct ext_location *l, const struct mach_access *a,
			  uint64_t before);
#define EXT_RUST_LIBRARY "Rust's library" /* what its own variables are called */
char *ext_name(struct ext *x, uint32_t thread, uint64_t address, unsigned size, char **type,
	       struct ext_named *named);

/*
 * Where a thing was first touched it may have had no name, or only that of a
 * parameter; a later access may know a better one. At most a few are asked.
 */
struct ext_naming {
	char **name, **type; /* type may be NULL */
	struct ext_named *named;
	uint8_t *below;      /* see struct sym_var; may be NULL */
};
void ext_name_better(struct ext *x, uint32_t thread, uint64_t address, unsigned size,
		     struct ext_naming *n);

/* extract_heap.c: must see every access of the third execution. */
void ext_heap_watch(struct ext *x, const struct mach_access *a);
/* Likewise, when the others have seen it. */
void ext_heap_watched(struct ext *x, const struct mach_access *a);
/* The function of memory that is called here ("malloc"), and how; NULL: none is. any: also by the C library. */
const char *ext_heap_called(struct ext *x, const struct mach_access *a, bool any, struct mach_entered *out);
/* Is this the name of an allocating function? What it was asked for. */
bool ext_heap_allocates(struct ext *x, const char *name, const struct mach_entered *e, uint64_t *size);
bool ext_heap_find(const struct ext *x, uint64_t address, struct img_heap *out);

/* extract_misuse.c: must see every access of the third execution, and what of it is looked at (size 0: nothing). */
void ext_misuse_watch(struct ext *x, const struct mach_access *a, uint64_t looked, unsigned size);

/* extract_left.c: a thread is born; it accesses memory. Freed with free(). */
void ext_birth_note(struct ext *x, uint32_t thread, uint32_t parent);
void ext_left_watch(struct ext *x, const struct mach_access *a);

/* The program's own instruction, or one of libc's on its behalf. (extract_misuse.c) */
bool ext_is_accused(struct ext *x, const struct mach_access *a);

/* extract_closed.c: a system call that has returned. */
void ext_closed_watch(struct ext *x, uint32_t thread, const struct trc_enter *enter,
		      const struct trc_leave *leave);

/* extract_destroyed.c: must see every operation of the third execution. */
void ext_destroyed_watch(struct ext *x, uint32_t thread, const struct trc_sync *r);

/* extract_stack.c */
uint32_t ext_stack(struct ext *x, uint32_t thread, uint64_t pc);
/* Of the call that the thread has come by, without the function called. */
uint32_t ext_stack_at(struct ext *x, uint64_t pc); /* of the code alone: who called it is not known */
uint32_t ext_stack_called(struct ext *x, uint32_t thread, const struct mach_entered *e);

/* extract_spoken.c: a name without what the C++ library calls its parts; takes and returns malloc'd text. */
char *ext_spoken(char *text);
/* The type of what a name stands for that several members share: of two counters updated at once the first; NULL: its own. */
const char *ext_spoken_type(const char *name);

/* extract_conds.c */
enum ext_cond_added {
	COND_SAYS_NOTHING,
	COND_IMPLIED, /* the values in it are fixed by other conditions */
	COND_ADDED
};
/* Conditions hold from the thread's last event on. At once: its values are fixed instead. */
enum ext_cond_added ext_add_cond(struct ext *x, uint32_t thread, expr_id cond, uint64_t pc, bool pin_at_once);

/* extract_build.c: the third execution; extract_failure.c: what it ended in. */
err_t ext_build(struct ext *x);
/* The thread's read that gave this symbol its value, or NULL. */
const struct sym_event *ext_reader(const struct sym_trace *t, size_t thread, uint64_t symbol);
void ext_failure(struct ext *x);
/* Several locks with one name: "a.m#1", "a.m#2". */
void ext_tell_objects_apart(struct ext *x);
/* Words that are used as locks become locks (extract_locks.c). */
void ext_find_locks(struct ext *x);

#endif
