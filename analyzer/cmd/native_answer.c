/* What native replay says about its runs, as text or JSON, and its exit status. */
#include "analyzer/cmd/native_answer.h"

#include "analyzer/cmd/cmd.h"
#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void native_answer_free(struct native_answer *a)
{
	schedule_free(&a->schedule);
	native_result_free(&a->r);
	*a = (struct native_answer){ 0 };
}

static bool impossible(const struct native_answer *a)
{
	return a->r.runs && a->r.diverged == a->r.runs;
}

static void print_lost(const struct native_answer *a)
{
	printf("the program was rebuilt: %zu of %zu orderings were found again by their source lines\n",
	       a->schedule.edges.n - a->lost, a->schedule.edges.n);
	for (size_t i = 0; i < a->schedule.edges.n; i++) {
		const struct schedule_edge *e = &a->schedule.edges.v[i];

		for (int side = 0; side < 2; side++) {
			const struct schedule_end *end = side ? &e->target : &e->source;
			if (!end->lost)
				continue;
			char *text = schedule_end_text(end);
			printf("  gone: %s%s%s\n", text, end->place.text ? "  " : "",
			       end->place.text ? end->place.text : "");
			free(text);
		}
	}
}

static void print_edges(const struct native_answer *a)
{
	for (uint32_t i = 0; i < a->r.nedges; i++) {
		const struct native_edge *n = &a->r.edges[i];
		const struct schedule_edge *e = schedule_edge(&a->schedule, n->id);

		/* What is waited for in vain behind the first time follows from that. */
		if (!e || !n->first)
			continue;
		char *target = schedule_end_text(&e->target), *source = schedule_end_text(&e->source);
		printf("  in %u of %u runs %s waited in vain for %s\n", n->first, a->r.runs, target, source);
		free(target);
		free(source);
	}
}

/* For a rebuilt program the question is whether the fix holds. */
static void print_verdict(const struct native_answer *a)
{
	const struct native_result *r = &a->r;

	if (!a->rebuilt || a->q->alternate)
		return;
	if (r->failures)
		printf("it still fails in this order: %u of %u runs\n", r->failures, r->runs);
	else if (impossible(a))
		puts("the failing order is no longer possible, and it did not fail");
	else if (a->lost)
		puts("what is left of the failing order is possible; it did not fail");
	else
		puts("the failing order is still possible; it did not fail");
}

/* The one kind of failure that no order of whole steps gives. */
static void print_meetings(const struct native_answer *a)
{
	for (size_t i = 0; i < a->schedule.edges.n; i++) {
		const struct schedule_edge *e = &a->schedule.edges.v[i];

		if (!e->meet)
			continue;
		char *one = schedule_end_text(&e->source), *other = schedule_end_text(&e->target);
		printf("  no order gives this failure: it needs stores that other processors see late. %s and %s "
		       "were released at the same instant; whether the stores are late is up to the processor\n",
		       one, other);
		free(one);
		free(other);
	}
}

static void print_way(const struct native_answer *a)
{
	if (a->schedule.retreats && !a->schedule.edges.n)
		printf("  (way %u of %u: nothing is kept of the failing order, from the start one thread at a time%s)\n",
		       a->way, a->ways, a->schedule.yields ? "; a thread that creates or wakes another lets it run first" : "");
	else if (a->schedule.retreats)
		printf("  (way %u of %u: the failing order up to before its cause, from there one thread at a "
		       "time)\n", a->way, a->ways);
	else if (a->way > 1 && !a->q->alternate)
		printf("  (way %u of %u: without what led to where the explanation begins: with that it went another "
		       "way)\n", a->way, a->ways);
	else if (a->way > 1)
		printf("  (policy %u of %u for the run after that order: under the first it failed)\n",
		       a->way, a->ways);
}

/* Nobody waits for ever: what does not end is no answer to what it was asked for. */
static void print_unfinished(const struct native_answer *a)
{
	const struct native_result *r = &a->r;

	if (!r->timeouts)
		return;
	printf("  this order %s: %u of %u runs did not end within %.0f s and were ended (--limit=SECONDS gives them "
	       "longer)\n", r->timeouts == r->runs ? "could not be completed" : "was not always completed",
	       r->timeouts, r->runs, a->limit);
	if (a->ways > 1 && a->q->alternate)
		printf("  no better one of the %u ways was found\n", a->ways);
}

