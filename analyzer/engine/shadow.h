/*
 * The symbolic shadow: beside each concrete value, optionally, what it is in
 * terms of the symbols that reads were given.
 *
 * Registers and memory carry one expression of 64 bits per aligned 8 bytes,
 * temporaries one of their own width (Boolean for single bits). No expression
 * means concrete; an operation whose operands are all concrete costs one test.
 * A narrow write into a word that carries an expression is a concatenation;
 * the pool's simplification takes such things apart again.
 *
 * What has no expression is made concrete, and the listener is told which
 * condition that leaves behind: addresses, divisors, floating point.
 */
#ifndef CSCHED_MACHINE_SHADOW_H
#define CSCHED_MACHINE_SHADOW_H

#include "analyzer/engine/engine.h"
#include "analyzer/expr/expr.h"

struct shadow;

struct shadow_hooks {
	void *arg;
	/* A read may return a fresh symbol; how is enum mach_access_how. */
	expr_id (*access)(void *arg, struct mach *m, uint64_t pc, uint64_t address,
			  unsigned size, unsigned how, uint64_t value, expr_id e);
	void (*concretized)(void *arg, struct mach *m, uint64_t pc, expr_id cond,
			    const char *why);
};

/* pool NULL: hooks only, no expressions. */
struct shadow *shadow_new(struct mach *m, struct expr_pool *pool,
			  const struct shadow_hooks *hooks);
void shadow_free(struct shadow *s);
/* As long as there are no symbols nothing need be shadowed. Awake at first; wake it between
 * instructions. */
void shadow_sleep(struct shadow *s);
void shadow_wake(struct shadow *s);

/* Registers of a thread switch with it. */
struct shadow_cpu;
struct shadow_cpu *shadow_cpu_new(void);
void shadow_cpu_free(struct shadow_cpu *c);
void shadow_cpu_store(struct shadow *s, struct shadow_cpu *c);
void shadow_cpu_load(struct shadow *s, const struct shadow_cpu *c);

/* Bytes of the frame or of memory became concrete. */
void shadow_forget(struct mach *m, uint32_t offset, unsigned size);
void shadow_forget_vectors(struct mach *m); /* all vector registers */
void shadow_forget_memory(struct mach *m, uint64_t address, uint64_t size);

/* A listener gave a read a new symbol. */
void shadow_fresh(struct mach *m);

/* The next store stores (the low bytes of) this register. */
void shadow_stage_register(struct mach *m, uint32_t offset, unsigned size);

#endif
