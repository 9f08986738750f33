/*
 * The trace directory.
 *
 * One descriptor of it is kept, close-on-exec and high, where programs do not
 * expect theirs. Programs that close everything, or dup2 over it, are survived: before
 * each use the descriptor is compared with the directory's inode, and the
 * absolute path is the way back.
 *
 * It is made as NAME.PID.csched-new and gets its name when who, what and where are written, and
 * loses it again before it is removed: whatever is called NAME.PID.csched can be read, whenever the
 * process is killed.
 */
#include "preload/raw.h"
#include "preload/record/stream.h"
#include "preload/say.h"
#include "preload/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define DIR_PATH_MAX 4096
#define DIR_FD_WANTED 1000
#define DIR_TRIES 100 /* names tried when one exists: exec keeps the pid */

#define UNNAMED "-new"
static char path[DIR_PATH_MAX];
static size_t parent_len; /* of path: up to the last slash */
static bool named;
static int dir_fd = -1;
static struct stat dir_stat;

const char *rec_dir_path(void)
{
	return path;
}

int shim_fd_from(void)
{
	struct rlimit limit = { 0, 0 };
	unsigned long want = DIR_FD_WANTED;

	raw(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	if (want + 16 > limit.rlim_cur)
		want = limit.rlim_cur > 32 ? limit.rlim_cur - 16 : 3;
	return (int)want;
}

int shim_fd_high(int fd)
{
	return (int)raw(SYS_fcntl, fd, F_DUPFD_CLOEXEC, shim_fd_from());
}

static bool is_ours(int fd)
{
	struct stat st;

	return fd >= 0 && !raw(SYS_fstat, fd, &st) && st.st_ino == dir_stat.st_ino &&
	       st.st_dev == dir_stat.st_dev && (st.st_mode & S_IFMT) == S_IFDIR;
}

static int open_dir(void)
{
	long fd = raw_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (raw_failed(fd))
		return (int)fd;
	if (!is_ours((int)fd)) {
		raw(SYS_close, fd);
		return -ENOENT;
	}
	return (int)fd;
}

int rec_dir_open(const char *name, int flags)
{
	int fd = dir_fd;
	bool temporary = false;

	if (!path[0])
		return -ENOENT;
	if (!is_ours(fd)) {
		fd = open_dir();
		if (fd < 0)
			return fd;
		temporary = true;
	}
	long file = raw_open(fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (temporary)
		raw(SYS_close, fd);
	if (file == -EACCES || file == -EPERM) {
		int kept = held_open(name);

		return kept >= 0 ? kept : (int)file;
	}
	return (int)file;
}

void rec_dir_hand_over(uint32_t uid)
{
	if (path[0] && is_ours(dir_fd))
		held_take(dir_fd, uid);
}

/*
 * The program's name as a person would say it: the last part of argv[0]. Forked children have that of
 * the first process: by then a server may have written what it does over argv.
 */
static void program_name(struct raw_text *t)
{
	static char known[65];
	char buf[256];
	const char *name = buf;

	if (known[0]) {
		text_str(t, known);
		return;
	}
	if (rec_command_line(buf, sizeof buf) <= 0 &&
	    raw_slurp("/proc/self/comm", buf, sizeof buf) <= 0)
		buf[0] = 0;
	for (const char *p = buf; *p; p++)
		if (*p == '/' && p[1])
			name = p + 1;
	if (*name == '-')
		name++;
	size_t start = t->n;

	for (; *name && *name != '\n' && t->n - start < 64; name++) {
		char c = *name;

		if (c <= ' ' || c == '/' || c == 127)
			c = '_';
		text_strn(t, &c, 1);
	}
	if (t->n == start)
		text_str(t, "program");
	memcpy(known, t->s + start, t->n - start);
}

static bool parent_path(struct raw_text *t)
{
	if (shim_opt.dir[0] != '/') {
		long n = raw(SYS_getcwd, t->s, t->cap);

		/* The count includes the NUL; an unreachable directory has no '/' in front. */
		if (raw_failed(n) || t->s[0] != '/')
			return false;
		t->n = (size_t)n - 1;
	}
	if (shim_opt.dir[0]) {
		if (t->n && t->s[t->n - 1] != '/')
			text_str(t, "/");
		text_str(t, shim_opt.dir);
	}
	if (!t->n || t->s[t->n - 1] != '/')
		text_str(t, "/");
	return t->n < t->cap - 128;
}

/* The i-th name to try, behind the parent's path. */
static void compose(struct raw_text *t, int i, const char *tail)
{
	t->n = parent_len;
	program_name(t);
	text_str(t, ".");
	text_num(t, (int64_t)shim.pid);
	if (i > 1) {
		text_str(t, ".");
		text_num(t, i);
	}
	text_str(t, ".csched");
	text_str(t, tail);
}

static long make(struct raw_text *t)
{
	long err = -EEXIST;

	parent_len = t->n;
	for (int i = 1; i <= DIR_TRIES && err == -EEXIST; i++) {
		compose(t, i, UNNAMED);
		err = raw(SYS_mkdirat, AT_FDCWD, t->s, 0700);
	}
	return err;
}

/* Not every file system can refuse to replace; then a look has to do. */
static long rename_new(const char *from, const char *to)
{
	long err = raw(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);

	if (err != -EINVAL && err != -ENOSYS)
		return err;
	if (!raw(SYS_faccessat, AT_FDCWD, to, 0))
		return -EEXIST;
	return raw(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

static const char *why(long err)
{
	switch (-err) {
	case EACCES:
	case EPERM: return "permission denied";
	case EROFS: return "read-only file system";
	case ENOENT: return "no such directory";
	case ENOTDIR: return "not a directory";
	case ENOSPC:
	case EDQUOT: return "no space left";
	case ENAMETOOLONG: return "name too long";
	case EMFILE:
	case ENFILE: return "no file descriptor left";
	default: return "refused by the system";
	}
}

static bool refuse(long err)
{
	TEXT(line, 512);
	size_t len = strlen(path), tail = sizeof UNNAMED - 1;

	text_str(&line, "cannot make the trace directory ");
	if (len)
		text_strn(&line, path, len - tail);
	else
		text_str(&line, "(no current directory)");
	text_str(&line, ": ");
	text_str(&line, why(err));
	text_str(&line, "; the program runs on, not recorded");
	say_in_tree(line.s);
	path[0] = 0;
	return false;
}

bool rec_dir_create(void)
{
	struct raw_text t = { path, 0, sizeof path };

	path[0] = 0;
	named = false;
	if (!parent_path(&t)) {
		path[0] = 0;
		return refuse(-ENOENT);
	}
	long err = make(&t);

	if (err)
		return refuse(err);
	long fd = raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!raw_failed(fd))
		err = raw(SYS_fstat, fd, &dir_stat);
	if (raw_failed(fd) || err) {
		raw(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
		return refuse(raw_failed(fd) ? fd : err);
	}
	int high = shim_fd_high((int)fd);

	if (high >= 0)
		raw(SYS_close, fd);
	dir_fd = high >= 0 ? high : (int)fd;
	return true;
}

void rec_dir_forget(void)
{
	if (is_ours(dir_fd))
		raw(SYS_close, dir_fd);
	held_forget();
	dir_fd = -1;
	path[0] = 0;
}

/* Only files of ours are in it: everything goes, then the directory. */
static bool remove_entries(int fd)
{
	char buf[2048] __attribute__((aligned(8)));
	bool any = false;

	for (;;) {
		long n = raw(SYS_getdents64, fd, buf, sizeof buf);

		if (n <= 0)
			return any;
		for (long at = 0; at < n;) {
			uint16_t len;
			const char *name = buf + at + 19;

			memcpy(&len, buf + at + 16, sizeof len);
			if (name[0] != '.' && !raw(SYS_unlinkat, fd, name, 0))
				any = true;
			at += len;
		}
	}
}

void rec_dir_each(void (*fn)(int dir, const char *name, void *arg), void *arg)
{
	char buf[2048] __attribute__((aligned(8)));
	int fd = is_ours(dir_fd) ? dir_fd : path[0] ? open_dir() : -1;

	if (fd < 0)
		return;
	raw(SYS_lseek, fd, 0, 0);
	for (;;) {
		long n = raw(SYS_getdents64, fd, buf, sizeof buf);

		if (n <= 0)
			break;
		for (long at = 0; at < n;) {
			uint16_t len;

			memcpy(&len, buf + at + 16, sizeof len);
			fn(fd, buf + at + 19, arg);
			at += len;
		}
	}
	if (fd != dir_fd)
		raw(SYS_close, fd);
}

static char saved_as[DIR_PATH_MAX] RAW_LARGE; /* in the directory above */
static size_t saved_len;

static void saved_name(unsigned i, const char *tail)
{
	struct raw_text t = { saved_as, 0, sizeof saved_as };
	const char *name = path;
	size_t n;

	for (const char *p = path; *p; p++)
		if (*p == '/')
			name = p + 1;
	n = strlen(name);
	text_strn(&t, name, n > 7 ? n - 7 : n); /* ".csched" */
	text_str(&t, ".saved-");
	text_num(&t, i);
	text_str(&t, ".csched");
	saved_len = t.n;
	text_str(&t, tail);
}

static int above(void)
{
	int fd = rec_dir_fd();

	return fd < 0 ? -1 : (int)raw(SYS_openat, fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int rec_dir_save_begin(void)
{
	static unsigned saved;
	int up = above();
	long err = -EEXIST;

	if (up < 0)
		return -1;
	for (unsigned i = 0; i < DIR_TRIES && err == -EEXIST; i++) {
		saved_name(++saved, "");
		err = raw(SYS_faccessat, up, saved_as, 0) ? 0 : -EEXIST;
		saved_name(saved, UNNAMED);
		if (!err)
			err = raw(SYS_mkdirat, up, saved_as, 0700);
	}
	long fd = err ? -1 : raw(SYS_openat, up, saved_as, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	raw(SYS_close, up);
	return raw_failed(fd) ? -1 : (int)fd;
}

bool rec_dir_save_end(int dir)
{
	static char from[DIR_PATH_MAX] RAW_LARGE;
	int up = above();

	raw(SYS_close, dir);
	if (up < 0)
		return false;
	memcpy(from, saved_as, sizeof from);
	saved_as[saved_len] = 0;
	bool good = !raw(SYS_renameat, up, from, up, saved_as);

	raw(SYS_close, up);
	return good;
}

int rec_dir_fd(void)
{
	return path[0] && is_ours(dir_fd) ? dir_fd : -1;
}

bool rec_dir_rename(const char *from, const char *to)
{
	int fd = is_ours(dir_fd) ? dir_fd : path[0] ? open_dir() : -1;
	bool good = fd >= 0 && !raw(SYS_renameat, fd, from, fd, to);

	if (fd >= 0 && fd != dir_fd)
		raw(SYS_close, fd);
	return good;
}

bool rec_dir_unlink(const char *name)
{
	int fd = is_ours(dir_fd) ? dir_fd : path[0] ? open_dir() : -1;
	bool good = fd >= 0 && !raw(SYS_unlinkat, fd, name, 0);

	if (fd >= 0 && fd != dir_fd)
		raw(SYS_close, fd);
	return good;
}

/*
 * Another name first, see above. `name` in the directory `at`; returns what it is called now.
 * NULL: this user may not remove it. What cannot be removed as a whole is left as a whole.
 */
static const char *take_name(int at, const char *name)
{
	static char other[DIR_PATH_MAX] RAW_LARGE;
	struct raw_text t = { other, 0, sizeof other };

	if (!named)
		return name;
	text_str(&t, name);
	text_str(&t, UNNAMED);
	long err = raw(SYS_renameat, at, name, at, other);

	if (err == -EACCES || err == -EPERM)
		return NULL;
	return err ? name : other;
}

/*
 * Through the descriptor where it still stands: the program may have changed
 * its root. It is read itself, because there may be no further descriptor.
 */
static void remove_tree(void)
{
	const char *name = path;
	int fd = is_ours(dir_fd) ? dir_fd : open_dir();

	if (!path[0] || fd < 0)
		return;
	for (const char *p = path; *p; p++)
		if (*p == '/')
			name = p + 1;
	long parent = raw(SYS_openat, fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int at = raw_failed(parent) ? AT_FDCWD : (int)parent;

	name = take_name(at, raw_failed(parent) ? path : name);
	/* Again until nothing is left: unlinking while reading may skip names. */
	do
		raw(SYS_lseek, fd, 0, 0);
	while (name && remove_entries(fd));
	if (name)
		raw(SYS_unlinkat, at, name, AT_REMOVEDIR);
	raw(SYS_close, fd);
	dir_fd = -1;
	if (!raw_failed(parent))
		raw(SYS_close, parent);
}

void rec_dir_remove(void)
{
	remove_tree();
	path[0] = 0;
}

bool rec_dir_publish(void)
{
	static char name[DIR_PATH_MAX] RAW_LARGE;
	struct raw_text t = { name, 0, sizeof name };
	long err = -EEXIST;

	text_strn(&t, path, parent_len);
	for (int i = 1; i <= DIR_TRIES && err == -EEXIST; i++) {
		compose(&t, i, "");
		err = rename_new(path, name);
	}
	if (err) {
		remove_tree();
		return refuse(err);
	}
	memcpy(path, name, t.n + 1);
	named = true;
	return true;
}
