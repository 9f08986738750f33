/*
 * The symbolic trace: the seam between the two halves of the analyzer.
 *
 * Left of it stand ELF, x86 and the recorder; right of it Z3. It holds, per
 * thread and in program order, the events that matter (shared reads and
 * writes, synchronisation, thread life, the failure), the conditions the
 * recorded path imposes on the values read, and the condition under which the
 * run fails. csched-sym(5) is its text form, which round-trips exactly.
 *
 * Meaning (sequential consistency): a schedule is a total order of all events
 * that respects program order and synchronisation. Executing it gives every
 * read symbol a value; it is *feasible* when all path conditions hold for the
 * events executed, and *failing* when the failure condition holds as well.
 */
#ifndef CSCHED_SYMTRACE_H
#define CSCHED_SYMTRACE_H

#include "analyzer/expr/expr.h"
#include "common/err.h"

#include <stdio.h>

#define SYM_NONE UINT32_MAX

/*
 * One memory location, accessed whole by every event on it. Accesses that
 * overlap partly share one location of the union's size; a partial write is
 * then a SYM_RMW with atomic = true, a partial read an extract of the symbol.
 */
struct sym_var {
	char *name;        /* "fifo->count", "buf[3]", or "0x7f..." */
	char *type;        /* from DWARF, or NULL */
	uint64_t address;  /* 0 when unknown */
	uint8_t width;     /* bits (1..64), or EXPR_INT */
	uint8_t below;     /* so many of them lie below what is named (not part of the text form) */
	bool has_init;     /* false: one unknown initial value shared by all */
	expr_id init;      /* value before the first event */
};

enum sym_object_kind {
	SYM_MUTEX,     /* may be recursive */
	SYM_RWLOCK,
	SYM_COND,
	SYM_SEM,       /* .count: initial value */
	SYM_BARRIER,   /* .count: threads that make one round */
	SYM_ONCE,
};

struct sym_object {
	char *name;
	enum sym_object_kind kind;
	uint64_t address;
	bool recursive;
	bool home_made; /* a word that the program uses as a lock (not part of the text form) */
	int64_t count;
	uint32_t owner; /* thread index holding it before the first event, or SYM_NONE */
};

enum sym_op {
	SYM_READ,      /* var; symbol = value read */
	SYM_WRITE,     /* var; value = expression written */
	SYM_RMW,       /* var; atomic: reads symbol, writes value (EXPR_NONE: wrote nothing,
			* e.g. a failed compare-exchange, still a locked operation) */
	SYM_FENCE,     /* drains the store buffer (TSO only) */
	SYM_LOCK,      /* object; exclusive acquisition (mutex, rwlock write, spin lock) */
	SYM_RDLOCK,    /* object; shared acquisition of a rwlock */
	SYM_UNLOCK,    /* object; of either kind; also the release inside a wait */
	SYM_TRYLOCK,   /* object; result: 1 acquired (then as SYM_LOCK), 0 busy: some other
			* thread held it at that moment */
	SYM_TRYRDLOCK,
	SYM_WAIT,      /* object = cond: the wake-up. The wait's release of the mutex is the
			* SYM_UNLOCK at index `link` of the same thread, its re-acquisition
			* the SYM_LOCK that follows. result: 1 signalled, 0 timed out
			* (no signal needed), 2 spurious or unknown (no signal needed) */
	SYM_SIGNAL,    /* object = cond */
	SYM_BROADCAST,
	SYM_SEMWAIT,   /* object; result 1 decremented, 0 try failed / timed out (try: count was 0) */
	SYM_SEMPOST,
	SYM_BARRIER_ENTER, /* object; arrival */
	SYM_BARRIER_LEAVE, /* object; link = index of its ENTER; all arrivals of the round precede it */
	SYM_ONCE_BEGIN,    /* object; result 1: this thread runs the initialiser; 0: it waited for it */
	SYM_ONCE_END,      /* object; the initialiser finished / the waiter goes on */
	SYM_FORK,      /* peer = child thread */
	SYM_START,     /* first event of a thread */
	SYM_EXIT,      /* last event of a thread */
	SYM_JOIN,      /* peer = joined thread */
	SYM_FAIL,      /* the failure; last event of its thread */
	SYM_OP_COUNT
};

struct sym_frame {
	char *function; /* never NULL; "0x..." when unknown */
	char *file;     /* or NULL */
	uint32_t line;  /* 0 when unknown */
	uint64_t pc;
	char *module;   /* or NULL */
};

/* Innermost first; frames[0] is where the event happens. */
struct sym_stack {
	struct sym_frame *frames;
	uint32_t n;
};

