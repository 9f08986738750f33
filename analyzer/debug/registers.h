/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers in the order and the words of gdb's x86-64 target description. */
#ifndef CSCHED_DEBUG_REGISTERS_H
#define CSCHED_DEBUG_REGISTERS_H

#include "analyzer/follow/machine.h"
#include "common/strbuf.h"

/* All of them as hex digits, or (from the number of `rbp` on) one. False: the thread has none. */
bool registers_all(struct mach_run *r, uint32_t thread, struct strbuf *out);
bool registers_one(struct mach_run *r, uint32_t thread, unsigned number, struct strbuf *out);

/* Those that a stop reply brings along: rbp, rsp, rip. */
bool registers_expedited(struct mach_run *r, uint32_t thread, struct strbuf *out);

/* target.xml. */
void registers_describe(struct strbuf *out);

#endif
