/*
 * The heart of libcsched.so: threads, events, failures, the end.
 *
 * Rules of the house (see README.md): nothing here allocates with malloc, uses
 * stdio, sets errno, touches a vector register, or calls a libc function that
 * another library could interpose. Two kinds of code live in preload/:
 *
 *   wrappers (interpose/)   stand in for libc's functions. In path mode they
 *       run translated and are re-executed offline, so they use only their own
 *       stack, the read-only table of real functions (interpose/real.h) and
 *       system calls. Whatever they want recorded goes through shim_event().
 *   native code (the rest)  runs behind shim_event() or in the translator's
 *       callouts; it touches only the shim's own memory.
 */
#ifndef CSCHED_PRELOAD_SHIM_H
#define CSCHED_PRELOAD_SHIM_H

#include "common/trace_format.h"
#include "preload/options.h"
#include "preload/record/stream.h"

#include <stdbool.h>
#include <stdint.h>

#define SHIM_NO_THREAD UINT32_MAX
#define SHIM_ID_MAX 48
#define SHIM_HELD_MAX 64
#define SHIM_NAME_MAX 32
#define SHIM_SAID_MAX 400 /* bytes; the last lines before an end are short */

enum shim_life {
	SHIM_FREE,
	SHIM_RESERVED, /* pthread_create is under way */
	SHIM_LIVE,
	SHIM_EXITING,  /* its start routine is done; destructors may still run */
	SHIM_GONE,     /* streams closed; the slot waits for a join */
};

struct shim_held {
	uint64_t object;
	uint64_t site;
	uint32_t op; /* enum trc_op that took it */
	uint32_t pad;
};

/* What a number in the thread's stream stands for, see struct trc_sync_named. */
struct shim_named {
	uint64_t object, site, value;
	uint64_t op_at; /* 0: nothing yet */
};

/* One per thread. Never unmapped (slots are reused), so others may look at any time. */
struct shim_thread {
	struct rec_stream rec;     /* tN.rec */
	struct rec_stream path;    /* tN.path, path mode */
	uint64_t nevents;
	/* What it waits for; op 0: nothing. Published with seq_cst, see deadlock.c. */
	uint32_t blocked_op;
	uint32_t waking;           /* a wake-up it is about to do, see deadlock.c */
	uint32_t nheld;
	uint64_t blocked_object, blocked_site, blocked_value;
	uint64_t blocked_wakes;    /* wake-ups before it began to wait; ~0: one was under way */
	uint64_t last_site, last_sp;
	struct shim_held held[SHIM_HELD_MAX];
	uint64_t clock_at;         /* path mode: the record pointer when the clock was last read */
	bool naming;               /* in the middle of using `named`: handlers leave it alone */
	struct shim_named named[TRC_SYNC_SLOTS];

	enum shim_life life;
	bool detached;
	bool cancelled;            /* pthread_cancel was called for it: may wake from any wait */
	uint32_t index, parent, ordinal, tid;
	uint32_t nchildren;
	uint64_t pthread;
	uint64_t key;              /* ties a reservation to the thread it becomes */
	struct shim_thread *pending; /* reservation for the clone this thread is about to do */
	uint32_t pending_index;
	char id[SHIM_ID_MAX];      /* "T0.2.1"; deep families end in "~" */
	void *alt_stack;           /* sync mode: for our fault handlers */
	uint32_t alt_flags;        /* SS_AUTODISARM, when the program has disabled its own with it */
	uint64_t hidden_mask;      /* fault signals the program believes to be blocked */
	void *translator;          /* the translator's context, its own business, ... */
	const uint64_t *path_ptr;  /* ... but for its record pointer; NULL: does not move */
	uint64_t pthread_since;    /* when it got its pthread: larger is later. Indices are no measure,
				    * they are given out before libc makes the thread */
	uint32_t joining;          /* index + 1 of the thread this one waits for; 0: none */
	uint64_t born;             /* tsc */
	uint32_t nsaid;            /* the last bytes it wrote to standard error: said.h */
	char said[SHIM_SAID_MAX];
	char name[SHIM_NAME_MAX];  /* as given with pthread_setname_np(); flight recorder only */
};

#define SHIM_PROCESS_MAX 64

enum shim_state {
	SHIM_OFF,       /* not started, or staying out */
	SHIM_DORMANT,   /* a trace is made at the next event: after fork, before exec (sync mode) */
	SHIM_RECORDING,
	SHIM_ENDED,     /* the end is written; later events are dropped */
};

