/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trace of a run that is worth keeping: of the process that was named, or that failed, rather than of what only started it. */
#include "analyzer/hunt/pick.h"

#include "analyzer/trace_image.h"
#include "common/trace_read.h"
#include "common/vec.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static const char *program_of(const struct trc *t)
{
	const char *path = trc_identity(t, "program"), *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

/* Also by the name that it was started under: what that names may be a link to a file of another name. */
static bool is_named(const struct trc *t, const char *name)
{
	const char *command = trc_identity(t, "command");
	size_t n = command ? strcspn(command, " ") : 0, from = n;

	while (from && command[from - 1] != '/')
		from--;
	return !strcmp(program_of(t), name) || (n - from == strlen(name) && !memcmp(command + from, name, n - from));
}

/* Programs that do nothing but start others: what they end with is what those ended with. */
static bool only_starts(const struct trc *t)
{
	static const char *const names[] = { "sh", "dash", "bash", "zsh", "ksh", "busybox", "env", "timeout",
					     "nice", "taskset", "setsid", "xargs", "make", "ctest", "meson" };
	const char *name = program_of(t);

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* ---- may runs side by side disturb each other? ---- */

static bool writes(uint64_t flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT;
}

/* Does this system call change or use something that a second run would share? */
static bool is_outside(const struct trc_enter *e)
{
	switch (e->rec.flags) {
	case SYS_open:
		return writes(e->args[1]);
	case SYS_openat:
		return writes(e->args[2]);
	case SYS_clone:
		return !(e->args[0] & CLONE_THREAD);
	case SYS_creat: case SYS_openat2: case SYS_rename: case SYS_renameat: case SYS_renameat2: case SYS_unlink:
	case SYS_unlinkat: case SYS_mkdir: case SYS_mkdirat: case SYS_rmdir: case SYS_link: case SYS_linkat:
	case SYS_symlink: case SYS_symlinkat: case SYS_mknod: case SYS_mknodat: case SYS_truncate: case SYS_bind:
	case SYS_connect: case SYS_shmget: case SYS_semget: case SYS_msgget: case SYS_mq_open: case SYS_fork:
	case SYS_vfork: case SYS_execve: case SYS_execveat: case SYS_flock:
		return true;
	default:
		return false;
	}
}

static bool thread_goes_outside(struct trc_stream_file *stream)
{
	const struct trc_rec *rec = NULL;
	struct trc_iter it;

	trc_iter_init(&it, stream);
	for (;;) {
		err_t e = trc_next(&it, &rec);

		if (e || !rec) {
			err_free(e);
			return false;
		}
		if (rec->type == TRC_ENTER && is_outside((const struct trc_enter *)rec))
			return true;
	}
}

/* Without system calls in the record (mode=sync) nothing is known: it may. */
static bool goes_outside(const struct trc *t)
{
	if (!t->memory || t->children.n || t->exec)
		return true;
	for (size_t i = 0; i < t->threads.n; i++)
		if (t->threads.v[i].rec_stream && thread_goes_outside(t->threads.v[i].rec_stream))
			return true;
	return false;
}

/* ---- which one ---- */

/* The page offset of the pc survives address randomisation. */
uint64_t pick_print(const struct trc_failure *f)
{
	uint64_t facts[5] = { f->rec.flags, (uint64_t)(unsigned)f->signal, f->regs[TRC_RIP] & 0xfff, f->text_len,
			      (uint64_t)(unsigned)f->status };

	return trc_checksum(facts, sizeof facts);
}

/* How likely it is that the run failed in this process: what ended by itself before what stood still, before a status. */
static int failure_rank(const struct trc *t)
{
	if (!t->failure)
		return 0;
	switch (t->failure->rec.flags) {
	case TRC_FAIL_EXIT: return 100;
	case TRC_FAIL_DEADLOCK:
	case TRC_FAIL_HANG: return 300;
	default: return 500;
	}
}

static int rank(const struct trc *t, pid_t started)
{
	return 1 + failure_rank(t) + (t->threads.n > 1 ? 60 : 0) + (only_starts(t) ? 0 : 40) +
	       (trc_identity_uint(t, "pid", 0) == (uint64_t)started ? 0 : 20);
}

struct looking {
	const char *name;
	pid_t started;
	bool any;
	int failed_rank, kept_rank; /* of the best so far */
	struct pick *out;
};

static void take_failure(struct pick *p, const struct trc *t)
{
	free(p->text);
	p->text = trace_failure_text(t->failure);
	p->print = pick_print(t->failure);
	p->kind = t->failure->rec.flags;
	p->status = t->failure->status;
}

/* True: the path is kept. */
static bool look_at(struct looking *l, const struct trc *t, char *path)
{
	struct pick *p = l->out;
	bool named = l->name && is_named(t, l->name);
	int r = rank(t, l->started), kept = r + (named ? 10000 : 0);

	p->outside |= goes_outside(t);
	if (t->failure && r > l->failed_rank) {
		l->failed_rank = r;
		take_failure(p, t);
	}
	if (kept <= l->kept_rank || (!t->failure && !named && !l->any))
		return false;
	l->kept_rank = kept;
	free(p->path);
	p->path = path;
	p->named = named;
	p->started = trc_identity_uint(t, "pid", 0) == (uint64_t)l->started;
	p->explained = t->failure;
	return true;
}

void pick_trace(const char *dir, const char *name, pid_t started, bool any, struct pick *out)
{
	struct looking l = { name, started, any, 0, 0, out };
	DIR *d = opendir(dir);
	struct dirent *e;

	*out = (struct pick){ 0 };
	while (d && (e = readdir(d))) {
		struct trc *t = NULL;

		if (e->d_name[0] == '.')
			continue;
		char *path = xasprintf("%s/%s", dir, e->d_name);
		err_t bad = trc_open(path, TRC_TOLERANT, &t);
		if (bad || !look_at(&l, t, path))
			free(path);
		err_free(bad);
		if (t)
			trc_close(t);
	}
	if (d)
		closedir(d);
	/* A named process of a run that did not fail is of no interest. */
	if (!out->text && !any) {
		free(out->path);
		out->path = NULL;
	}
}

void pick_free(struct pick *p)
{
	free(p->path);
	free(p->text);
	*p = (struct pick){ 0 };
}