/* The same bug may strike again later, or before its time has come: that says nothing about the order. */
static void print_behind(const struct native_answer *a)
{
	const struct native_result *r = &a->r;

	if (!a->q->alternate || !r->failures)
		return;
	if (r->behind)
		printf("  %u of %u failures came after that order had been completed: at another point of the run\n",
		       r->behind, r->failures);
	if (r->behind < r->failures)
		printf("  %u of %u failures came before all of that order had happened\n", r->failures - r->behind,
		       r->failures);
}

static void answer_text(const struct native_answer *a)
{
	const struct native_result *r = &a->r;

	if (a->rebuilt)
		print_lost(a);
	printf("%s order, enforced %u times: failed %u of %u, %u as recorded",
	       a->q->alternate ? "alternate" : "failing", r->runs, r->failures, r->runs, r->same);
	if (r->diverged)
		printf(", %u went another way", r->diverged);
	if (r->timeouts)
		printf(", %u ended by the time limit", r->timeouts);
	if (r->unrecorded)
		printf(", %u left no trace", r->unrecorded);
	printf(" (%.1f s)\n", r->seconds);
	print_way(a);
	print_unfinished(a);
	print_behind(a);
	print_meetings(a);
	print_edges(a);
	if (r->other) {
		char *safe = term_text_of(r->other, strlen(r->other));

		printf("another failure was seen: %s\n", safe);
		free(safe);
	}
	print_verdict(a);
}

static void json_edges(struct json *j, const struct native_answer *a)
{
	json_array(j, "not_kept");
	for (uint32_t i = 0; i < a->r.nedges; i++) {
		const struct native_edge *n = &a->r.edges[i];
		const struct schedule_edge *e = schedule_edge(&a->schedule, n->id);
		char *source = e ? schedule_end_text(&e->source) : NULL;
		char *target = e ? schedule_end_text(&e->target) : NULL;

		json_object(j, NULL);
		json_str(j, "source", source);
		json_str(j, "target", target);
		json_uint(j, "waited_in_vain", n->vain);
		json_uint(j, "went_another_way_here", n->first);
		json_uint(j, "source_missing", n->no_source);
		json_uint(j, "target_missing", n->no_target);
		json_end(j);
		free(source);
		free(target);
	}
	json_end(j);
}

static void answer_json(const struct native_answer *a)
{
	const struct native_result *r = &a->r;
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "order", a->q->alternate ? "alternate" : "failing");
	json_uint(&j, "runs", r->runs);
	json_uint(&j, "failures", r->failures);
	json_uint(&j, "same_failure", r->same);
	json_uint(&j, "failures_behind", r->behind);
	json_uint(&j, "diverged", r->diverged);
	json_uint(&j, "timeouts", r->timeouts);
	json_num(&j, "limit", a->limit);
	json_uint(&j, "unrecorded", r->unrecorded);
	json_num(&j, "seconds", r->seconds);
	json_str(&j, "other_failure", r->other);
	json_uint(&j, "edges", a->schedule.edges.n);
	json_uint(&j, "way", a->way);
	json_uint(&j, "ways", a->ways);
	json_bool(&j, "retreats", a->schedule.retreats);
	json_bool(&j, "rebuilt", a->rebuilt);
	json_uint(&j, "edges_lost", a->lost);
	json_bool(&j, "order_possible", !impossible(a));
	json_edges(&j, a);
	json_end(&j);
	json_print(&j, stdout);
}

void native_answer_print(const struct native_answer *a)
{
	if (a->q->json)
		answer_json(a);
	else
		answer_text(a);
}

/*
 * The promise: the failing order fails every time, the alternate never. A
 * rebuilt program is asked whether it still fails.
 */
int native_answer_status(const struct native_answer *a)
{
	const struct native_result *r = &a->r;

	if (a->q->alternate || a->rebuilt)
		return r->failures || r->unrecorded || r->timeouts ? ERR_NOANSWER : 0;
	return r->same == r->runs ? 0 : ERR_NOANSWER;
}
