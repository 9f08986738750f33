/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What testgen and reproduce share. */
#ifndef CSCHED_ANALYZER_CMD_TESTGEN_H
#define CSCHED_ANALYZER_CMD_TESTGEN_H

#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/found.h"
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

#endif
