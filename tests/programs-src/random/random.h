/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the random program share: a generator of numbers, and the log of what was seen.
 */
#ifndef RANDOM_H
#define RANDOM_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u

unsigned rnd(unsigned n); /* 0 .. n - 1; of the main thread */
bool chance(unsigned percent);
unsigned checksum(const void *p, size_t n);
void fill_random(void *p, size_t n);
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The result of a call and its error. */
void result(const char *what, long r);
#define DO(call)                                                                                   \
	({                                                                                         \
		errno = 0;                                                                         \
		long r_ = (long)(call);                                                            \
		result(#call, r_);                                                                 \
		r_;                                                                                \
	})
/* The same where the result is an address or a number that differs: whether it worked. */
#define TRY(call)                                                                                  \
	({                                                                                         \
		errno = 0;                                                                         \
		long r_ = (long)(call);                                                            \
		result(#call, r_ == -1 ? -1 : 0);                                                  \
		r_;                                                                                \
	})

extern unsigned char buffer[4 * PAGE]; /* what calls read into */

void op_file(void);
void op_name(void);
void op_pipe(void);
void op_socket(void);
void op_event(void);
void op_memory(void);
void op_access(void);
void op_signal(void);
void op_mask(void);
void op_jump(void);
void op_thread(void);
void op_child(void);
void op_misc(void);
void op_error(void);

void signals_begin(void);
void guarded(const char *what, volatile unsigned char *at, bool write);
void quiet_signals(sigset_t *old); /* all blocked */
void files_end(void);

#endif
