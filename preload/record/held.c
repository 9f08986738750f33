/*
 * Servers start as root and go on as somebody who may not open what root made.
 * Before a process changes its user, the directory is given to the new one, who then can add
 * files to it; those that are there stay with the old owner (they hold memory from before)
 * and are kept open, high and close-on-exec, because streams open their file whenever it grows.
 */
#include "preload/raw.h"
#include "preload/record/stream.h"
#include "preload/shim.h"

#include <fcntl.h>
#include <sys/stat.h>

#define HELD_MAX 64 /* files; streams beyond stop growing, and it is said */
#define HELD_NAME 24

static struct held {
	char name[HELD_NAME];
	int fd;
	struct stat st;
} held[HELD_MAX] RAW_LARGE;
static unsigned nheld;

static bool is_same(const struct held *h)
{
	struct stat st;

	return !raw(SYS_fstat, h->fd, &st) && st.st_ino == h->st.st_ino && st.st_dev == h->st.st_dev;
}

static const struct held *find(const char *name)
{
	for (unsigned i = 0; i < nheld; i++)
		if (!strcmp(held[i].name, name))
			return is_same(&held[i]) ? &held[i] : NULL;
	return NULL;
}

static void hold(int dir, const char *name)
{
	struct held *h = &held[nheld];
	size_t len = strlen(name);

	if (nheld == HELD_MAX || len >= HELD_NAME || find(name))
		return;
	long fd = raw(SYS_openat, dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (raw_failed(fd))
		return;
	h->fd = shim_fd_high((int)fd);
	raw(SYS_close, fd);
	if (h->fd < 0 || raw(SYS_fstat, h->fd, &h->st))
		return;
	memcpy(h->name, name, len + 1);
	nheld++;
}

void held_take(int dir, uint32_t uid)
{
	char buf[2048] __attribute__((aligned(8)));

	if (raw(SYS_geteuid) == (long)uid || raw(SYS_fchown, dir, uid, -1))
		return;
	raw(SYS_lseek, dir, 0, 0);
	for (;;) {
		long n = raw(SYS_getdents64, dir, buf, sizeof buf);

		if (n <= 0)
			return;
		for (long at = 0; at < n;) {
			uint16_t len;
			const char *name = buf + at + 19;

			memcpy(&len, buf + at + 16, sizeof len);
			if (name[0] != '.')
				hold(dir, name);
			at += len;
		}
	}
}

int held_open(const char *name)
{
	const struct held *h = find(name);

	return h ? (int)raw(SYS_fcntl, h->fd, F_DUPFD_CLOEXEC, 0) : -1;
}

void held_forget(void)
{
	while (nheld)
		if (is_same(&held[--nheld]))
			raw(SYS_close, held[nheld].fd);
}
