/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that holds the library: loads it behind walls, forks a child for each job and watches it.
 * What the library does wrong ends a child, at worst the server; never csched.
 */
#include "analyzer/testgen/heap.h"
#include "analyzer/testgen/server.h"
#include "analyzer/testgen/walls.h"

#include "analyzer/hunt/files.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOAD_MS 20000       /* an initialiser that takes longer never ends */
#define LOOK_MS 20          /* between looks at a child that does not end */
#define MOST_RESTARTS 20
#define STILL_LOOKS 6       /* all its threads waited for locks at so many looks in a row: it hangs */

enum { ASK = 'j', READY = 'r' };

/* ---- the library ---- */

struct lookup {
	const char *path;
	uint64_t bias, start, end, data_start, data_end;
};

static void widen(uint64_t *start, uint64_t *end, uint64_t at, uint64_t size)
{
	if (!*start || at < *start)
		*start = at;
	if (at + size > *end)
		*end = at + size;
}

static int note_parts(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct lookup *l = arg;

	(void)size;
	if (info->dlpi_addr != l->bias)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t at = l->bias + p->p_vaddr;

		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			widen(&l->start, &l->end, at, p->p_memsz);
		else if (p->p_type == PT_LOAD && p->p_flags & PF_W)
			widen(&l->data_start, &l->data_end, at, p->p_memsz);
	}
	return 1;
}

static void load(const char *path, struct job *j)
{
	struct link_map *map = NULL;
	void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	struct lookup l = { .path = path };

	if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map)) {
		snprintf(j->said, sizeof j->said, "%s", dlerror());
		_exit(3);
	}
	heap_install();
	l.bias = map->l_addr;
	dl_iterate_phdr(note_parts, &l);
	j->bias = l.bias;
	j->text_start = l.start;
	j->text_end = l.end;
	j->data_start = l.data_start;
	j->data_end = l.data_end;
}

/* ---- one job ---- */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Do all threads of the process wait for a lock or the like, without a time limit? */
static bool stands_still(pid_t pid)
{
	struct entry {
		uint64_t inode, offset;
		uint16_t size;
		uint8_t type;
		char name[];
	};
	char path[96], process[24], entries[4096] __attribute__((aligned(8)));
	uint64_t word;
	bool all = true;

	snprintf(process, sizeof process, "%d", pid);
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n = fd >= 0 ? syscall(SYS_getdents64, fd, entries, sizeof entries) : 0;
	if (fd >= 0)
		close(fd);
	for (long at = 0; at < n && all;) {
		const struct entry *e = (const struct entry *)(entries + at);

		all = e->name[0] == '.' || waits_for_ever(process, e->name, &word);
		at += e->size;
	}
	return n > 0 && all;
}

