/*
 * Which memory is shared, found by watching one execution.
 *
 * A byte is shared when program code of two threads touched it and it was written
 * while more than one thread was alive; memory on a thread's own stack is shared as
 * soon as program code of another live thread touches it. By bytes, because a counter that one
 * thread keeps beside a shared word would fill the window with events of no interest. Stacks that
 * the C library hands from a dead thread to a new one are the new one's. Shared is also the word by which the C
 * library tells a thread that it is cancelled, although only the library touches it.
 */
#ifndef CSCHED_SYMTRACE_EXTRACT_SHARE_H
#define CSCHED_SYMTRACE_EXTRACT_SHARE_H

#include "analyzer/follow/machine.h"
#include "analyzer/symtrace/extract_handed.h"
#include "analyzer/symtrace/extract_level.h"
#include "analyzer/symtrace/symtrace.h"

struct share;

struct share *share_new(struct img_set *images);
void share_free(struct share *s);

/* Fills the table: one concrete execution from this moment of the run (mach_moment()) to its
 * end, and so many instructions behind it. */
err_t share_watch(struct share *s, struct mach_run *run, uint64_t from, uint64_t onward_insns,
		  bool (*stop)(void *), void *stop_arg);

/* Is any of these bytes? At most 8 of them. Remembers which bytes were asked for together. */
bool share_touches(struct share *s, uint64_t address, unsigned size);

/*
 * Of all this, what threads only hand each other (extract_handed.h) is no matter of order. Found out
 * by telling every event, in order, and at which of them threads are made and joined; where there is
 * much of it, it is not shared from then on. What an earlier watch of the same run's end found so is suspected from
 * the beginning: false, it need not be counted. That may have been a mistake: then all are told once more.
 */
void share_suspect(struct share *s, const struct share *earlier);
bool share_event(struct share *s, const struct mach_access *a);
struct handed *share_handed(struct share *s);
enum share_handed { SHARE_NONE_HANDED, SHARE_SOME_HANDED, SHARE_MISTAKEN };
enum share_handed share_drop_handed(struct share *s);

/*
 * All accesses were asked for: bytes that are never touched but together with shared ones are
 * parts of the same variable, although another thread looks only at a part of it, and count
 * as shared from now on. That makes no event more.
 */
void share_settle(struct share *s);
bool share_is_shared(const struct share *s, uint64_t address);
/* The thread that is told there that it is cancelled, or SYM_NONE. */
uint32_t share_cancelled(const struct share *s, uint64_t address);
uint64_t share_count(const struct share *s);    /* words of 8 bytes that have some */
uint64_t share_accesses(const struct share *s); /* accesses seen */

#endif
