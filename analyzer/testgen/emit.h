/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests and schedules as files. */
#ifndef CSCHED_TESTGEN_EMIT_H
#define CSCHED_TESTGEN_EMIT_H

#include "analyzer/testgen/lab.h"

#include <stdio.h>

/* program: the copy of a program that is loaded as a library; NULL: the library is linked. prints: what each call of the threads returns, as "NUMBER-OF-THE-CALL: VALUE". remark: lines that begin with " * ", for the comment at the head. */
void emit_test(const struct api *a, const struct test *t, const char *remark, const char *program, bool prints,
	       bool guard, FILE *f);
/* The order of the violation, for `csched replay --native` (common/control_format.h). */
void emit_schedule(const struct api *a, const struct violation *v, FILE *f);

#endif
