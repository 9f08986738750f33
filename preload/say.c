/*
 * Messages. The first process keeps a copy of its standard error, high and
 * close-on-exec, because programs close theirs before they end. Forked children
 * do not keep it: a daemon must be able to let go of its terminal or pipe.
 *
 * That a trace cannot be written where it should go is said once for a process and all its descendants:
 * whoever says it leaves an empty memory file open, high and inherited, by which they
 * know. Nothing is left open as long as there was nothing to say.
 */
#include "preload/raw.h"
#include "preload/say.h"
#include "preload/shim.h"

#include <fcntl.h>
#include <sys/stat.h>

static int copy_fd = -1;
static struct stat first; /* what standard error was at the start */
static bool known;

static bool is_first(int fd)
{
	struct stat st;

	return fd >= 0 && known && !raw(SYS_fstat, fd, &st) && st.st_dev == first.st_dev &&
	       st.st_ino == first.st_ino && st.st_rdev == first.st_rdev;
}

void say_start(void)
{
	known = !raw(SYS_fstat, 2, &first);
}

void say_keep(void)
{
	if (known && !shim_opt.quiet)
		copy_fd = shim_fd_high(2);
}

void say_after_fork(void)
{
	if (is_first(copy_fd))
		raw(SYS_close, copy_fd);
	copy_fd = -1;
}

static bool say(int level, const char *text)
{
	int fd = is_first(2) ? 2 : is_first(copy_fd) ? copy_fd : -1;
	TEXT(line, 2048);

	if (fd < 0 || shim_opt.quiet || (level > 0 && (unsigned)level > shim_opt.verbosity))
		return false;
	text_str(&line, "csched: ");
	text_str(&line, text);
	text_str(&line, "\n");
	/* A cut-off line still ends. */
	line.s[line.n - 1] = '\n';
	return raw(SYS_write, fd, line.s, line.n) > 0;
}

void shim_say(int level, const char *text)
{
	say(level, text);
}

/* ---- what the whole tree of processes need hear only once ---- */

#define MARK "csched-told"
#define MARK_PLACES 32 /* descriptors that are looked at */

static uint32_t told_by; /* pid of the process that left the mark, as far as this one knows */

static bool is_mark(int fd)
{
	static const char want[] = "/memfd:" MARK;
	char link[64];
	TEXT(name, 48);

	text_str(&name, "/proc/self/fd/");
	text_num(&name, fd);
	return raw(SYS_readlink, name.s, link, sizeof link) >= (long)sizeof want - 1 &&
	       !memcmp(link, want, sizeof want - 1);
}

static bool told_by_ancestor(void)
{
	int from = shim_fd_from();

	if (told_by == shim.pid)
		return false;
	for (int fd = from; fd < from + MARK_PLACES; fd++)
		if (is_mark(fd))
			return true;
	return false;
}

static void leave_mark(void)
{
	int from = shim_fd_from();

	/* Where descriptors are scarce the program needs them more. */
	if (told_by == shim.pid || from <= 3)
		return;
	long fd = raw(SYS_memfd_create, MARK, 0);

	if (raw_failed(fd))
		return;
	raw(SYS_fcntl, fd, F_DUPFD, from);
	raw(SYS_close, fd);
	told_by = shim.pid;
}

void say_in_tree(const char *text)
{
	if (shim_opt.quiet || told_by_ancestor())
		return;
	if (say(0, text))
		leave_mark();
}

void shim_note(bool degraded, const char *text)
{
	struct shim_thread *t = shim_self_known();
	size_t len = strlen(text), size = sizeof(struct trc_note) + len;
	uint64_t saved;

	rec_lock(&saved);
	struct trc_note *r = rec_process.dead ? NULL : rec_begin(&rec_process, size);

	if (r) {
		r->tsc = raw_tsc();
		r->thread = t ? t->index : 0;
		r->text_len = (uint32_t)len;
		memcpy(r->text, text, len);
		rec_commit(&rec_process, r, TRC_NOTE, degraded, size);
	}
	rec_unlock(&saved);
}

#define SAID_MAX 32
static uint64_t said[SAID_MAX]; /* checksums of texts */
static unsigned nsaid;

/* True: not yet in this process; it is noted in the trace then. */
static bool note_degraded(const char *text)
{
	uint64_t sum = trc_checksum(text, strlen(text)), saved;
	bool seen = false;

	rec_lock(&saved);
	for (unsigned i = 0; i < nsaid; i++)
		seen |= said[i] == sum;
	bool is_new = !seen && nsaid < SAID_MAX;

	if (is_new) {
		said[nsaid++] = sum;
		shim_note(true, text);
	}
	rec_unlock(&saved);
	return is_new;
}

void shim_degrade(const char *text)
{
	if (note_degraded(text))
		shim_say(0, text);
}

void say_degraded_tree(const char *text)
{
	if (note_degraded(text))
		say_in_tree(text);
}
