/*
 * Words for what stands in a trace, shared by info and dump: places in source
 * lines, objects by name, failures and deadlocks as sentences.
 */
#ifndef CSCHED_ANALYZER_CMD_SHOW_H
#define CSCHED_ANALYZER_CMD_SHOW_H

#include "analyzer/cmd/cmd.h"
#include "analyzer/trace_image.h"
#include "common/json.h"
#include "common/trace_read.h"

struct show {
	struct trc *t;
	struct img_set *img;
	struct term term;
};

void show_init(struct show *s, struct trc *t, const struct term *term);
void show_free(struct show *s);

/* malloc'd, never NULL, safe for a terminal. */
char *show_pc(const struct show *s, uint64_t pc);
char *show_site(const struct show *s, uint64_t return_address);
/* "alice.lock" or "0x4040c0"; op (enum trc_op) tells how large it is. */
char *show_object(const struct show *s, uint64_t object, unsigned op);
/* What an operation works on: "mutex", "semaphore", "thread", ... */
const char *show_object_word(unsigned op);
/* "SIGSEGV"; "signal 77" when it has no name. malloc'd. */
char *show_signal(int number);
/* Local date and time at which the recording began; false: not known. */
bool show_when(const struct trc *t, char *date, size_t size);
/* "1.5 MB". malloc'd. */
char *show_size(uint64_t bytes);

/* The failure in sentences; says nothing when there is none. */
void show_failure(const struct show *s);
void show_failure_json(const struct show *s, struct json *j);
/* "exited with status 0", "killed by SIGSEGV", "cut off: ...". malloc'd. */
char *show_end(const struct trc *t);

#endif
