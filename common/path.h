/*
 * The path of a thread: which fragments it executed, decoded from tN.path with
 * the fragment table.
 *
 * Three layers, each usable alone:
 *
 *   path_frags    the fragment table: by id, and by (address, generation)
 *   path_cursor   decodes fragment after fragment from a position; the caller
 *                 tells it where control goes whenever the path does not (the
 *                 machine knows, because it executes)
 *   path_walk     a cursor that also follows the thread's records (start,
 *                 signals, generations, system calls), for those who only look
 *
 * Each recorded choice is checked: a side exit must be one of the fragment's,
 * an indirect target must be a fragment that exists, an address a fragment
 * falls through to must have one. What does not fit is damage, reported with
 * the thread and the position.
 */
#ifndef CSCHED_COMMON_PATH_H
#define CSCHED_COMMON_PATH_H

#include "common/trace_read.h"

/* ---- the fragment table ---- */

#define PATH_ALIVE UINT64_MAX
#define PATH_MAX_VALUE 64 /* bytes of a logged load */

struct path_frag {
	const struct trc_fragment *rec; /* sides and items: trc_fragment_sides(), _items() */
	uint64_t pc;
	uint64_t generation; /* alive from */
	uint64_t dropped;    /* no longer alive from this generation; PATH_ALIVE: never */
	uint32_t id;
	uint32_t older; /* id of the previous fragment with this pc, 0 none */
};

static inline enum trc_frag_kind path_frag_kind(const struct path_frag *f)
{
	return (enum trc_frag_kind)f->rec->rec.flags;
}

struct path_frags;

/* A trace without a fragment table (mode sync) gives an empty one. */
err_t path_frags_load(struct trc *t, struct path_frags **out);
void path_frags_free(struct path_frags *f);
/* Ids count from 1; NULL: there is no such fragment. */
const struct path_frag *path_frag_by_id(const struct path_frags *f, uint32_t id);
/*
 * The fragment that starts at pc for a thread in this generation, or NULL: the
 * youngest one that was made by then and not dropped; failing that, the oldest
 * made later (the maker was a generation ahead of this thread).
 */
const struct path_frag *path_frag_at(const struct path_frags *f, uint64_t pc,
				     uint64_t generation);
uint32_t path_frag_count(const struct path_frags *f); /* ids are 1 .. count */

/* ---- the cursor ---- */

enum path_exit {
	PATH_SIDE,     /* side exit number `side` was taken */
	PATH_FALL,     /* went on to `next` */
	PATH_INDIRECT, /* the recorded indirect target */
	PATH_ASTRAY,   /* side exit number `side`, an indirect branch, went elsewhere than usual */
	PATH_STOP,     /* a kind that leaves the path: TRAP, NATIVE */
	PATH_CUT,      /* the bytes end inside this fragment (failure, kill, signal) */
};

/* What one item of a fragment left. */
struct path_item {
	const struct trc_item *item;
	uint32_t ticket;                /* TRC_ITEM_ORDER */
	uint32_t length;                /* TRC_ITEM_VALUE */
	uint8_t value[PATH_MAX_VALUE];  /* zero behind length */
};

struct path_step {
	const struct path_frag *frag;
	uint64_t pos;           /* before its first byte */
	enum path_exit exit;
	uint32_t side;          /* PATH_SIDE, PATH_ASTRAY */
	uint64_t next_pc;       /* where control goes; 0: the path does not say */
	uint32_t nitems;        /* that were recorded: all, unless PATH_CUT */
	const struct path_item *items; /* valid until the next step */
};

struct path_cursor {
	const struct path_frags *frags;
	struct trc_stream_file *stream; /* tN.path, or NULL */
	uint64_t pos;        /* of the next byte */
	uint64_t generation; /* of the thread; the caller moves it on */
	uint64_t pc;         /* where the next fragment starts; 0: at the end */
	/* The fragment an indirect branch named, for the next step; or NULL. */
	const struct path_frag *named;
	/*
	 * A fault cuts the next fragment: bytes from `limit` on are the handler's.
	 * Set by path_limit(), in force for one step.
	 */
	bool limited;
	uint64_t limit;
	uint64_t end; /* the path ends here, whatever else there is of it */
	/* private */
	const uint8_t *bytes, *bytes_end;
	struct path_item *items;
	size_t items_cap;
	uint64_t silent; /* steps in a row that left no byte */
	uint32_t ticket; /* the next, if it is one more than the last */
};

void path_cursor_init(struct path_cursor *c, const struct path_frags *frags,
		      struct trc_stream_file *stream, uint64_t pos, uint64_t pc);
void path_cursor_free(struct path_cursor *c);

/*
 * Call before path_next() with the thread's next record when that is a
 * TRC_SIGNAL: if it is a fault inside the fragment that comes next, the step
 * will be PATH_CUT with the items that were recorded. Returns whether it is.
 */
bool path_limit(struct path_cursor *c, const struct trc_signal *s);

/* Is the fragment that comes next one of this generation, or of a later one? */
bool path_generation_due(const struct path_cursor *c, const struct trc_generation *g);

/* Continue elsewhere: a signal handler, the return from one. */
void path_goto(struct path_cursor *c, uint64_t pc);

/*
 * Decodes the fragment at c->pc. *done: nothing was decoded because the path
 * ended (pc is 0, or a thread spins without leaving bytes). After a fragment
 * of kind SYSCALL or NONDET the caller consumes a record of the thread; when
 * there is none it stops, else a hostile path would never end. A step with
 * PATH_CUT is the last one, unless the caller knows better and calls path_goto().
 */
err_t path_next(struct path_cursor *c, struct path_step *step, bool *done);

/* ---- the walk ---- */

struct path_walk {
	struct path_cursor cursor;
	struct trc_iter records;
	const struct trc_rec *ahead; /* next record that bears on the path, or NULL */
	VEC(uint64_t) interrupted;   /* pcs that running handlers return to */
	uint32_t thread;
	uint64_t call_pc; /* of the system call just left, where it may be made again */
	uint64_t steps;
	/* Why the walk ended before the bytes did, or NULL. */
	const char *why;
};

/* thread must be of t. Free with path_walk_free() also after an error. */
err_t path_walk_init(struct path_walk *w, struct trc *t, const struct path_frags *frags,
		     const struct trc_thread_info *thread);
/*
 * The next fragment. *event (may be NULL) is the record that stands right
 * behind the fragment: its system call entry, non-deterministic instruction or
 * signal, or NULL.
 */
err_t path_walk_next(struct path_walk *w, struct path_step *step, const struct trc_rec **event,
		     bool *done);
void path_walk_free(struct path_walk *w);

#endif
