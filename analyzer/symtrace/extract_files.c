/*
 * System calls through which threads meet: one takes a file's name away, another opens it. They give their recorded
 * results in every order, so that no order says anything about them; a live run has to be brought to the
 * order they were recorded in.
 *
 * What a call touches is an object, known by a number: a path, as the program spelt it; the directory that holds it;
 * what was opened, its position and, of a pipe, its bytes.
 */
#include "analyzer/symtrace/extract_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#define MOST_CALLS 4000
#define MOST_DESCRIPTORS 65536
#define PATH_LEN 512
#define MOST_FRAMES 16
#define FIRST_OPENED (1ull << 63) /* what was opened is counted from here; paths are hashes below it */

/* What a call does to the names and the descriptor it is given. Arguments are numbered from 1; 0: has none. */
struct call {
	uint16_t nr;
	uint8_t path, other;   /* the arguments that are paths ... */
	uint8_t at, other_at;  /* ... and the directories that these begin at, when they are relative */
	enum ext_touch_how how, other_how;
	enum ext_name_state leaves, other_leaves; /* what becomes of the names */
	bool entry;            /* the directory is changed, too */
	uint8_t fd;
	bool position;         /* what was opened is changed */
	enum ext_touch_how content;
};

static const struct call calls[] = {
	{ .nr = SYS_open, .path = 1, .how = EXT_READS },
	{ .nr = SYS_openat, .path = 2, .at = 1, .how = EXT_READS },
	{ .nr = SYS_creat, .path = 1, .how = EXT_CHANGES, .entry = true, .leaves = EXT_NAME_MADE },
	{ .nr = SYS_unlink, .path = 1, .how = EXT_CHANGES, .entry = true, .leaves = EXT_NAME_TAKEN_AWAY },
	{ .nr = SYS_unlinkat, .path = 2, .at = 1, .how = EXT_CHANGES, .entry = true, .leaves = EXT_NAME_TAKEN_AWAY },
	{ .nr = SYS_mkdir, .path = 1, .how = EXT_CHANGES, .entry = true, .leaves = EXT_NAME_MADE },
	{ .nr = SYS_mkdirat, .path = 2, .at = 1, .how = EXT_CHANGES, .entry = true, .leaves = EXT_NAME_MADE },
	{ .nr = SYS_rmdir, .path = 1, .how = EXT_CHANGES, .entry = true, .leaves = EXT_NAME_TAKEN_AWAY },
	{ .nr = SYS_rename, .path = 1, .other = 2, .how = EXT_CHANGES, .other_how = EXT_CHANGES, .entry = true,
	  .leaves = EXT_NAME_TAKEN_AWAY, .other_leaves = EXT_NAME_MADE },
	{ .nr = SYS_renameat, .path = 2, .other = 4, .at = 1, .other_at = 3, .how = EXT_CHANGES,
	  .other_how = EXT_CHANGES, .entry = true, .leaves = EXT_NAME_TAKEN_AWAY, .other_leaves = EXT_NAME_MADE },
	{ .nr = SYS_renameat2, .path = 2, .other = 4, .at = 1, .other_at = 3, .how = EXT_CHANGES,
	  .other_how = EXT_CHANGES, .entry = true, .leaves = EXT_NAME_TAKEN_AWAY, .other_leaves = EXT_NAME_MADE },
	{ .nr = SYS_link, .path = 1, .other = 2, .how = EXT_READS, .other_how = EXT_CHANGES, .entry = true,
	  .other_leaves = EXT_NAME_MADE },
	{ .nr = SYS_linkat, .path = 2, .other = 4, .at = 1, .other_at = 3, .how = EXT_READS,
	  .other_how = EXT_CHANGES, .entry = true, .other_leaves = EXT_NAME_MADE },
	{ .nr = SYS_symlink, .path = 2, .how = EXT_CHANGES, .entry = true, .leaves = EXT_NAME_MADE },
	{ .nr = SYS_symlinkat, .path = 3, .at = 2, .how = EXT_CHANGES, .entry = true, .leaves = EXT_NAME_MADE },
	{ .nr = SYS_truncate, .path = 1, .how = EXT_CHANGES },
	{ .nr = SYS_chmod, .path = 1, .how = EXT_CHANGES },
	{ .nr = SYS_stat, .path = 1, .how = EXT_READS },
	{ .nr = SYS_lstat, .path = 1, .how = EXT_READS },
	{ .nr = SYS_newfstatat, .path = 2, .at = 1, .how = EXT_READS },
	{ .nr = SYS_statx, .path = 2, .at = 1, .how = EXT_READS },
	{ .nr = SYS_access, .path = 1, .how = EXT_READS },
	{ .nr = SYS_faccessat, .path = 2, .at = 1, .how = EXT_READS },
	{ .nr = SYS_faccessat2, .path = 2, .at = 1, .how = EXT_READS },
	{ .nr = SYS_readlink, .path = 1, .how = EXT_READS },
	{ .nr = SYS_readlinkat, .path = 2, .at = 1, .how = EXT_READS },
	{ .nr = SYS_read, .fd = 1, .position = true, .content = EXT_READS },
	{ .nr = SYS_readv, .fd = 1, .position = true, .content = EXT_READS },
	{ .nr = SYS_pread64, .fd = 1, .content = EXT_READS },
	{ .nr = SYS_write, .fd = 1, .position = true, .content = EXT_CHANGES },
	{ .nr = SYS_writev, .fd = 1, .position = true, .content = EXT_CHANGES },
	{ .nr = SYS_pwrite64, .fd = 1, .content = EXT_CHANGES },
	{ .nr = SYS_ftruncate, .fd = 1, .content = EXT_CHANGES },
	{ .nr = SYS_fstat, .fd = 1, .content = EXT_READS },
	{ .nr = SYS_lseek, .fd = 1, .position = true, .content = EXT_READS },
	{ .nr = SYS_getdents64, .fd = 1, .position = true, .content = EXT_READS },
	{ .nr = SYS_close, .fd = 1, .position = true },
};

