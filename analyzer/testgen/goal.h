/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a crash stack asks for: the frames of the library, and whether a failure has them. */
#ifndef CSCHED_TESTGEN_GOAL_H
#define CSCHED_TESTGEN_GOAL_H

#include "analyzer/image/image.h"
#include "analyzer/testgen/solve.h"
#include "analyzer/testgen/stack.h"

#define GOAL_FRAMES 64

struct goal_frame {
	char *function;
	char *file;         /* without directories, or NULL */
	unsigned line;
	uint64_t entry;     /* of the function; 0: inlined or unknown */
};

struct goal {
	bool by_name;     /* no module of the stack is the library: it was linked into something else */
	struct img_set *images;
	enum stack_kind kind;
	struct goal_frame frames[GOAL_FRAMES]; /* of the library, innermost first */
	unsigned nframes;
	const struct api_function *crashing;   /* the outermost one that can be called */
	const struct api_function *other;      /* deadlock: of the other thread */
	/* what was seen on the way */
	unsigned near;      /* failures of the crashing function, elsewhere */
	char *nearest;      /* the first of them, in words */
	const struct api *api;
	bool any_line;      /* only functions are compared */
	struct solve_failure solve; /* goal_solve() */
	struct goal_frame previous; /* a data race: where the other thread's access was; function NULL: not known */
	struct lab_race race;       /* goal_race() */
};

/* Finds the library's frames in the stack. */
err_t goal_of(const struct api *a, const struct stack *s, const char *path, struct goal *out);
void goal_free(struct goal *g);
/* lab_wanted: the same kind of failure, the same functions from the point of failure to the crashing function. */
bool goal_wanted(void *goal, const struct failure *f);
/* The failure as a condition at the point of failure, or NULL: a deadlock has none. */
const struct solve_failure *goal_solve(struct goal *g);
/* The two places of a data race; NULL: it is none. */
const struct lab_race *goal_race(struct goal *g);
/* Does the call come through the same functions to the one that holds the point of failure? */
bool goal_reaches(void *goal, const struct trace *t);

#endif