static void watch(pid_t pid, struct job *j)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), status = 0;
	uint64_t began = now_ms(), steps = 0;
	unsigned still = 0;
	bool killed = false;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (poll(&p, 1, LOOK_MS) > 0)
			break;
		still = stands_still(pid) ? still + 1 : 0;
		/* Who is stepped through takes his time, and so many steps at most. */
		uint64_t now = 0;
		for (unsigned i = 0; i < JOB_THREADS; i++)
			now += j->thread[i].nsteps;
		if (now > steps && now <= JOB_THREADS * JOB_STEPS)
			began = now_ms();
		steps = now;
		if (still < STILL_LOOKS && now_ms() - began < j->limit_ms)
			continue;
		killed = true;
		if (j->end == JOB_NOT_RUN)
			j->end = still >= STILL_LOOKS ? JOB_DEADLOCK : JOB_HANG;
		kill(pid, SIGKILL);
		break;
	}
	close(fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (killed || j->end != JOB_NOT_RUN)
		return;
	j->end = WIFSIGNALED(status) ? JOB_SIGNAL : JOB_EXIT;
	j->status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void keep_words(struct job *j)
{
	off_t size = lseek(2, 0, SEEK_END);
	off_t from = size > (off_t)sizeof j->said - 1 ? size - (off_t)sizeof j->said + 1 : 0;
	ssize_t n = size > 0 ? pread(2, j->said, sizeof j->said - 1, from) : 0;

	j->said[n > 0 ? n : 0] = 0;
	if (size && ftruncate(2, 0))
		j->said[0] = 0;
}

static void do_job(struct job *j, int fd)
{
	pid_t pid = fork();

	if (!pid) {
		/* Only the server answers. */
		close(fd);
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		walls_child();
		run_job(j);
	}
	if (pid < 0) {
		j->end = JOB_NOT_RUN;
		return;
	}
	watch(pid, j);
	kill(-pid, SIGKILL); /* what it may have left */
	keep_words(j);
}

extern const char *__progname;

static void serve(const char *path, struct server *s, int fd)
{
	char c = READY;

	__progname = "test"; /* what assert() says who it is */
	walls_server(s->dir);
	load(path, s->job);
	if (write(fd, &c, 1) != 1)
		_exit(0);
	child_prepare();
	state_prepare();
	step_prepare(s->job);
	walls_calls();
	while (read(fd, &c, 1) == 1) {
		do_job(s->job, fd);
		if (write(fd, &c, 1) != 1)
			break;
	}
	_exit(0);
}

/* ---- our side ---- */

static err_t start_failed(struct server *s, const struct api *a)
{
	int status = 0;
	err_t e;

	kill(s->pid, SIGKILL);
	while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
		e = err_new(ERR_NOANSWER, "%s cannot be loaded: %.300s", a->path, s->job->said);
	else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		e = err_new(ERR_NOANSWER, "%s cannot be loaded: its initialiser ended by signal %d (%s)", a->path,
			    WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WIFEXITED(status))
		e = err_new(ERR_NOANSWER, "%s cannot be loaded: its initialiser ends the process (status %d)",
			    a->path, WEXITSTATUS(status));
	else
		e = err_new(ERR_NOANSWER, "%s cannot be loaded: its initialiser does not return", a->path);
	return e;
}

static err_t start(struct server *s)
{
	int pair[2];
	char c, *copy = NULL;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_errno("cannot talk to the library's process");
	err_t e = s->api->program ? api_copy_program(s->api, s->dir, &copy) : NULL;
	s->pid = e ? -1 : fork();
	if (!s->pid) {
		close(pair[0]);
		serve(copy ? copy : s->api->path, s, pair[1]);
	}
	free(copy);
	close(pair[1]);
	s->fd = pair[0];
	if (s->pid < 0)
		return e ? e : err_errno("fork");
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	if (poll(&p, 1, LOAD_MS) == 1 && read(s->fd, &c, 1) == 1)
		return NULL;
	return start_failed(s, s->api);
}

err_t server_start(const struct api *a, struct server *s)
{
	*s = (struct server){ .fd = -1, .api = a };
	TRY(files_make_work("csched-testgen", s->dir, sizeof s->dir));
	s->job = mmap(NULL, sizeof *s->job, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->job == MAP_FAILED)
		return err_errno("cannot share memory with the library's process");
	return start(s);
}

static void end_process(struct server *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	s->fd = -1;
	s->pid = 0;
}

static void clear_answer(struct job *j)
{
	j->end = JOB_NOT_RUN;
	j->status = j->calls_done = 0;
	j->failed_thread = 0;
	j->failed_call = -1;
	j->fault_address = j->fault_pc = j->nframes = 0;
	j->misuse = 0;
	memset(j->waits_for, 0, sizeof j->waits_for);
	memset(j->waits_pc, 0, sizeof j->waits_pc);
	j->state = j->results_hash = 0;
	memset(j->results, 0, sizeof j->results);
	memset(j->filled, 0, sizeof j->filled);
	memset(j->ran, 0, sizeof j->ran);
	for (int i = 0; i < JOB_THREADS; i++) {
		struct job_thread *t = &j->thread[i];

		t->nsteps = t->nevents = t->began = t->stopped = 0;
		t->overflow = t->blocked = false;
		t->in_call = -1;
	}
}

/* The library could write to the answer: what is used as a length or an index is in bounds whatever it did. */
static void check_answer(struct job *j)
{
	j->nframes = j->nframes < JOB_FRAMES ? j->nframes : JOB_FRAMES;
	j->ncalls = j->ncalls < JOB_CALLS ? j->ncalls : JOB_CALLS;
	j->said[sizeof j->said - 1] = 0;
	if (j->failed_call < -1 || j->failed_call >= JOB_CALLS)
		j->failed_call = -1;
	if (j->object_call < -1 || j->object_call >= JOB_CALLS)
		j->object_call = -1;
	if ((unsigned)j->end > JOB_EXCEPTION)
		j->end = JOB_EXIT;
	for (int i = 0; i < JOB_THREADS; i++) {
		struct job_thread *t = &j->thread[i];

		t->nsteps = t->nsteps < JOB_STEPS ? t->nsteps : JOB_STEPS;
		t->nevents = t->nevents < JOB_EVENTS ? t->nevents : JOB_EVENTS;
		if (t->in_call < -1 || t->in_call >= JOB_CALLS)
			t->in_call = -1;
		for (uint32_t k = 0; k < t->nevents; k++)
			if (t->events[k].call >= JOB_CALLS || t->events[k].step > t->nsteps)
				t->nevents = k;
	}
}

err_t server_run(struct server *s)
{
	struct job *j = s->job;
	uint32_t limit_ms = j->limit_ms; /* the library cannot change this one */
	char c = ASK;

	clear_answer(j);
	j->guard = s->guard;
	s->jobs++;
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	if (send(s->fd, &c, 1, MSG_NOSIGNAL) == 1 && poll(&p, 1, (int)limit_ms + LOAD_MS) == 1 &&
	    read(s->fd, &c, 1) == 1) {
		check_answer(j);
		return NULL;
	}
	/* Something that a call did ended the server. */
	end_process(s);
	if (s->restarts++ == MOST_RESTARTS)
		return err_new(ERR_NOANSWER, "the process that holds %s ended again and again", s->api->soname);
	TRY(start(s));
	check_answer(j);
	j->end = JOB_EXIT;
	return NULL;
}

void server_stop(struct server *s)
{
	end_process(s);
	if (s->job && s->job != MAP_FAILED)
		munmap(s->job, sizeof *s->job);
	if (s->dir[0])
		files_remove_tree(s->dir);
	*s = (struct server){ .fd = -1 };
}
