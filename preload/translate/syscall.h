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

#define GUESS_BYTES 512u
struct guess {
	uint8_t there; /* bit i: argument i points to memory */
	uint8_t bytes[6][GUESS_BYTES];
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
	bool jump;            /* next was changed: do not touch registers */
	unsigned neffects;
	struct call_effect effects[CALL_EFFECTS];
};

void call_effect_add(struct call *k, uint64_t address, uint64_t length,
		     enum trc_effect_kind kind);
void call_outputs(struct call *k);       /* from the table */
void call_ioctl_outputs(struct call *k); /* by request code */
bool call_ioctl_known(const struct call *k);
void call_record_leave(struct call *k);
long call_run(struct call *k, const uint64_t args[6]); /* interruptible */

/* True: handled, k->result is set. */
bool call_memory(struct call *k);
bool call_process(struct call *k);
bool call_signals(struct call *k);
bool call_limits(struct call *k);
void call_hide_copies(struct call *k); /* after a call that tells what children have used */
void call_view(struct call *k); /* after an open */
/* The next program inherits the limits this one believes to have; and back, when exec fails. */
void tr_limits_show(bool show);

/* files.c: what is mapped and may change without a store; object 0: nothing of that kind. */
struct stat;
struct files_place {
	uint64_t end, object, offset;
	uint64_t size; /* of the file, as last seen */
	bool shared;
	bool unread; /* nothing of it was recorded yet, it could not be read */
};
uint64_t files_object(const struct stat *st);
uint64_t files_new_object(void);
void files_map(uint64_t start, uint64_t end, uint64_t object, uint64_t offset, uint64_t size, bool shared);
bool files_at(uint64_t address, struct files_place *p);
void files_contents(struct call *k, uint64_t start, uint64_t end); /* of such mappings, as they are now */
void files_unread(uint64_t start); /* the mapping there could not be read when it was made; ... */
void files_readable(struct call *k, uint64_t start, uint64_t end); /* ... now it can be, perhaps */
void call_files(struct call *k);                                    /* after any call */

/* guess.c: calls whose outputs nobody knows. What they wrote near their arguments is found by comparing, and named. */
void call_guess_before(struct call *k, struct guess *g);
void call_guess_after(struct call *k, const struct guess *g);

/* robust.c: the mutexes that a thread holds at its end; their number (room for so many words), then what became of them. */
uint32_t tr_robust_count(struct tr_ctx *c);
void tr_robust_died(struct tr_ctx *c, struct trc_exit_word *words, uint32_t n);

void call_note(const char *what, const char *name, long nr);

#endif
