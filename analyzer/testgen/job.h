/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A job: calls of a library to be made in a process of their own, and what became of them. It lies in
 * memory that this process and the one that runs the calls share.
 */
#ifndef CSCHED_TESTGEN_JOB_H
#define CSCHED_TESTGEN_JOB_H

#include "analyzer/testgen/api.h"

#define JOB_CALLS 48
#define JOB_TEXT 8192        /* bytes of strings */
#define JOB_BUFFER 64        /* bytes of a buffer argument */
#define JOB_ARGS 24          /* of a call, structures taken apart */
#define JOB_BLOCK_BYTES 1024 /* of a structure that a call gets the address of */
#define JOB_STORAGE 16384    /* bytes of objects that are initialised in place, all together */
#define JOB_THREADS 4        /* that a test may have */
#define JOB_SEGMENTS 24      /* turns of an order */
#define JOB_FRAMES 48
#define JOB_EVENTS 32768     /* accesses and lock operations of a thread that are kept */
#define JOB_STEPS 131072     /* instructions of a thread that are stepped through; then it runs freely */
#define JOB_NEVER UINT32_MAX

/* Between A and POST: one part for each thread. */
enum job_part { JOB_PREFIX, JOB_A, JOB_B, JOB_POST = JOB_A + JOB_THREADS, JOB_PARTS };

enum job_arg_kind {
	JOB_NUMBER,   /* value */
	JOB_REAL,     /* bits of a double */
	JOB_TEXT_AT,  /* offset in text */
	JOB_BUFFER_OF, /* a buffer of its own, filled with 1, 2, 3, ... */
	JOB_RESULT,   /* what call `value` returned */
	JOB_OUT,      /* address of a word, which becomes the result of this call */
	JOB_PLACE,    /* address of `value` in storage, which becomes the result of this call */
	JOB_STUB,     /* a function that returns `value` */
	JOB_STRING,   /* a std::string of text at offset value */
	JOB_BLOCK,    /* a structure of its own, as the bytes at offset value are */
};

/* How a call gets it; what finds no register any more is on the stack. */
enum job_way { JOB_BY_INTEGER, JOB_BY_DOUBLE, JOB_BY_SINGLE, JOB_BY_BITS, JOB_BY_STACK };

struct job_arg {
	uint8_t kind, way;
	int64_t value;
	uint8_t number; /* JOB_BUFFER_OF: its first bytes, so many, are a number that the call may fill */
	uint32_t size;  /* JOB_BLOCK, in bytes; JOB_BUFFER_OF: not 0: the bytes at `value` are in it */
};

#define JOB_SETS 6 /* of a call */

/* What the caller writes to a structure before the call. */
struct job_set {
	uint8_t arg, size;
	uint32_t offset;
	bool buffer, filled; /* a buffer of its own; with the text at `value` */
	int64_t value;
};

struct job_call {
	uint64_t offset;   /* of the function in the library */
	uint8_t nargs, part;
	uint8_t result;    /* enum api_kind of what it returns */
	uint8_t result_size;
	bool result_signed;
	bool result_in_memory; /* the address of memory for it comes in front of the arguments */
	struct job_arg args[JOB_ARGS];
	uint8_t nsets;
	struct job_set sets[JOB_SETS];
};

enum job_mode {
	JOB_SERIAL,     /* the parts' calls in `order`, natively, each part in a thread of its own or all in one */
	JOB_TRACE,      /* the prefix natively, then part `traced` stepped through */
	JOB_CONCURRENT, /* each thread's part in a thread, as `segments` say */
};

/* Thread 0 runs part A, thread 1 part B, and so on. */
struct job_segment {
	uint8_t thread;
	uint32_t until; /* before this step of the thread; JOB_NEVER: until it ends */
};

enum job_event_kind { JOB_READ, JOB_WRITE, JOB_LOCK, JOB_UNLOCK, JOB_SHARED_LOCK, JOB_ALLOC, JOB_FREE, JOB_ENTER,
		      JOB_LEAVE, JOB_CALL, JOB_RETURNED, JOB_ATOMIC };

struct job_event {
	uint64_t address; /* of memory, a lock or a function */
	uint64_t size;
	uint32_t step;    /* that comes with it */
	uint32_t pc;      /* offset in the library */
	uint8_t kind;
	uint8_t call;     /* JOB_CALL, JOB_RETURNED: index in job.calls */
	bool known;       /* JOB_TRACE: `value` is what was read or written, as a number of `size` bytes */
	uint64_t value;
};

enum job_end {
	JOB_NOT_RUN,
	JOB_DONE,
	JOB_SIGNAL,     /* a crash or an abort */
	JOB_EXIT,       /* the process ended by itself */
	JOB_DEADLOCK,   /* every thread waits */
	JOB_HANG,       /* the time limit */
	JOB_EXCEPTION,  /* a C++ exception left the outermost call: caught by the terminate handler */
};

/* What a step is, above its place: which instructions an order can be tied to depends on it. */
#define JOB_CLASS_SHIFT 29
#define JOB_PLACE_MASK ((1u << JOB_CLASS_SHIFT) - 1)
enum job_class { JOB_PLAIN, JOB_BRANCHES, JOB_CALLS_OUT, JOB_RETURNS };

struct job_thread {
	uint32_t nsteps, nevents;
	bool overflow;
	bool blocked;    /* it waited when its turn had come */
	uint32_t stopped; /* place of the step before which it was stopped last; 0: it was not */
	uint32_t began;  /* calls that it has begun, for those that do not come back */
	int32_t in_call; /* index; -1 */
	uint32_t pcs[JOB_STEPS]; /* offset in the library, class above it */
	struct job_event events[JOB_EVENTS];
};

struct job {
	/* the question */
	enum job_mode mode;
	uint8_t traced;
	bool one_thread;  /* JOB_SERIAL */
	bool want_state;
	bool guard;       /* blocks that cannot be overrun or used after they were freed: heap_guard.h */
	bool fast;        /* JOB_CONCURRENT: threads that need not stop any more run natively */
	uint32_t ncalls;
	struct job_call calls[JOB_CALLS];
	uint32_t norder;
	uint8_t order[JOB_CALLS]; /* JOB_SERIAL: call indices */
	uint32_t nsegments;
	struct job_segment segments[JOB_SEGMENTS];
	int32_t object_call;  /* whose result is the object under test; -1: the library's own variables are */
	uint64_t object_size;
	uint32_t limit_ms;
	uint32_t ntext;
	char text[JOB_TEXT];
	/* the answer */
	enum job_end end;
	int32_t status;      /* signal or exit status */
	int32_t calls_done;
	uint8_t failed_thread; /* 0: the first (prefix, post), 1: A, 2: B, ... */
	int32_t failed_call;
	uint64_t fault_address, fault_pc;
	uint8_t misuse;      /* enum heap_misuse, of the fault */
	uint32_t nframes;
	uint64_t frames[JOB_FRAMES]; /* innermost first: pcs of this run */
	uint64_t bias, text_start, text_end;
	uint64_t data_start, data_end; /* the library's own variables */
	uint64_t waits_for[JOB_THREADS]; /* lock addresses, of a deadlock; 0: not known */
	uint64_t waits_pc[JOB_THREADS];
	uint64_t state;      /* hash of what is reachable from the object */
	uint64_t results_hash;
	int64_t results[JOB_CALLS];
	uint64_t filled[JOB_CALLS]; /* hash of the numbers that the call was given the addresses of */
	bool ran[JOB_CALLS];
	char said[512];      /* the end of what it wrote to standard error */
	struct job_thread thread[JOB_THREADS];
};

#endif
