/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What testgen and reproduce share. */
#ifndef CSCHED_ANALYZER_CMD_TESTGEN_H
#define CSCHED_ANALYZER_CMD_TESTGEN_H

#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/found.h"
#include "analyzer/hunt/shard.h"
#include "analyzer/testgen/stack.h"
#include "analyzer/testgen/testgen.h"
#include "common/json.h"

void testgen_print_violation(const struct term *t, const struct api *a, const struct violation *v);
void testgen_json_violation(struct json *j, const struct api *a, const struct violation *v);
void testgen_json_search(struct json *j, const struct testgen_result *r);
void testgen_print_search(const struct term *t, const struct testgen_result *r);
/* A written violation for a JUnit file; command and name are kept. */
struct found_case testgen_case(const char *command, const char *name, const struct api *a, const struct violation *v);
void testgen_case_free(struct found_case *c);
err_t testgen_parse_rules(const char *without, unsigned *rules);
/* A lab with its server started; server_stop() also when it fails. */
err_t testgen_setup(struct lab *lab, const struct api *a, const struct api_conf *conf, int object, uint64_t seed);
/* reproduce_stack.c: text, a core file or a recorded run; an exit status, the message having been printed. */
int reproduce_read_stack(const char *path, struct stack *out);

/* ---- testgen_shard.c: --shard I/N ---- */

struct testgen_shard {
	struct testgen_options *to;
	const struct api *api;
	double began;
	char *path;
	bool resumed;
	struct shard before; /* with `resumed': what its file had */
};

/* text: "I/N". Sets to->part, parts and skip; refuses the file of another search. */
err_t testgen_shard_begin(struct testgen_shard *s, const char *text);
/* Writes the violations that are new, and the shard's file. */
err_t testgen_shard_save(void *shard, struct lab *lab, struct testgen_result *r);
void testgen_shard_free(struct testgen_shard *s);

#endif