/* Process-wide state, shim memory only. */
struct shim_process {
	enum shim_state state;
	bool failed;          /* a failure is recorded: the first one stands */
	bool deadlocked;      /* ... and it is a deadlock or hang, which may be withdrawn */
	bool in_handler;      /* ... and it is a signal that the program handles itself: what its handler does decides */
	uint32_t pid;
	uint32_t nthreads;    /* indices given out */
	uint32_t nlive, nblocked;
	uint32_t nhelpers;    /* our own kernel threads, see watch.c */
	uint32_t forks;       /* processes made so far */
	char process[SHIM_PROCESS_MAX]; /* which of those we are: "2.1" is the first of the second; "": none */
};
extern struct shim_process shim;

/*
 * The calling thread. Sync mode: a thread-local pointer, adopting threads that
 * were not seen being made. Path mode: whatever the translator's hook returns
 * (set before tr_takeover() returns control to the program).
 */
extern struct shim_thread *(*shim_self_hook)(void);
/* Initial-exec: reading it never allocates. Not used in path mode. */
extern __thread struct shim_thread *shim_own
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
struct shim_thread *shim_self(void);
struct shim_thread *shim_self_known(void); /* the same without adopting; may be NULL */

/*
 * A thread is born. In path mode the translator calls this at the clone system
 * call, in the parent or the child, before the child does anything; a
 * reservation the parent's pthread_create wrapper left behind is used up, so that
 * index and ordinal agree with the CREATE event. NULL: out of memory (degraded).
 */
struct shim_thread *shim_thread_new(struct shim_thread *parent, uint32_t tid);
/* Of a thread made with tid 0, before it runs: now the kernel has said. */
void shim_thread_tid(struct shim_thread *t, uint32_t tid);
/* It is gone for good: closes its streams. Any thread may call it. */
void shim_thread_exit(struct shim_thread *t);
struct shim_thread *shim_thread_at(uint32_t index); /* NULL: unknown or gone */
struct shim_thread *shim_thread_by_tid(uint32_t tid);
struct shim_thread *shim_thread_by_pthread(uint64_t pthread);
/* Whom t is joining. Its pthread value may be another's already: libc gives it away before
 * the joiner is back. */
struct shim_thread *shim_thread_joining(const struct shim_thread *t);
void shim_thread_set_pthread(struct shim_thread *t, uint64_t pthread);
/* Whom pthread_tryjoin_np() has just joined, or not. */
struct shim_thread *shim_thread_tryjoined(uint64_t pthread);
void shim_thread_name(struct shim_thread *t, const char *name, size_t len);

/* All that are not joined yet, once more: for the process stream of another epoch. Under rec_lock(). */
void shim_threads_again(void);

/* For thread.c and event.c only. */
struct shim_thread *shim_thread_reserve(struct shim_thread *parent, uint64_t key);
struct shim_thread *shim_thread_claim(uint64_t key, uint64_t pthread);
void shim_thread_unreserve(struct shim_thread *t);
void shim_thread_leaving(struct shim_thread *t); /* LIVE -> EXITING */
void shim_thread_settled(struct shim_thread *t); /* joined or detached: the slot may go */
void shim_threads_forget(void);  /* after fork: everything of the parent's goes, unwritten */
bool shim_threads_main(void);    /* the caller is T0 of a new trace */
uint64_t shim_all_events(void);  /* changes whenever any thread has an event */
/* Slot i, or NULL; slots are never unmapped. For walks without the lock. */
unsigned shim_nslots(void);
struct shim_thread *shim_slot(unsigned i);

/*
 * The record primitive. op_at is enum trc_op | enum trc_at << 12. Always
 * returns `result` unchanged (so re-execution offline needs no knowledge of
 * it). In path mode the translator knows this address and calls
 * shim_event_native() on its own stack instead.
 */
long shim_event(unsigned op_at, uint64_t object, uint64_t site, long result, uint64_t thread,
		uint64_t value);
long shim_event_native(unsigned op_at, uint64_t object, uint64_t site, long result,
		       uint64_t thread, uint64_t value);
#define SHIM_AT(op, at) ((unsigned)(op) | (unsigned)(at) << 12)

struct shim_fault {
	int32_t signal, code, status;
	uint64_t address;
	uint64_t path_pos;
};

