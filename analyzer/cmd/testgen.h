/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What testgen and reproduce share. */
#ifndef CSCHED_ANALYZER_CMD_TESTGEN_H
#define CSCHED_ANALYZER_CMD_TESTGEN_H

#include "analyzer/cmd/cmd.h"
#include "analyzer/testgen/testgen.h"
#include "common/json.h"

void testgen_print_violation(const struct term *t, const struct api *a, const struct violation *v);
void testgen_json_violation(struct json *j, const struct api *a, const struct violation *v);
void testgen_json_search(struct json *j, const struct testgen_result *r);
void testgen_print_search(const struct term *t, const struct testgen_result *r);
err_t testgen_parse_rules(const char *without, unsigned *rules);
/* A lab with its server started; server_stop() also when it fails. */
err_t testgen_setup(struct lab *lab, const struct api *a, const struct api_conf *conf, int object, uint64_t seed);

#endif
