/* What enforce.c enforces and enforce_read.c reads: the edges of a schedule file. */
#ifndef CSCHED_PRELOAD_ENFORCE_H
#define CSCHED_PRELOAD_ENFORCE_H

#include "preload/control/control.h"

enum enf_when { ENF_BEFORE, ENF_AFTER, ENF_AGAIN, ENF_INSIDE, ENF_MIDDLE, ENF_WOKEN };

struct enf_end {
	char thread[SHIM_ID_MAX];
	uint32_t module;
	uint64_t offset;
	uint64_t n;      /* which execution, from 1 */
	enum enf_when when;
	uint64_t pc;     /* in this process; 0: not translated yet */
	uint64_t back;   /* after a call: where it returns to; else 0 */
	/* Only its own thread touches these. */
	uint64_t count;  /* executions so far */
	uint64_t stack;  /* rsp at the call that counts, until it has returned; else 0 */
	uint64_t cond;   /* again, woken: what that call waits for ... */
	uint64_t mutex;  /* ... and what it lets go and takes again */
	uint32_t touched; /* how often it did so */
	uint64_t word;   /* woken: the count of wake-ups it is about to take one from */
};

struct enf_edge {
	uint64_t id;
	bool turn;     /* has no source */
	bool meet;     /* both wait for each other */
	bool then;     /* behind a meeting */
	bool met;      /* then: the target's thread has just met the other */
	struct ctl_meeting meeting;
	uint64_t wasted_us; /* meet: for how long nobody came */
	struct enf_end source, target;
	uint32_t done; /* futex: 1 when the source has happened */
	bool queued;   /* a turn that is waited for */
	bool given_up;
	bool hopeless; /* the source's thread has ended without it */
};

struct enf_schedule {
	struct enf_edge edges[CTL_MAX_EDGES];
	unsigned nedges;
	bool waits;  /* some end lies inside a condition wait */
	bool turns;
	bool yields; /* see ctl_serial_init() */
	char process[SHIM_PROCESS_MAX]; /* the one it is for, as in shim.process */
	bool here;   /* this is the one: until then nothing is counted and nobody waits */
	const struct enf_edge *held[CTL_THREADS]; /* by thread index: the edge whose source it waits for */
};

/* Does the end lie inside a condition wait? */
static inline bool enf_in_wait(const struct enf_end *e)
{
	return e->when == ENF_AGAIN || e->when == ENF_WOKEN;
}

/* enforce_end.c. What the translator has to call for at this instruction; under its lock. */
unsigned enf_plan_end(struct enf_end *e, bool source, uint64_t pc, const struct insn *in, const struct ctl_module *m);
/* t begins to wait for a condition: is it in the call that the end is in? */
void enf_waits(struct enf_end *e, const struct shim_thread *t, uint64_t cond, uint64_t mutex);
/* Is this the execution of the end that counts? */
bool enf_reached(struct enf_end *e, const struct tr_ctx *c, uint64_t pc, enum ctl_at at, bool source);

/*
 * Does `me`, which is held, wait for a thread that waits for it, be it over several others? Then none of them ever
 * goes on. What it saw may have been on the move: true twice, with no event in between, it is true.
 */
bool enf_goes_round(const struct enf_schedule *s, const struct shim_thread *me);

/* False: the file is not a schedule. */
bool enf_read(const char *path, struct enf_schedule *out);
bool enf_same(const char *a, const char *b);

#endif
