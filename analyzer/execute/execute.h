/* Inside of mach_execute(): execute.c and execute_calls.c. */
#ifndef CSCHED_MACHINE_EXECUTE_H
#define CSCHED_MACHINE_EXECUTE_H

#include "analyzer/execute/orders.h"
#include "analyzer/follow/follow.h"

struct exec_point {
	uint32_t thread;
	uint64_t insn;  /* in the recorded run */
	uint64_t place; /* pc, or a number for (operation, site); 0: neither was found */
	uint64_t inside; /* of a pc: the operation that the thread was inside of, see struct execution */
	uint64_t nth;   /* execution of it (inside of that) by the thread, from 1, since the start */
	size_t next;    /* of the same thread */
	bool ends;      /* it is the end of the thread */
};

struct count;
struct counts {
	struct count *v;
	size_t n, cap;
};

/* A thread blocked in a futex wait. */
struct futex_wait {
	bool waiting, can_time_out;
	uint64_t address;
	uint32_t bitset;
	uint64_t since; /* order of arrival */
};

/* The load half of an update whose store half comes later in the order. */
struct early_load {
	bool done;
	bool told; /* to the hooks of mach_try(): not once more when its instruction is executed */
	uint64_t address, value;
	uint32_t size;
};

#define EXEC_POLLS 8u  /* reads of the same value by the same instruction, and nothing new written: it waits for another */
#define POLL_WRITES 32 /* of different instructions, as a rule: what each wrote last */

/* A read that comes again and again, in mach_try(). */
struct exec_poll {
	uint64_t pc, address, value;
	uint64_t written[POLL_WRITES]; /* hashes */
	unsigned rounds, quiet, length; /* quiet: accesses since the last one; length: so many at most */
};

/* The failing thread went past the failure; what comes next must bear it out. */
struct exec_passage {
	bool seen;
	uint64_t time; /* the run's */
	uint32_t thread;
	uint64_t pc;
	char *why;
};

struct execution {
	struct mach_outcome *out;
	struct exec_point *points;
	size_t npoints, at;
	size_t nstrict;     /* those behind are loose, see struct mach_order */
	size_t *first_of;   /* by thread: its next point, while translating and executing */
	bool others_first;  /* see struct mach_order */
	uint32_t goes_first;
	bool young_first, made; /* made: a thread was, and its creator stands there */
	bool begun;         /* the failing thread has come to its first operation */
	bool translating;
	bool broken;        /* the points could not be executed in their order */
	struct counts counts;
	/* By thread: the operation it is inside of, as the place of its end (0: none); when
	 * recorded (with the number of that end, had it come), and here. */
	struct exec_point *unfinished;
	uint64_t *inside;
	bool *step;         /* by thread: stands at a breakpoint that was counted */
	uint64_t *leaves;   /* by thread: where the call returns to that releases or wakes, told before it does; 0: none */
	/* What belongs to a moment, like registers and memory: one block, so that it can be copied. */
	void *state;
	size_t state_size;
	struct futex_wait *wait; /* by thread */
	struct early_load *early; /* by thread */
	uint64_t *cleared;  /* by thread: the word that its end clears; 0: none */
	uint64_t *arrivals; /* so far */
	bool keeps;         /* the run becomes this order: its steps go into r->log */
	uint64_t *breaks;
	/* The instructions that decide the failure, see struct mach_order; nth 0: not known. */
	struct exec_point fate, brink;
	uint64_t fate_next, brink_next; /* where they went when recorded */
	bool decided;        /* it has been executed ... */
	bool turned;         /* ... and went elsewhere, */
	uint64_t turned_at;  /* at this time of the run */
	uint64_t fail_insns; /* of the failing thread, when it failed */
	uint64_t fail_from;  /* where the failing thread stood at its last point, here ... */
	uint64_t fail_distance; /* ... and how far from there it failed when recorded */
	struct exec_passage passage;
	uint64_t began, longest; /* ... and how long it may take, */
	uint64_t patience;       /* and how long a thread that seems to wait for others may take to its next point */
	bool gave_up;            /* one took longer */
	uint64_t blocked_at;     /* the futex that a thread waited for, instead of coming to the last point; 0: it did not */
	const struct mach_try *try; /* no recorded failure is asked for: see execute_try.c */
	struct mach_tried *tried;
	struct exec_poll *poll; /* by thread */
	bool makes_way;      /* the thread gave its turn away, or seems to wait for others */
	bool onward;         /* from where the record ends: nothing is asked, see onward.c */
	bool done;
};

#define EXEC_FRESH_MAPS 0x600000000000ull

/* execute.c */
void exec_new(struct mach_run *r, struct execution *x); /* its arrays */
void exec_free(struct mach_run *r, struct execution *x);
/* At most n instructions of t, as long as it can run. */
void exec_go(struct mach_run *r, struct execution *x, struct run_thread *t, uint64_t n);
void exec_go_before(struct mach_run *r, struct execution *x, struct run_thread *t);
bool exec_let_others(struct mach_run *r, struct execution *x, uint32_t but);
void exec_run_points(struct mach_run *r, struct execution *x);
void exec_set_breaks(struct mach_run *r, struct execution *x);
void exec_settle_calls(struct mach_run *r, struct execution *x);
/* What the thread stands before, as the engine said it. */
void exec_do(struct mach_run *r, struct execution *x, struct run_thread *t, enum mach_stop stop);

/* execute_keep.c: the run becomes the order */
void exec_keep_begin(struct mach_run *r, struct execution *x, size_t log, uint64_t left);
void exec_keep_step(struct mach_run *r, const struct execution *x, uint32_t thread, enum action a, uint64_t insns);
void exec_keep_end(struct mach_run *r, struct execution *x); /* x is the run's from now on */