/*
 * Records a failure, the stacks of all threads and late modules, and prints the
 * two lines. Only the first failure of a process counts. `t` may be NULL (not
 * known), regs may be NULL. text: the reason in words, one line.
 * Path mode: the translator calls this for fatal signals with application registers.
 */
void shim_failure(enum trc_failure_kind kind, struct shim_thread *t, const struct shim_fault *f,
		  const uint64_t regs[TRC_NREGS], const char *text, const void *detail,
		  size_t detail_len);
/* Does nothing. Exported, so that gdb can stop at a failure in a stripped library, too: csched replay --native --gdb. */
void csched_at_failure(enum trc_failure_kind kind, const uint64_t regs[TRC_NREGS]);

/*
 * The same for a fatal signal: finds out by itself whether it was an abort with
 * a message, an uncaught exception or a plain signal, and words the reason.
 */
void shim_failure_signal(struct shim_thread *t, const struct shim_fault *f,
			 const uint64_t regs[TRC_NREGS]);

/*
 * A fatal signal that the program handles itself: written before its handler runs, and said only when it
 * stands: the process ends inside the handler. Withdrawn when the program goes on.
 */
void shim_failure_handled(struct shim_thread *t, const struct shim_fault *f, const uint64_t regs[TRC_NREGS]);
void shim_failure_settle(bool stands);
void shim_failure_withdraw(void); /* writes that the last failure was none. Under rec_lock() */

/*
 * The process ends: kind as trc_end.flags (0 exit, 1 signal, 2 exec). Writes
 * TRC_END, seals what this thread owns, and removes the trace unless it is to be kept.
 * Path mode: the translator calls it at exit_group and before a fatal signal's default action.
 * Does nothing in a vfork child.
 */
void shim_process_end(int kind, int status);
void shim_fall_silent(void);

/*
 * In the child after fork: recording off (follow=0), or a new trace of its own:
 * path mode at once, sync mode at the first event that is not exec or exit.
 */
void shim_after_fork(void);
/* Before that, in path mode: which of its parent's forks it is, from 1. */
void shim_forked_as(uint32_t which);

/* Before execve, and when it failed. In between the trace may be gone (keep=failure). */
void shim_exec_begin(const char *path);
void shim_exec_failed(void);

/* Directory, process stream, identity, modules, T0. False: not recorded, said why. */
bool shim_start_trace(void);

/* True in a child that shares our memory (vfork) or copied it without us noticing (raw clone). */
bool shim_is_other_process(void);
/* Zero in a forked child until shim_after_fork() ran: the kernel wipes the page. */
extern volatile uint32_t *shim_here;

/* A line for the trace (assumption) or about lost recording (degraded, printed once per text). */
void shim_note(bool degraded, const char *text);
void shim_degrade(const char *text);
/* A line on the shim's own descriptor: "csched: TEXT". Level 0 always, unless quiet. */
void shim_say(int level, const char *text);

/* A close-on-exec copy of fd, high above what programs use; negative errno. */
int shim_fd_high(int fd);
int shim_fd_from(void); /* the lowest number such a copy gets; 3: there is no room for high ones */

/* Weak: absent until translate/ is linked in. See translate/translate.h. */
bool tr_available(void) __attribute__((weak));
const char *tr_why_not(void) __attribute__((weak));
void tr_takeover(void) __attribute__((weak));
uint64_t tr_path_pos(struct shim_thread *t) __attribute__((weak)); /* bytes of tN.path so far */
/* It runs without the translator, which has given up. */
bool tr_is_native(const struct shim_thread *t) __attribute__((weak));
/* Looks whether a checkpoint that is being written has become whole. */
void tr_epoch_settle(void) __attribute__((weak));
/* Memory of ours: no snapshot holds it, and the program cannot unmap it. */
void tr_own(void *p, size_t len) __attribute__((weak));
/* The application's stack pointer and pc where the thread was last seen; false: unknown. */
bool tr_whereabouts(const struct shim_thread *t, uint64_t *sp, uint64_t *pc)
	__attribute__((weak));
/* The process ends (kind as trc_end.flags), and so does whatever a handler of the program made of a crash. */
void tr_crash_end(const struct shim_thread *t, int kind, int status) __attribute__((weak));
/* The kernel's handler of the signal is the translator's, and the program itself has none. */
bool tr_stands_in(int sig, uint64_t handler) __attribute__((weak));

/* interpose/: the i-th part of our memory that wrappers use, in whole pages; false: there are no more. */
bool shim_wrappers_memory(unsigned i, uint64_t *start, uint64_t *end);

#endif