static const struct call *call_of(unsigned nr)
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

/* ---- objects ---- */

static uint64_t object_of(const char *path, size_t n)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)path[i]) * 1099511628211u;
	return (h & (FIRST_OPENED - 1)) | 1;
}

static struct ext_file *file_of(struct ext *x, uint64_t fd)
{
	return fd < x->files.n && x->files.v[fd].opened ? &x->files.v[fd] : NULL;
}

/* Without "./" at its beginning and slashes that say nothing. */
static void tidy(char *path)
{
	char *to = path;

	while (path[0] == '.' && path[1] == '/')
		memmove(path, path + 2, strlen(path + 2) + 1);
	for (const char *p = path; *p; p++)
		if (*p != '/' || to == path || to[-1] != '/')
			*to++ = *p;
	while (to > path + 1 && to[-1] == '/')
		to--;
	*to = 0;
}

/* The path that an argument names; false: none, or it cannot be read. */
static bool path_of(struct ext *x, const struct trc_enter *enter, unsigned arg, unsigned at, char out[PATH_LEN])
{
	const struct ext_file *dir = at ? file_of(x, enter->args[at - 1]) : NULL;
	char given[PATH_LEN / 2];
	size_t n = 0;

	while (n + 1 < sizeof given && mach_read(x->run, enter->args[arg - 1] + n, &given[n], 1) && given[n])
		n++;
	given[n] = 0;
	if (!n || n + 1 == sizeof given)
		return false;
	snprintf(out, PATH_LEN, "%s%s%s", dir && dir->path && *given != '/' ? dir->path : "",
		 dir && dir->path && *given != '/' ? "/" : "", given);
	tidy(out);
	return true;
}

static void touch(struct ext_call *c, uint64_t object, enum ext_touch_how how)
{
	if (c->ntouches < EXT_TOUCHES)
		c->touches[c->ntouches++] = (struct ext_call_touch){ .object = object, .how = how };
}

static void touch_path(struct ext_call *c, const char *path, enum ext_touch_how how, bool entry)
{
	const char *slash = strrchr(path, '/');

	touch(c, object_of(path, strlen(path)), how);
	if (entry && slash)
		touch(c, object_of(path, slash == path ? 1 : (size_t)(slash - path)), EXT_ENTERS);
	else if (entry)
		touch(c, object_of(".", 1), EXT_ENTERS);
}

/* ---- descriptors ---- */

static void opened(struct ext *x, int64_t fd, uint64_t which, const char *path)
{
	if (fd < 0 || fd >= MOST_DESCRIPTORS)
		return;
	while (x->files.n <= (size_t)fd)
		vec_push(&x->files, (struct ext_file){ 0 });
	free(x->files.v[fd].path);
	x->files.v[fd] = (struct ext_file){ which, path ? xstrdup(path) : NULL };
}

static void opened_pair(struct ext *x, uint64_t at)
{
	int32_t pair[2];

	if (!mach_read(x->run, at, pair, sizeof pair))
		return;
	/* The ends of a pipe share its bytes. */
	opened(x, pair[0], FIRST_OPENED + ++x->nopened, NULL);
	opened(x, pair[1], FIRST_OPENED + x->nopened, NULL);
}

/* What the call did to the table of descriptors. */
static void follow(struct ext *x, const struct trc_enter *enter, int64_t result, const char *path)
{
	const struct ext_file *from = file_of(x, enter->args[0]);

	switch (enter->rec.flags) {
	case SYS_open: case SYS_openat: case SYS_creat:
		opened(x, result, FIRST_OPENED + ++x->nopened, path);
		break;
	case SYS_socket: case SYS_accept: case SYS_accept4: case SYS_eventfd2:
		opened(x, result, FIRST_OPENED + ++x->nopened, NULL);
		break;
	case SYS_dup: case SYS_dup2: case SYS_dup3:
		if (from) {
			struct ext_file same = { from->opened, from->path ? xstrdup(from->path) : NULL };

			opened(x, result, same.opened, same.path);
			free(same.path);
		}
		break;
	case SYS_pipe: case SYS_pipe2:
		opened_pair(x, enter->args[0]);
		break;
	case SYS_socketpair:
		opened_pair(x, enter->args[3]);
		break;
	case SYS_close:
		opened(x, (int32_t)enter->args[0], 0, NULL);
		break;
	default:
		break;
	}
}

