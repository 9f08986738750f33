/*
 * Scheduling control: see README.md. Everything here runs natively.
 *
 * ctl_init() sets the translator's hooks (translate/hooks.h): it asks once per
 * instruction it translates and calls back where that said so. The record
 * primitive calls ctl_event() when ctl.active.
 */
#ifndef CSCHED_PRELOAD_CONTROL_H
#define CSCHED_PRELOAD_CONTROL_H

#include "common/control_format.h"
#include "preload/shim.h"
#include "preload/translate/hooks.h"

#define CTL_THREADS 1024 /* those with a higher index are left alone */
#define CTL_ARGS 4

/* One module of the process. */
struct ctl_module {
	uint64_t start, end;
	uint64_t bias; /* pc less ELF virtual address */
	uint32_t hash; /* of its file name */
	bool own;      /* the program's: not a system library, not the shim */
};

/* A site in this run: its instruction, to compute the address it accesses. */
struct ctl_place {
	uint64_t pc;
	struct insn insn;
	uint32_t hits;
	bool off; /* its callouts are switched off: it has shown what it does */
};

struct ctl {
	bool active;
	enum ctl_strategy strategy;
	uint64_t arg[CTL_ARGS];
	uint64_t seed;
	bool tickets;                /* plain accesses at shared sites are ordered in this run */
	struct ctl_sites *sites;     /* shared with other runs; NULL: no sites are looked for */
	struct ctl_place *place;     /* by site index, this run only */
	bool enforcing;
	bool fixing;
};
extern struct ctl ctl;

/* After the options are known, before the first instruction is translated. */
void ctl_init(void);
/* The process ends: let delayed threads go, and give them a moment to fail. */
void ctl_ending(void);
/* In the child after fork: one thread, and the schedule was not made for it. */
void ctl_forked(void);

/* An interposed operation of t is about to be recorded, with these fields. */
void ctl_event(struct shim_thread *t, unsigned op_at, uint64_t object, uint64_t value);

#define CTL_NO_SITE (UINT32_MAX - 1) /* id of a callout that is not one of the strategy's; UINT32_MAX: no callout */

/* module.c; under the translator's lock only */
const struct ctl_module *ctl_module_at(uint64_t pc);

/* site.c: index of the site at pc; -1: not the program's own code, nothing shared can be there, or
 * the table is full. Under the translator's lock. */
int ctl_site_of(uint64_t pc, const struct insn *in);
struct ctl_site *ctl_site(uint32_t index);
void ctl_site_mark(uint32_t index, uint32_t flags);

/* learn.c */
bool ctl_learn_init(void);
void ctl_learn(const struct tr_ctx *c, uint32_t site);

/* delay.c */
uint64_t ctl_random(uint64_t a, uint64_t b);
uint64_t ctl_now_us(void);
/* us: the longest delay the strategy uses, from which the budget of the run follows. */
void ctl_delay_init(uint64_t us);
void ctl_sleep(uint64_t us);
/* With this probability (in 1/1000), and a random part of us. */
void ctl_maybe_sleep(const struct shim_thread *t, uint64_t permille, uint64_t us);
void ctl_sleep_end(void);
void ctl_linger(void);

/* pct.c */
void ctl_pct_init(uint64_t depth, uint64_t steps);
void ctl_pct_step(struct tr_ctx *c);
void ctl_pct_demote(struct tr_ctx *c);
void ctl_pct_end(void);
void ctl_serial_init(bool yields);
void ctl_serial_arrive(struct tr_ctx *c);
void ctl_serial_join(struct tr_ctx *c, unsigned rank);
void ctl_serial_join_late(struct tr_ctx *c);
void ctl_serial_pause(struct tr_ctx *c);
void ctl_serial_resume(struct tr_ctx *c);
/* How often somebody yielded and was the only one there: it may wait for one who has not joined. */
uint64_t ctl_serial_yields(void);
void ctl_pct_forked(void);

/* meet.c: at the chosen site a thread waits up to us for another; others only come by. */
void ctl_meet(const struct shim_thread *t, bool chosen, uint64_t us);

/* One place in time for two threads. */
struct ctl_meeting {
	uint32_t who; /* thread index + 1 of who waits; above 16 bits, of who has joined it */
	uint32_t cpu; /* the processor of the first */
	uint64_t go;  /* the time at which both go on ... */
	uint32_t asked, agreed; /* ... which one has named, and the other agreed to */
};
/* Waits up to us for another, and both go on at the same instant: met. False: it waited so long, in vain. */
bool ctl_rendezvous(struct ctl_meeting *m, const struct tr_ctx *c, uint64_t pc, uint64_t us, bool *met);
/* Until *word is not `held`, busily, or that long; true: it is not. */
bool ctl_await(const uint32_t *word, uint32_t held, uint64_t us);

/* enforce_read.c: words of a text; the whole file, once per run (NULL: not to be read, or too long). */
bool ctl_word(const char **p, char *out, size_t size);
bool ctl_number(const char **p, unsigned base, uint64_t *v);
const char *ctl_read_text(const char *path);

/* enforce.c */
bool ctl_enforce_init(const char *path);
unsigned ctl_enforce_plan(uint64_t pc, const struct insn *in);
void ctl_enforce(struct tr_ctx *c, uint64_t pc, enum ctl_at at);
void ctl_enforce_start(struct tr_ctx *c);
void ctl_enforce_end(void);
/* The process fails: notes whether all of the order has happened by then. */
void ctl_enforce_failed(void);
/* False: the schedule is for neither this process nor its children. */
bool ctl_enforce_forked(void);
/* t begins to wait for a condition. */
void ctl_enforce_wait(const struct shim_thread *t, uint64_t cond, uint64_t mutex);

/* fix.c: advice applied to the running program. */
bool ctl_fix_init(const char *path);
unsigned ctl_fix_plan(uint64_t pc, const struct insn *in);
void ctl_fix(struct tr_ctx *c, uint64_t pc, enum ctl_at at);
void ctl_fix_event(struct shim_thread *t, unsigned op_at, uint64_t object, uint64_t value);
void ctl_fix_exit(struct tr_ctx *c);
/* In the child: what other threads held is nobody's. */
void ctl_fix_forked(void);

#endif
