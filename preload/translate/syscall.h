/* Shared by the files that handle system calls. */
#ifndef CSCHED_TRANSLATE_SYSCALL_H
#define CSCHED_TRANSLATE_SYSCALL_H

#include "preload/translate/hooks.h"
#include "preload/translate/syscall_table.h"

#include <errno.h>

#define CALL_EFFECTS 96
#define CALL_SENT_SHORT 64 /* bytes of output kept as they are; of more, a checksum */

struct call_effect {
	uint64_t address;
	uint32_t length;
	uint32_t kind; /* enum trc_effect_kind */
};

/* One system call under way. */
struct call {
	struct tr_ctx *ctx;
	long nr;
	uint64_t args[6];     /* as the program gave them */
	uint64_t pc, next;
	long result;
	uint32_t thread;      /* clone: the new thread's index */
	uint32_t socklen;     /* OUT_SOCKLEN: room the program offered */
	bool no_leave;        /* recorded elsewhere, or not at all */
	bool restart;         /* after -EINTR, whatever the table says */
	bool jump;            /* next was changed: do not touch registers */
	unsigned neffects;
	struct call_effect effects[CALL_EFFECTS];
};

void call_effect_add(struct call *k, uint64_t address, uint64_t length,
		     enum trc_effect_kind kind);
void call_outputs(struct call *k);       /* from the table */
void call_ioctl_outputs(struct call *k); /* by request code */
void call_record_leave(struct call *k);
long call_run(struct call *k, const uint64_t args[6]); /* interruptible */

/* True: handled, k->result is set. */
bool call_memory(struct call *k);
bool call_process(struct call *k);
bool call_signals(struct call *k);
bool call_limits(struct call *k);
void call_view(struct call *k); /* after an open */
/* The next program inherits the limits this one believes to have; and back, when exec fails. */
void tr_limits_show(bool show);

void call_note(const char *what, const char *name, long nr);

#endif
