/* Names of the x86-64 system calls. */
#ifndef CSCHED_COMMON_SYSCALL_NAMES_H
#define CSCHED_COMMON_SYSCALL_NAMES_H

/* "write"; NULL: a number without a name. */
const char *syscall_name(unsigned number);

#endif
