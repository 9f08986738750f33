/* Inside of the search for an order: search.c (tries), candidates.c (what to try), touches.c. */
#ifndef CSCHED_MACHINE_SEARCH_H
#define CSCHED_MACHINE_SEARCH_H

#include "analyzer/follow/buffers.h"

#define MAX_BASES 16u       /* checkpoints to go back to, one after the other */
#define CROWDED 6u          /* so many mismatches, one upon the other */
#define MAX_CANDIDATES 256u /* considered per mismatch */
#define LAST_TOUCHES 1024u
#define MANY 60u            /* mismatches of a run; then a logged load is given its value at once */
#define MAX_EDGES 10u       /* of one candidate */

struct touch {
	uint64_t word;  /* address / 8 */
	uint64_t insn, order;
	uint64_t value; /* of the bytes first .. last, in their places */
	uint32_t thread;
	uint8_t first, last; /* bytes of the word */
	bool write, locked;
};

/*
 * Another place for a read in the order of the writes to its word: an edge for
 * each thread whose writes it moves across, and one that keeps it there. Or a
 * value that the read is given without any order that explains it.
 */
struct candidate {
	uint32_t n;
	bool force;
	bool buffered;  /* force: a store buffer explains it, so it is as good as an order */
	bool halves;    /* load and store of this one instruction come apart (totals.c): load tells what it saw */
	bool near;      /* about a read that the branch was made of, or right before the mismatch */
	bool quiet;     /* force: a read of what nobody else has written lately */
	bool elsewhere; /* tried: ran into another mismatch, which may have a way out, too */
	bool first_half; /* of a thread that goes wrong as well: the mismatch may need another edge */
	struct order_edge edges[MAX_EDGES];
	struct mach_forced load;
};

/* A read, by the number of its instruction. */
struct source {
	uint32_t thread;
	uint64_t insn;
};

struct wrong_ahead {
	uint32_t thread;
	uint64_t insn;
};

enum round {
	ROUND_ALONE, /* each order by itself */
	ROUND_DEEP,  /* those that ran into another mismatch: resolve that, too */
	ROUND_FORCE, /* no order helps */
	ROUND_REST,  /* orders that were left out to save time */
	NROUNDS
};

/* One mismatch and what may resolve it. */
struct frame {
	uint32_t thread;
	uint64_t insn;
	uint64_t time;   /* the run's */
	uint64_t *at;    /* how far each thread had come */
	bool stalled;    /* it was not running for a while, here or hereabouts */
	bool load;       /* the last instruction is the wrong read ... */
	struct wanted_load wanted; /* ... and this is what it should have seen */
	size_t edges;    /* of the frames below */
	uint64_t forces; /* likewise: the run's force_serial */
	enum round round;
	unsigned again;  /* the frame below is about the same mismatch, and so on */
	enum { SHY_NOT, SHY, SHY_OVER } shy; /* a mismatch behind it was left alone for its next order; once over */
	bool hurried;    /* ROUND_FORCE came before its time */
	uint64_t deep_since; /* the run's tries when ROUND_DEEP began ... */
	uint64_t ventured; /* ... or when a candidate led to new ground; 0: it did not */
	struct candidate *candidates;
	size_t n, next;
};

/* A state to go back to, and the edges that led from it to the next one. */
struct base {
	struct checkpoint *c;
	uint64_t forces; /* the run's force_serial there */
	VEC(struct order_edge) edges;
};

/* What totals.c has found out about a mismatch, should it be met again from an earlier base. */
struct total_tried {
	uint32_t thread;      /* whose update, by its load, ... */
	uint64_t load, first; /* ... overwrites which, the first by its order in the word */
};

struct total_known {
	bool known;
	uint32_t thread;      /* of the mismatch */
	uint64_t insn;
	struct touch read;    /* saw the total ... */
	uint64_t lost;        /* ... which was less by this */
	VEC(struct total_tried) tried;
};

