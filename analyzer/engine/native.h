/* Between the files that make stubs: native.c, native_emit.c, native_host.c. */
#ifndef CSCHED_MACHINE_NATIVE_H
#define CSCHED_MACHINE_NATIVE_H

#include "analyzer/engine/code.h"
#include "analyzer/engine/exec_space.h"

#define STUB_SPACE (32u << 20)
#define STUB_MAX 1024u /* bytes, more than a stub can need */
#define NATIVE_OPERAND_MAX 4096u /* bytes of the memory operand: the frame's buffer */

struct native_code {
	struct exec_space space;
	uint8_t *next; /* where to write */
};

/* What an instruction touches, gathered from all its operands; bits by x86 number. */
struct touched {
	uint16_t gpr, gpr_read, gpr_written;
	uint32_t vec, vec_read, vec_written;
	uint8_t k, k_written;
	bool x87, ok;
	int memory; /* operand index, or -1 */
};

/* native_emit.c: a stub at the end of the native code; false: it cannot be made. */
bool native_emit(struct mach *m, const struct insn *in, const struct touched *t,
		 struct native_insn *n);

/* native_allow.c: an instruction the host may be given, with another memory operand. */
bool native_allows(const struct insn *in);
/* What a stub puts in place of the memory operand's address and of rsp; NONE: nothing. */
struct native_made {
	ZydisRegister pointer, spare;
};
/* These bytes are that instruction, and nothing else. */
bool native_made_right(const struct insn *in, const uint8_t *bytes, size_t n,
		       const struct native_made *as);

/* native_host.c */
bool host_can(const ZydisDecodedInstruction *i);
bool host_has_avx(void);
bool host_has_avx512(void);
extern bool host_plays_old; /* for tests: as if the processor had SSE2 and nothing newer */

#endif
