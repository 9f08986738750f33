/*
 * Offsets inside struct tr_ctx that emitted code and entry.S use through %gs.
 * translate.h asserts that the structure agrees.
 */
#ifndef CSCHED_TRANSLATE_LAYOUT_H
#define CSCHED_TRANSLATE_LAYOUT_H

#define CTX_SELF 0
#define CTX_REGS 8       /* rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15 */
#define CTX_FLAGS 136
#define CTX_PC 144       /* application address to go on at; indirect miss: the target */
#define CTX_RCX 152      /* scratch: the application's rcx */
#define CTX_RDX 160      /* scratch: the application's rdx */
#define CTX_SPILL 168    /* scratch: one register around a path record */
#define CTX_PTR 176      /* the record pointer while it is not in xmm15 */
#define CTX_STACK 184    /* top of the native stack */
#define CTX_EXIT 192     /* exit taken */
#define CTX_RESUME 200   /* code-cache address to go on at */
#define CTX_KIND 208     /* enum tr_entry */
#define CTX_PENDING 216  /* non-zero: a signal waits to be delivered */
#define CTX_SHARD 224    /* shard whose lock is held, as an offset; see order.c */
#define CTX_SPIN 232     /* where to try again for a shard's lock */
#define CTX_NATIVE_GS 240
#define CTX_R11 248
#define CTX_VEC15 256    /* the application's ymm15 (zmm15) */
#define CTX_SPLIT 320    /* between the halves of a split instruction: the operand, see split.c */
#define CTX_THREAD 328   /* its struct shim_thread */
#define CTX_TICKET 336   /* ~(twice its last ticket + 2), 32 bits; see order.c */

/* Inside struct shim_thread, and constants of the trace, for tr_enter_event; event.c asserts them. */
#define THREAD_POS 0      /* of the record stream: next free byte ... */
#define THREAD_END 8      /* ... and where there is none */
#define THREAD_AGAIN 16   /* the last repetition's record, ... */
#define THREAD_AGAIN_AT 24 /* ... the next byte in it, ... */
#define THREAD_AGAIN_END 32 /* ... and its end */
#define THREAD_NEVENTS 480
#define THREAD_BUSY 488   /* blocked_op and waking */
#define THREAD_NHELD 496
#define THREAD_LAST_SITE 536
#define THREAD_HELD 552   /* 24 bytes each: object, site, operation */
#define THREAD_HELD_MAX 64
#define THREAD_CLOCK_AT 2088
#define THREAD_NAMED 2104 /* 32 bytes each: object, site, value, operation */
#define THREAD_INDEX 6208
#define EVENT_LOCK 9
#define EVENT_UNLOCK 12
#define EVENT_AGAIN 43
#define EVENT_AGAINS 45
#define EVENT_SLOTS 128
#define EVENT_USERS 1024
#define EVENT_CLOCK_STEP 256
#define STATE_RECORDING 2
#define EVENT_RETS 256

/* enum tr_entry: why translated code was left */
#define ENTRY_DIRECT 0
#define ENTRY_SIDE 1
#define ENTRY_INDIRECT 2
#define ENTRY_SPECIAL 3
#define ENTRY_START 4    /* ctx->pc says where to begin */

#define REG_RAX_ 0
#define REG_RCX_ 1
#define REG_RDX_ 2
#define REG_RBX_ 3
#define REG_RSP_ 4
#define REG_RBP_ 5
#define REG_RSI_ 6
#define REG_RDI_ 7

#endif
