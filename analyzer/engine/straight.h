/*
 * Straight code: runs of plain operations as machine code.
 *
 * The interpreter's time goes into finding out which operation is next. Most of a block is
 * arithmetic on the frame, loads and stores: such a run is translated once more, to
 * machine code that does the same to the same frame, and an OP_STRAIGHT before it enters that. The
 * operations themselves stay where they are. Straight code returns the index of the operation
 * that the interpreter goes on with: the one behind the run, or one in the middle that it
 * cannot do (an access that faults, an exit that is taken), which the interpreter then does
 * from the beginning. So nothing here needs to know what a fault is, and watched execution (which
 * wants to hear of every access) passes over OP_STRAIGHT.
 *
 *   rdi  the frame               rax, rcx, rdx  free
 *   rsi  struct mem              r8 to r11      values of the frame, also in the frame
 *
 * All values are stored to the frame when they are computed: to leave is to return.
 */
#ifndef CSCHED_MACHINE_STRAIGHT_H
#define CSCHED_MACHINE_STRAIGHT_H

#include "analyzer/engine/engine.h"

/* Set in the result: the operation has been done and stopped with m->straight_stop. */
#define STRAIGHT_STOPPED 0x80000000u
typedef uint64_t straight_fn(uint8_t *frame, struct mem *mem);

struct straight;
void straight_init(struct mach *m);
void straight_free(struct mach *m);
void straight_flush(struct mach *m);

/* The operations with OP_STRAIGHT where it is worth it, in the arena; *n: how many there are. */
struct mach_op *straight_add(struct mach *m, struct mach_block *b, const struct mach_op *ops,
			     size_t *n);

/* exec.c: what straight code calls */
enum mach_stop straight_native(struct mach *m, const void *native_insn, uint64_t pc);
void straight_call(struct mach *m, const struct mach_op *op);

#endif