/* execute_try.c: an order of the caller's own, watched */
void exec_try_event(struct mach_run *r, struct execution *x, uint32_t thread);
void exec_try_syscall(struct mach_run *r, struct execution *x, struct run_thread *t);
void exec_try_half(struct mach_run *r, struct execution *x, uint32_t thread, uint64_t pc);
void exec_try_ended(struct mach_run *r, struct execution *x, uint32_t thread);
void exec_try_exit(struct execution *x, uint32_t thread, int status);
void exec_try_failed(struct mach_run *r, struct execution *x, uint32_t thread, int sig, uint64_t pc);
void exec_try_left(struct mach_run *r, struct execution *x, uint32_t thread, const char *what);

/* onward.c: t calls the record primitive; true: it goes no further. */
bool onward_event(struct mach_run *r, struct run_thread *t);

/* execute_points.c */
/* While translating: the thread passes a place. */
void exec_passed(struct execution *x, uint32_t thread, uint64_t place, uint64_t insn);
/* Translates the points, by executing the recorded order from `from` on. */
err_t exec_translate(struct mach_run *r, struct execution *x, const struct mach_order *o);
/* Points of one thread in a list, by rising instruction number, from x->first_of on. */
void exec_link_points(struct execution *x, size_t nthreads);
/* Counts one more execution of a place; an operation's place is exec_event_place(). */
void exec_inside(uint64_t *inside, unsigned op_at, uint64_t site);
void exec_count_up(struct execution *x, uint32_t thread, uint64_t place);
void exec_counts_reset(struct execution *x);
uint64_t exec_count(struct execution *x, const struct exec_point *p); /* of its place, so far */
uint64_t exec_event_place(unsigned op_at, uint64_t site);
/* The point's thread is at this place, and its n-th execution is next. */
bool exec_stands_at(struct execution *x, const struct exec_point *p, uint64_t place);
/* The n-th execution of the point's place is behind us (its step included). */
bool exec_reached(struct mach_run *r, struct execution *x, const struct exec_point *p);

/* execute_split.c: an update whose load and store are not next to each other in the order */
bool exec_splits(const struct execution *x, const struct exec_point *p);
/* Brings t before the instruction and loads; false: it cannot come there now. */
bool exec_load_early(struct mach_run *r, struct execution *x, struct run_thread *t,
		     const struct exec_point *p);
/* The current thread stands before it: loads. */
bool exec_load_now(struct mach_run *r, struct execution *x, struct run_thread *t);
/* The current thread is about to execute it: it sees what was loaded. */
void exec_store_late(struct mach_run *r, struct execution *x, uint32_t thread);

/* execute_spin.c: t, the current thread, goes round in a circle (a round of it is executed). *changes: becomes
 * true when that leaves something in memory. */
bool exec_spins(struct mach_run *r, struct execution *x, struct run_thread *t, bool *changes);

/* execute_fate.c */
#define EXEC_MARGIN 500u /* instructions past where it failed when recorded: it did not */
bool exec_decide(struct execution *x, enum mach_outcome_kind kind, uint32_t thread, uint64_t pc,
		 const char *why);
/* The failing thread is further than where it failed when recorded, and did not. */
bool exec_past(const struct mach_run *r, struct execution *x);
/* A thread fails at pc: as recorded or not. sig 0: by an assertion. */
void exec_failed(struct mach_run *r, struct execution *x, uint32_t t, int sig, uint64_t pc);
void exec_left(struct mach_run *r, struct execution *x, uint32_t t, const char *what);
/* After too many instructions. */
void exec_gave_up(struct mach_run *r, struct execution *x);
/* Nobody can go on: as recorded or not. */
void exec_stuck(struct mach_run *r, struct execution *x);
void exec_exited(struct mach_run *r, struct execution *x, uint32_t t, int status);
/* All that can run go round in circles, and have had their turn. */
void exec_livelock(const struct mach_run *r, struct execution *x);
void exec_fate_passed(struct mach_run *r, struct execution *x);
/* Long enough past the failure without another: it held. */
void exec_aftermath(struct mach_run *r, struct execution *x);
/* The failing thread, now current, has run a little: was its fate decided? */
void exec_fate_note(struct mach_run *r, struct execution *x);
/* It cannot run at the moment. */
void exec_fate_blocked(struct mach_run *r, struct execution *x);
/* How far a thread may run: what was decided is to be seen before anything else. */
uint64_t exec_fate_limit(const struct mach_run *r, const struct execution *x, uint32_t t,
			 uint64_t limit);

/* execute_calls.c */
void exec_syscall(struct mach_run *r, struct execution *x, struct run_thread *t);
void exec_adopt_call(struct mach_run *r, struct execution *x, struct run_thread *t);
void exec_returns(struct mach_run *r, int64_t result);   /* it is over */
/* The thread's wait ends by time, if it has one. */
bool exec_time_out(struct mach_run *r, struct execution *x, uint32_t t);

/* execute_spawn.c: a thread whose creation differs from the record; false: none can be made */
bool exec_spawn(struct mach_run *r, struct execution *x, struct run_thread *t, uint64_t nr);

/* execute_anew.c */
/* Makes a call that was not recorded; false: nobody knows what it gives. */
bool exec_holds_others(const struct mach_run *r, const struct execution *x);
bool exec_anew(struct mach_run *r, struct execution *x, struct run_thread *t, uint64_t nr);
/* Where nothing is mapped, the same in every execution of the same order; 0: no room. */
uint64_t exec_fresh_place(struct mach_run *r, uint64_t size);

#endif
