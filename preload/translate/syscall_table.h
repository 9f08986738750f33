/* What each system call writes to the program's memory, as data. */
#ifndef CSCHED_TRANSLATE_SYSCALL_TABLE_H
#define CSCHED_TRANSLATE_SYSCALL_TABLE_H

#include <stdint.h>

#define CALL_MAX 480
#define CALL_OUTS 4
#define CALL_NAME 30

enum out_kind {
	OUT_NONE,
	OUT_FIXED,     /* n bytes at the argument */
	OUT_RESULT,    /* result * n bytes at the argument */
	OUT_UP_TO,     /* result bytes, but not more than args[aux] (MSG_TRUNC) */
	OUT_COUNT,     /* args[aux] * n bytes at the argument */
	OUT_VECTOR,    /* struct iovec at the argument, args[aux] of them, result bytes in all */
	OUT_OWN_VECTOR, /* the same, where args[0] is this process */
	OUT_LENGTHS,   /* struct mmsghdr of sendmmsg, result of them: their lengths */
	OUT_MESSAGE,   /* struct msghdr of recvmsg */
	OUT_MESSAGES,  /* struct mmsghdr of recvmmsg, result of them */
	OUT_SOCKLEN,   /* bytes counted by the socklen_t at args[aux], which is written too */
	OUT_FDSET,     /* fd_set for args[0] descriptors */
	OUT_BITS,      /* one byte per page of args[aux] bytes (mincore) */
	OUT_MASK,      /* args[aux] bits, in whole words */
	OUT_HANDLE,    /* struct file_handle */
	OUT_SENT,      /* the program's own data, result bytes: for comparison */
	OUT_SENT_VECTOR,
	OUT_SIZE_T,    /* args[aux] bytes when it fits, else the result */
};

/* Who takes care of a call beyond its outputs. */
enum call_kind {
	CALL_UNKNOWN,  /* not in the table: recorded with its result, and named in a note */
	CALL_PLAIN,
	CALL_OWN,      /* special.c, memory.c, process.c or sigcalls.c */
	CALL_IOCTL,    /* outputs depend on a request code */
	CALL_NOTED,    /* the kernel writes memory later or elsewhere: named in a note */
};

struct call_out {
	uint8_t kind;   /* enum out_kind */
	uint8_t arg;
	uint8_t aux;
	uint8_t always; /* also when the call failed */
	uint16_t n;
};

struct call_desc {
	uint8_t kind;    /* enum call_kind */
	struct call_out out[CALL_OUTS];
	char name[CALL_NAME]; /* not a pointer: the loader would write to every page of the table, of which one is used */
};

extern const struct call_desc call_table[CALL_MAX];

#endif
