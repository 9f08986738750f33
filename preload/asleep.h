/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a thread sleeps in when it is in no operation that we interpose: the kernel knows. */
#ifndef CSCHED_PRELOAD_ASLEEP_H
#define CSCHED_PRELOAD_ASLEEP_H

#include "preload/raw.h"
#include "preload/shim.h"

/* In the constructor: where glibc keeps the list of its open streams. */
void asleep_start(void);
/* What the futex is: " waits for futex 0x...", or the lock of a stream. */
void asleep_describe_futex(struct raw_text *text, uint64_t word);
/* " runs", " waits for futex 0x...", " waits for the lock of stdout held by T0.1", " waits in read() of descriptor 3" */
void asleep_describe(struct raw_text *text, const struct shim_thread *t);

#endif
