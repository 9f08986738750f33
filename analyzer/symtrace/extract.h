/*
 * From a followed run to a symbolic trace: which events matter, and what their
 * values are in terms of what was read.
 *
 * Nobody marks shared variables. A location is shared when two threads touch
 * it, one of them writing, from the program's own code (extract_level.h says
 * what that is). Three executions of the committed order, of a long run only of a
 * stretch before its end (extract_survey.h):
 *
 *   1. concrete: who touches which bytes
 *   2. concrete: when events on shared locations happen, and what they access; choice of
 *      the window (the last `window` events, or all). Without shared bytes there are none
 *   3. symbolic: events with expressions, path conditions, stacks and names
 *
 * The first two are kept in `survey` and not done again for another window.
 *
 * With `onward` all of them go on where the record ends: the threads that had
 * neither failed nor ended do what they would have done next, as far as that
 * can be computed and is not too much.
 */
#ifndef CSCHED_SYMTRACE_EXTRACT_H
#define CSCHED_SYMTRACE_EXTRACT_H

#include "analyzer/execute/orders.h"
#include "analyzer/symtrace/symtrace.h"
#include "common/vec.h"

struct ext_survey;
struct ext_survey *ext_survey_new(void);
void ext_survey_free(struct ext_survey *s);

/*
 * A window in the middle of the run, in moments of it. Behind its end, and in the gap between its two parts
 * (gap_from 0: there is none), everything goes on as recorded and makes no events, but for joins; what it makes
 * of the window's values is known all the same.
 */
struct ext_middle {
	uint64_t from, gap_from, gap_to, to;
};

struct ext_options {
	struct ext_survey *survey; /* of this run, kept between extractions; NULL: not kept */
	uint64_t window; /* events to keep; 0: all, up to a built-in limit */
	uint64_t tail;   /* events to keep behind the failing thread's last; 0: all. With it the
			  * window is counted from there: others run on while it fails */
	bool whole;      /* from the beginning, be the run ever so long: events get occurrences */
	bool focus;      /* only what the failing thread touched makes events; with a survey of its own */
	const struct ext_middle *middle; /* this instead of the last events; with a survey of its own. NULL: none */
	bool onward;     /* with what the other threads do next, behind the record (computed) */
	/* part is 0..1; true stops the work. May be NULL. */
	bool (*progress)(void *arg, const char *phase, double part);
	void *progress_arg;
};

/*
 * After an extraction with o: how large a window must be for each wanted thread to have so many
 * more events before the old one, or as many as there are up to the limit.
 */
uint64_t ext_survey_reach(const struct ext_options *o, const bool *wanted, size_t nthreads,
			  uint32_t more, uint64_t limit);

enum ext_misuse_kind {
	EXT_MISUSE_NONE,
	EXT_MISUSE_FREED,  /* a heap block, the first access to it */
	EXT_MISUSE_LEFT,   /* a variable of a function that another thread has returned from, likewise */
	EXT_MISUSE_DESTROYED, /* a mutex, the first time that it is refused */
	EXT_MISUSE_CLOSED, /* a descriptor that another thread has closed, the failing thread's last use */
};

/* Use of what is no more, as far as can be told. "Freed" stands for all of these. */
struct ext_misuse {
	enum ext_misuse_kind kind;
	uint32_t descriptor, call; /* CLOSED: the system call's number */
	bool again;             /* it was freed a second time */
	bool write;
	uint32_t thread, stack; /* stacks of the trace */
	uint32_t freed_by, freed_stack; /* stack SYM_NONE: not known */
	char *name;             /* of what was accessed, malloc'd; NULL: freed again */
	/* FREED: the block, and the next event of either thread when it was used and freed; SYM_NONE: that was
	 * before the window. */
	uint64_t base, size;
	uint32_t event, freed_event;
	uint32_t made_stack; /* where it was allocated; SYM_NONE: not known */
};

/* A synchronisation before the window. */
struct ext_past {
	enum sym_op op;
	uint32_t thread;
	enum sym_object_kind kind;
	int32_t result;
	uint64_t object;         /* its address ... */
	uint64_t cond;           /* ... and, of the release and the lock of a wait, that of the condition */
	uint64_t pc, occurrence;
};

/*
 * A signal that one thread sent another. The system calls are named by their instruction and
 * which execution of it by its thread (from 1) it is.
 */
struct ext_interrupt {
	uint32_t sender, receiver;
	uint64_t sent_pc, sent_n;
	/* The receiver's handler began behind this call of it; pc 0: behind its last event. */
	uint64_t call_pc, call_n;
	uint32_t next; /* the receiver's first event behind that */
};

#define EXT_TOUCHES 4

/* Calls that read a thing may change places, also those that enter names into a directory. */
enum ext_touch_how { EXT_NOT_AT_ALL, EXT_READS, EXT_ENTERS, EXT_CHANGES };

/* What a call says of a name, whatever overlapped with it. */
enum ext_name_state { EXT_NAME_UNKNOWN, EXT_NAME_MISSED, EXT_NAME_FOUND, EXT_NAME_TAKEN_AWAY, EXT_NAME_MADE };

struct ext_call_touch {
	uint64_t object;
	enum ext_touch_how how;
	enum ext_name_state name;
};

/* A system call that has to do with files, named as for signals, and what it touched. */
struct ext_call {
	uint32_t thread;
	uint32_t next;        /* its thread's first event behind it */
	uint64_t pc, n;
	uint64_t caller;      /* where it returns to in the program's own code; 0: not known */
	uint64_t begin, end;  /* on one scale: of calls that overlap, which was first only their results tell */
	struct ext_call_touch touches[EXT_TOUCHES];
	unsigned ntouches;
	bool takes;           /* what it read is gone for others: of two such calls the first to end was first */
};

/* Where the program stood still for good, a thread that was inside a system call that another one may end. */
struct ext_inside {
	uint32_t thread; /* SYM_NONE: there is none */
	char *where;     /* "read() at loop.c:58" */
};

struct ext_result {
	struct sym_trace *trace;
	VEC(struct ext_past) past; /* in the order of the run; empty when there are too many */
	VEC(struct ext_interrupt) interrupts;
	VEC(struct ext_call) calls; /* as they ended; empty when there are too many */
	bool *started;      /* by thread: it had begun when the window begins */
	uint64_t from;      /* run time at which the window begins; 0: the whole run */
	uint64_t to;        /* and ends, in the middle of the run; 0: with the run */
	uint64_t base;      /* run time before which nothing was looked at; 0: all was */
	uint64_t total;     /* shared events in the run since then */
	uint64_t locations; /* shared locations */
	uint64_t accesses;  /* all accesses executed */
	uint64_t onward_insns; /* for struct mach_order */
	/* By thread: events from this one on were computed, not recorded; SYM_NONE: none. */
	uint32_t *computed;
	/* points[thread][event]: where the machine executes that event. */
	struct mach_point **points;
	/* The branch whose outcome is the failure's condition; thread SYM_NONE: there is none. */
	struct mach_point fate;
	/* The last branch of the program's own code before the failure, where that is another. */
	struct mach_point brink;
	struct ext_misuse misuse;
	struct ext_inside inside;
	int common_fd; /* two threads used this descriptor, and it is none of 0 to 2; -1: no such */
};

err_t ext_extract(struct trc *t, struct img_set *images, struct mach_run *run,
		  const struct ext_options *o, struct ext_result **out);
void ext_result_free(struct ext_result *r);

#endif
