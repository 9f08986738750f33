/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every file the analyzer creates, and files it opens by a name that it was given by somebody else.
 *
 * A new file is written under a name that nobody can guess, beside the one it is to have, and renamed when it is complete:
 * nobody finds half of it, and what stands at its name (a symbolic link, a hard link, a file of another user) is replaced,
 * never written into.
 */
#ifndef CSCHED_COMMON_NEWFILE_H
#define CSCHED_COMMON_NEWFILE_H

#include "common/err.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum newfile_name {
	NEWFILE_GIVEN,   /* by the user: may also be a device or a pipe (/dev/stdout), which is opened as it is */
	NEWFILE_DERIVED, /* ours, in a directory that may have been prepared by somebody else */
};

struct newfile {
	FILE *f;
	char *path;
	bool held, asked; /* opened beforehand; opened by the process outside */
	/* The rest is newfile.c's own. */
	char *name, *tmp; /* in dir; tmp NULL: path is written as it is */
	int dir;
};

/* mode: before the umask. */
err_t newfile_open(struct newfile *n, const char *path, enum newfile_name named, mode_t mode);
/* The file is complete: it gets its name. Errors of writing are found here. Always closes. */
err_t newfile_keep(struct newfile *n);
/* It is not: nothing remains. */
void newfile_abandon(struct newfile *n);

/* For functions that write a whole file: write() to a new file at path. */
err_t newfile_write(const char *path, enum newfile_name named, mode_t mode, err_t (*write)(FILE *f, void *arg), void *arg);

/* What stands at a derived name goes. */
void newfile_remove(const char *path);

/*
 * For a process that is to be confined: opens the file now; newfile_open() of the same path gives it later, and
 * newfile_keep() there has it renamed by the process outside. Files that were not kept by the end leave nothing.
 */
err_t newfile_hold(const char *path, enum newfile_name named, mode_t mode);
bool newfile_is_held(int fd);
bool newfile_keep_held(const char *path);
void newfile_abandon_held(void);

/*
 * Opens a regular file for reading; -1 and errno for everything else (ENOENT, ...; EINVAL: not regular). Devices and pipes
 * are not opened even for a moment: opening alone has effects. follow: through a symbolic link as the last part of the name.
 */
int newfile_open_regular(int dir, const char *path, bool follow);

#endif
