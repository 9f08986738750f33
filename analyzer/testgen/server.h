/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that has the library loaded and runs each job in a child of its own. */
#ifndef CSCHED_TESTGEN_SERVER_H
#define CSCHED_TESTGEN_SERVER_H

#include "analyzer/testgen/job.h"

#include <sys/types.h>

struct server {
	pid_t pid;
	int fd;
	struct job *job; /* shared */
	char dir[512];   /* where the library may write */
	uint64_t jobs;
	const struct api *api;
	bool guard;      /* each job's heap is a guarded one */
	unsigned restarts; /* because a call ended the server */
};

/* Loads the library in a process that can write nowhere but in a directory of its own, and has no network. */
err_t server_start(const struct api *a, struct server *out);
/* Runs server.job; an error only when the server ends again and again. */
err_t server_run(struct server *s);
void server_stop(struct server *s);

/* child.c: in the server, what is the same for each job. */
void child_prepare(void);
/* In the process of one job; does not return. */
void run_job(struct job *j) __attribute__((noreturn));
/* The callback that returns 0 or 1, where it is in that process. */
uint64_t child_stub(bool one);
/* state.c: are these bytes there? They are copied then. */
bool state_readable(uint64_t address, void *to, size_t n);
/* step.c */
struct stepping {
	struct job *job;
	uint64_t start, end; /* code of the library */
};
/* In the server: what is the same for each job. */
void step_prepare(const struct job *j);
/* takes_part: of each thread. */
void step_init(struct job *j, const bool *takes_part);
/* This thread is number `index` (0: A, 1: B, ...) and will be stepped through. */
void step_thread(unsigned index);
/* Arms stepping for the call of this function, about to be made. */
void step_call(unsigned call, uint64_t function);
void step_returned(unsigned call);
/* This thread has ended its part. */
void step_end(void);
/* The controller: returns when all threads have ended, or none can go on. */
void step_control(void);
bool step_active(void);
/*
 * waiting.c: does this thread ("self" or a number, and a thread's number) wait in the kernel for a lock or the like, without a
 * time limit? *word: for which one. Allocates nothing: where the library's objects lie must not depend on it.
 */
bool waits_for_ever(const char *process, const char *thread, uint64_t *word);
/* state.c: in the server, where the heap begins. */
void state_prepare(void);
/* Hash of the bytes reachable from an object, pointers made canonical. */
uint64_t state_hash(const struct job *j, uint64_t object, uint64_t size);

#endif
