/* Temporary files of a hunt or a native replay. */
#ifndef CSCHED_HUNT_FILES_H
#define CSCHED_HUNT_FILES_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

void files_remove_tree(const char *path);
/* rename(), or a copy file by file when the target is on another file system: all of it or nothing. */
err_t files_move_tree(const char *from, const char *to);
err_t files_copy_tree(const char *from, const char *to);
/*
 * A directory for `name' below dir, empty and made now: *out is dir/name, or, where that is taken, by another machine it may
 * be, the first that is free of dir/name-2, ... (with the number in front of the last dot). Trees can be moved over it.
 */
char *files_numbered(const char *dir, const char *name, unsigned n); /* the n-th of these names, from 1 */
err_t files_reserve(const char *dir, const char *name, char **out);
/* A tree into a directory (NULL: the current one) under its own name, or one that is free. *path is malloc'd also when it fails. */
err_t files_move_into(const char *from, const char *dir, char **path);
/* A directory, and those it is in. */
err_t files_make_dirs(const char *path);
/* A new directory below $TMPDIR; without that below /dev/shm if it has room, else /tmp. */
err_t files_make_work(const char *name, char *out, size_t size);
/* A new file there, open for writing; the caller frees and unlinks *path. */
err_t files_make_file(const char *name, char **path, FILE **out);
/*
 * Keeps our standard input in path, because every run gets the same. A
 * terminal cannot be read by many runs: they get an empty input and
 * *was_terminal (may be NULL) says so.
 */
err_t files_keep_input(const char *path, bool *was_terminal);

/*
 * Of what a run prints only the end is of interest, and it may be more than there is room for: while it goes on the rest
 * gives its room back. Whoever writes does not notice; the size stays.
 */
void files_thin_output(const char *path);

#endif
