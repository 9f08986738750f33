/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a library's code may not do: walls around the process that holds it, its children, and the programs that use it. */
#ifndef CSCHED_TESTGEN_WALLS_H
#define CSCHED_TESTGEN_WALLS_H

/* Files may be changed below dir only; where the kernel knows of it, nobody outside can be signalled. */
void walls_files(const char *dir);
/* For a process that loads the library: that, no network, limits, standard input empty, dir as its place. */
void walls_server(const char *dir);
/* For that process, once the library is loaded: the system calls that no job may make. */
void walls_calls(void);
/* For a child that calls it, behind walls_calls(): no other processes, no other user, no signals to others. Cannot be taken back. */
void walls_child(void);

#endif
