/* What is known about the runs of one `csched replay --native`. */
#ifndef CSCHED_CMD_NATIVE_ANSWER_H
#define CSCHED_CMD_NATIVE_ANSWER_H

#include "analyzer/cmd/native.h"
#include "analyzer/hunt/native.h"
#include "analyzer/enforce/schedule.h"

/* Everything that is known about one request. */
struct native_answer {
	const struct native_request *q;
	struct schedule schedule;
	bool rebuilt;      /* the program is not the recorded build */
	uint32_t lost;     /* edges with no place in that build */
	uint32_t way, ways; /* of enforcing an alternate, from 1 */
	bool trial;        /* to choose a way: the first failure ends it ... */
	uint32_t most_diverged; /* ... and so many runs that go another way */
	double limit;      /* seconds for one of its runs */
	double seconds;    /* for its runs; 0: as many as were asked for */
	struct native_result r;
};

void native_answer_free(struct native_answer *a);
void native_answer_print(const struct native_answer *a);
int native_answer_status(const struct native_answer *a);

#endif
