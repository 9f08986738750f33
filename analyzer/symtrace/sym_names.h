/* Words of csched-sym(5) that reader, writer and checker share. */
#ifndef CSCHED_SYMTRACE_SYM_NAMES_H
#define CSCHED_SYMTRACE_SYM_NAMES_H

#include "analyzer/symtrace/symtrace.h"

#define SYM_TEXT_VERSION 1
#define SYM_OBJECT_KINDS (SYM_ONCE + 1)

extern const char *const sym_object_names[SYM_OBJECT_KINDS];
extern const char *const sym_failure_names[SYM_FAIL_KINDS];

/* What an operation needs: an operand's sort and the object kinds it works on. */
struct sym_op_info {
	enum { SYM_ON_NOTHING, SYM_ON_VAR, SYM_ON_OBJECT, SYM_ON_THREAD } on;
	unsigned kinds; /* bit per enum sym_object_kind */
};

extern const struct sym_op_info sym_ops[SYM_OP_COUNT];

#endif
