/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one door through which files come in whose names a trace, an ELF file or debug information chose.
 *
 * Each kind of file has its rule (door.c, door_source.c). A process that is confined (analyzer/sandbox/) opens nothing
 * itself: its door asks the process outside, which applies the same rules.
 */
#ifndef CSCHED_COMMON_DOOR_H
#define CSCHED_COMMON_DOOR_H

#include <stdbool.h>
#include <stddef.h>

enum door_kind {
	DOOR_TRACE,       /* what the user named (door_grant), and the regular files right in it */
	DOOR_ELF,         /* an ELF file that is no core dump */
	DOOR_SOURCE,      /* a source file, see door_source.c */
	DOOR_SOURCE_TAIL, /* the same below the directories that the user named, with ever fewer leading parts */
	DOOR_TEMP,        /* an unnamed file of our own; the name is not looked at */
	DOOR_EXECUTABLE,  /* from debuginfod: the name is "BUILD-ID" in hexadecimal */
	DOOR_DEBUGINFO,
	DOOR_NEW,         /* one of the files explain keeps beside the trace, to be written; its name alone */
	/* These open nothing and answer 0 or -1. */
	DOOR_KEEP,        /* what was written under this name is complete */
	DOOR_DROP,        /* it is not, and is not to be */
	DOOR_REMOVE,      /* what stood under this name goes */
	DOOR_WRITTEN,     /* a file that was held (newfile_hold) is complete; its path */
	DOOR_OWN,         /* the ELF file at this path is the recorded program's, by its build-id */
	DOOR_COMPILED,    /* in this directory, says its debug information, it was compiled */
	DOOR_KINDS
};

/* A descriptor, 0 for what opens nothing; -1 and errno. EPERM: the rule forbids it. */
int door_open(enum door_kind kind, const char *name);

/* The user named it on the command line: a trace, a .sym file. */
void door_grant(const char *path);
/* Likewise, and nothing that was named before: the process read other traces for itself. */
void door_grant_alone(const char *path);
/* The user wants sources to be looked for there, too. */
void door_add_sources(const char *dir);
/* Those of $CSCHED_SOURCE_PATH. */
void door_sources_from_environment(void);

/* ---- for analyzer/sandbox/ ---- */

typedef int door_asker(enum door_kind kind, const char *name);

/* From now on every door_open() of this process goes there. */
void door_ask_elsewhere(door_asker *ask);
bool door_is_elsewhere(void);
/* Kinds that door.c cannot serve (debuginfod); NULL: ENOENT. */
void door_serve_with(door_asker *more);
/* The rules, here. */
int door_serve(enum door_kind kind, const char *name);
/* door_source.c; path: as it was asked for. */
int door_serve_source(const char *path);
int door_serve_source_tail(const char *path);
int door_serve_base(enum door_kind kind, const char *path);

#endif