struct sym_event {
	enum sym_op op;
	uint32_t thread;  /* index into sym_trace.threads */
	uint32_t index;   /* index into that thread's events */
	uint32_t target;  /* var (READ/WRITE/RMW) or object (sync) index, or SYM_NONE */
	uint32_t peer;    /* FORK, JOIN: thread index; else SYM_NONE */
	uint32_t link;    /* WAIT: its UNLOCK; BARRIER_LEAVE: its ENTER; else SYM_NONE */
	int32_t result;   /* see enum sym_op; 1 when it has no outcome */
	expr_id symbol;   /* READ, RMW */
	expr_id value;    /* WRITE, RMW */
	bool has_seen;    /* the recorded run's value is known ... */
	uint64_t seen;    /* ... READ: what it saw; WRITE/RMW: what it wrote */
	bool fixed;       /* READ/RMW: seen was recorded by the shim, not reconstructed:
			   * every schedule must give the symbol this value */
	uint64_t time_lo; /* happened between these timestamps; 0/UINT64_MAX unknown */
	uint64_t time_hi;
	uint64_t step;    /* it was the step-th event (from 1) when the trace was made, 0 unknown:
			   * where a search may begin; binds no schedule */
	uint64_t pc;      /* with occurrence: the position in occurrence form */
	uint64_t occurrence; /* n-th execution (from 1) of pc by this thread; 0 unknown */
	uint32_t stack;   /* index into sym_trace.stacks, or SYM_NONE */
	uint32_t variable; /* spare name for sync operands; index into vars or SYM_NONE */
};

/* Holds after event `after` (SYM_NONE: from the start) of this thread. */
struct sym_cond {
	uint32_t after;
	expr_id cond; /* Boolean */
	uint32_t stack; /* the branch, or SYM_NONE */
	bool firm;      /* no alternate may turn it: one that did was executed and failed all
			 * the same (not part of the text form) */
};

struct sym_thread {
	char *id;   /* "T0", "T0.1" */
	char *name; /* thread name or NULL */
	struct sym_event *events;
	size_t nevents, cap_events;
	struct sym_cond *conds;
	size_t nconds, cap_conds;
};

enum sym_failure_kind {
	SYM_FAIL_ASSERT, SYM_FAIL_ABORT, SYM_FAIL_SIGNAL, SYM_FAIL_EXCEPTION,
	SYM_FAIL_DEADLOCK, SYM_FAIL_HANG, SYM_FAIL_EXIT, SYM_FAIL_USER,
	SYM_FAIL_KINDS
};

/*
 * For every kind but a deadlock: the run fails when thread reaches its
 * SYM_FAIL event with `condition` true (EXPR_NONE: true whenever reached).
 * Deadlock: the run fails when every blocked[i] is at its last event (the
 * acquisition that never succeeds; it is in the trace with `pending` true in
 * blocked[]) and none of them can go on.
 */
struct sym_blocked {
	uint32_t thread;
	uint32_t event; /* index of the LOCK/WAIT/... that never completed */
};

struct sym_failure {
	enum sym_failure_kind kind;
	uint32_t thread;
	char *text; /* "Assertion `n == 2' failed" */
	expr_id condition;
	struct sym_blocked *blocked;
	size_t nblocked;
};

/* What the values of an enumeration are called; not part of the text form. */
struct sym_enum {
	char *type;  /* as in sym_var */
	char *names; /* "OPEN=1 PAID=2 SENT=4" */
};

struct sym_trace {
	struct expr_pool *pool;
	char *program;
	struct sym_var *vars;
	size_t nvars, cap_vars;
	struct sym_enum *enums;
	size_t nenums, cap_enums;
	struct sym_object *objects;
	size_t nobjects, cap_objects;
	struct sym_thread *threads;
	size_t nthreads, cap_threads;
	struct sym_stack *stacks;
	size_t nstacks, cap_stacks;
	struct sym_failure failure;
	char **assumptions; /* sentences for the report's last section */
	size_t nassumptions, cap_assumptions;
};

struct sym_trace *sym_trace_new(void);
void sym_trace_free(struct sym_trace *t);

/* Builders: copy what they are given, return the new index. */
uint32_t sym_add_thread(struct sym_trace *t, const char *id, const char *name);
uint32_t sym_add_var(struct sym_trace *t, const struct sym_var *v);
/* Takes names over, unless the type is there already. */
void sym_add_enum(struct sym_trace *t, const char *type, char *names);
const char *sym_enum_names(const struct sym_trace *t, const char *type); /* NULL: none */
uint32_t sym_add_object(struct sym_trace *t, const struct sym_object *o);
uint32_t sym_add_stack(struct sym_trace *t, const struct sym_frame *frames, uint32_t n);
/* thread and index are filled in; returns the index inside the thread. */
uint32_t sym_add_event(struct sym_trace *t, uint32_t thread, const struct sym_event *e);
void sym_add_cond(struct sym_trace *t, uint32_t thread, const struct sym_cond *c);
void sym_add_assumption(struct sym_trace *t, const char *sentence);
void sym_event_init(struct sym_event *e, enum sym_op op); /* all "none", result 1 */

const char *sym_op_name(enum sym_op op); /* "read", "lock", ... as in csched-sym(5) */

/* The .sym text. Errors name FILE:LINE:COLUMN. */
err_t sym_read(FILE *f, const char *name, struct sym_trace **out);
err_t sym_write(FILE *f, const struct sym_trace *t);
/* Takes the values of the program's memory out of it: sym_forget.c. */
err_t sym_forget(struct sym_trace *t);
/* Structural sense: indices in range, links right, widths agree. */
err_t sym_check(const struct sym_trace *t);

#endif
