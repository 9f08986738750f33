/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a thread wrote to its standard error last: programs say there why they are about to end. Path mode only. */
#ifndef CSCHED_PRELOAD_SAID_H
#define CSCHED_PRELOAD_SAID_H

#include "preload/raw.h"
#include "preload/shim.h"

/* It writes so many bytes from there. */
void said_note(struct shim_thread *t, uint64_t from, uint64_t len);
/* libstdc++'s word about an exception: what() gave it. False: there is none. */
bool said_what(struct raw_text *text, const struct shim_thread *t);
/* The message that GLib aborts with, without the process and the time. False: there is none. */
bool said_glib(struct raw_text *text, const struct shim_thread *t);
/* The last line. False: there is none. */
bool said_last(struct raw_text *text, const struct shim_thread *t);

#endif