struct search {
	struct mach_run *r;
	struct base bases[MAX_BASES]; /* oldest first */
	size_t nbases;
	bool desperate;         /* everything failed once: force sooner */
	bool pinned;            /* no new base until the mismatch is behind us */
	unsigned looks;         /* checkpoints it has gone back since it began */
	char *first_why;        /* of the mismatch the window's search began with */
	uint64_t first_pc, first_insn;
	uint32_t first_thread;
	VEC(struct frame) frames;
	size_t tries;
	uint64_t began_tries;   /* the run's, when it began */
	double began, stage;    /* monotonic seconds: the search, and this base's part of it */
	uint64_t first_time;    /* the run's, at the mismatch the search began with */
	unsigned backs;         /* how often it went to an earlier base */
	/* Who touched what, up to the mismatch and looking ahead. */
	VEC(struct touch) touches;
	uint64_t order, happened; /* of the touches: the latest, and the last before the mismatch */
	struct last_touch {
		size_t index;
		uint32_t times; /* the same read in a row */
	} last[LAST_TOUCHES]; /* by word; collisions only cost memory */
	struct touch suspect; /* of the first mismatch: the likeliest read of what others write ... */
	bool suspected;       /* ... if there is one */
	VEC(struct wrong_ahead) wrong; /* threads that went wrong when looking ahead */
	VEC(struct source) sources; /* of the branch that went wrong: sources.c */
	struct buffers *buffers; /* while that is done for a load: who may still have stored it */
	uint32_t wrong_thread;  /* ... and whose it is, up to which instruction */
	uint64_t wrong_insn;
	struct mach_forced load; /* it, explained or not */
	struct total_known total;
	bool look_far;          /* how far to look ahead */
	bool cut;               /* there may be more to see, further ahead */
	uint64_t only_lo, only_hi; /* words of interest; hi 0: all */
	/* While looking ahead, what matters: writes to words that the held thread has read
	 * (2 * word) and reads of words it has written (2 * word + 1). An open hash of
	 * these numbers + 1. */
	uint64_t *words;
	size_t words_cap;
};

static inline struct checkpoint *search_base(const struct search *s)
{
	return s->nbases ? s->bases[s->nbases - 1].c : NULL;
}

/* places.c */
#define PER_VALUE 3u        /* places per read and way that give the same value */

/* The touches of one word, in order, and a read among them. */
struct place {
	const struct touch *lo, *hi, *read;
	const struct wanted_load *wanted; /* NULL: anything but what it saw */
	const struct order_edge *held;    /* edges in force */
	size_t nheld;
	uint64_t happened;                /* the order of the last touch before the mismatch */
};

/* Some bytes of a word; known has a bit for each that is. */
struct bytes {
	uint64_t value;
	unsigned known;
};

static inline unsigned touch_mask(const struct touch *t) /* a bit for each byte of the word */
{
	return (0xffu << t->first) & (0xffu >> (7 - t->last));
}

void place_overlay(struct bytes *b, unsigned mask, uint64_t value);
bool place_same_bytes(uint64_t a, uint64_t b, unsigned mask);
void place_bounds(const struct search *s, struct place *p); /* around p->read */
/* Adds the candidates that move the read. wanted: what it must see; NULL: anything else. */
void places_of(struct search *s, struct frame *f, const struct touch *read,
	       const struct wanted_load *wanted);

/* sources.c: after touches_gather(), which reads the mismatching branch was made of. */
void sources_find(struct search *s, const struct frame *f);
bool sources_have(const struct search *s, uint32_t thread, uint64_t insn);

/* Fills s->touches, by word and then in their order; of a load's own word, unless of all.
 * False: there are none. */
bool touches_gather(struct search *s, const struct frame *f, bool all);
/* Likewise of one word, from an earlier base to the mismatch. */
bool touches_of_word(struct search *s, size_t base, uint64_t word);
/* totals.c: fill the frame's candidates if it is about a total that threads have added to. */
bool totals_find(struct search *s, struct frame *f);
bool totals_again(struct search *s, struct frame *f); /* is known to be; touches need not be gathered */
/* The frame's orders are tried from this base on. */
void search_back_to(struct search *s, struct frame *f, size_t base);
/* Fills the frame's candidates, the most promising first. */
void candidates_find(struct search *s, struct frame *f);

#endif
