/*
 * Messages. The first process keeps a copy of its standard error, high and
 * close-on-exec, because programs close theirs before they end. Forked children
 * do not keep it: a daemon must be able to let go of its terminal or pipe.
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

void shim_say(int level, const char *text)
{
	int fd = is_first(2) ? 2 : is_first(copy_fd) ? copy_fd : -1;
	TEXT(line, 2048);

	if (fd < 0 || shim_opt.quiet || (level > 0 && (unsigned)level > shim_opt.verbosity))
		return;
	text_str(&line, "csched: ");
	text_str(&line, text);
	text_str(&line, "\n");
	/* A cut-off line still ends. */
	line.s[line.n - 1] = '\n';
	raw(SYS_write, fd, line.s, line.n);
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

void shim_degrade(const char *text)
{
	uint64_t sum = trc_checksum(text, strlen(text)), saved;
	bool seen = false;

	rec_lock(&saved);
	for (unsigned i = 0; i < nsaid; i++)
		seen |= said[i] == sum;
	if (!seen && nsaid < SAID_MAX) {
		said[nsaid++] = sum;
		shim_note(true, text);
		shim_say(0, text);
	}
	rec_unlock(&saved);
}