/* ---- calls ---- */

/*
 * Where the program's own code made the call, and whether it did so itself. Who writes through a FILE holds its lock, which is
 * not known here: nobody may be made to wait for another one who writes to it.
 */
static bool find_caller(struct ext *x, struct ext_call *c)
{
	struct img_memory mem = mach_img_memory(x->run);
	struct img_regs regs;
	uint64_t pcs[MOST_FRAMES];
	size_t n = mach_img_regs(x->run, c->thread, &regs) ? img_unwind(x->images, &regs, &mem, pcs, MOST_FRAMES) : 0, i = 1;

	while (i < n && level_is_runtime(x->level, pcs[i]))
		i++;
	c->caller = i < n ? pcs[i] + 1 : 0;
	return i < n && i == 1;
}

static void touch_descriptor(struct ext *x, const struct call *k, const struct trc_enter *enter, struct ext_call *c,
			     bool direct)
{
	const struct ext_file *f = file_of(x, enter->args[k->fd - 1]);

	if (!f || enter->args[k->fd - 1] <= 2)
		return; /* where everybody prints */
	if (k->position && direct) {
		touch(c, f->opened, EXT_CHANGES);
		c->takes = k->content == EXT_READS;
	}
	if (k->content && f->path)
		touch(c, object_of(f->path, strlen(f->path)), k->content);
}

static bool creates(const struct trc_enter *enter)
{
	unsigned nr = enter->rec.flags;
	uint64_t flags = nr == SYS_open ? enter->args[1] : nr == SYS_openat ? enter->args[2] : 0;

	return flags & (O_CREAT | O_TRUNC);
}

/* `leaves`: what the call does to the name when it succeeds. */
static enum ext_name_state name_state(int64_t result, enum ext_name_state leaves)
{
	switch (result) {
	case -ENOENT:
		return leaves == EXT_NAME_MADE ? EXT_NAME_UNKNOWN : EXT_NAME_MISSED;
	case -EEXIST:
		return leaves == EXT_NAME_MADE ? EXT_NAME_FOUND : EXT_NAME_UNKNOWN;
	default:
		return result < 0 ? EXT_NAME_UNKNOWN : leaves;
	}
}

static void say_name(struct ext_call *c, const char *path, enum ext_name_state state)
{
	uint64_t object = object_of(path, strlen(path));

	for (unsigned i = 0; i < c->ntouches; i++)
		if (c->touches[i].object == object)
			c->touches[i].name = state;
}

void ext_files_call(struct ext *x, uint32_t thread, const struct trc_enter *enter, const struct trc_leave *leave)
{
	const struct call *k = call_of(enter->rec.flags);
	struct ext_call c = { .thread = thread, .pc = enter->pc, .begin = enter->seq, .end = leave->seq,
			      .next = (uint32_t)x->trace->threads[thread].nevents };
	char path[PATH_LEN] = "", other[PATH_LEN] = "";

	if (x->onward || ext_is_part(x))
		return; /* without the beginning of the run nobody counted */
	bool direct = k && x->started > 1 && find_caller(x, &c);
	if (k && k->path && !path_of(x, enter, k->path, k->at, path))
		*path = 0;
	if (k && k->other && !path_of(x, enter, k->other, k->other_at, other))
		*other = 0;
	if (*path)
		touch_path(&c, path, creates(enter) ? EXT_CHANGES : k->how, k->entry || creates(enter));
	if (*other)
		touch_path(&c, other, k->other_how, k->entry);
	if (k && k->fd)
		touch_descriptor(x, k, enter, &c, direct);
	if (k && *path)
		say_name(&c, path, name_state(leave->result, creates(enter) ? EXT_NAME_MADE : k->leaves));
	if (k && *other)
		say_name(&c, other, name_state(leave->result, k->other_leaves));
	if (leave->result >= 0)
		follow(x, enter, leave->result, *path ? path : NULL);
	if (!c.ntouches || x->started < 2)
		return;
	/* Inside the instruction, as for signals. */
	c.n = ext_count(x, thread, enter->pc + 1, mach_thread_insns(x->run, thread));
	if (x->calls.n < MOST_CALLS)
		vec_push(&x->calls, c);
	else
		x->calls_lost = true;
}

void ext_files_free(struct ext *x)
{
	for (size_t i = 0; i < x->files.n; i++)
		free(x->files.v[i].path);
	vec_free(&x->files);
	vec_free(&x->calls);
}
