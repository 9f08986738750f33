/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the program reads about its own memory: the list of mappings without ours. Crash handlers test all memory that the
 * list says is writable (redis), garbage collectors scan it: neither must find our code cache there.
 */
#include "preload/maps.h"
#include "preload/translate/syscall.h"

#include <fcntl.h>
#include <sys/mman.h>

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

#define NAME_MAX_ 64 /* longer names are of other files */

static bool skip(const char **p, const char *what)
{
	size_t n = strlen(what);

	if (memcmp(*p, what, n))
		return false;
	*p += n;
	return true;
}

/* "self", "thread-self", our own number, or that of one of our threads. */
static bool skip_own(const char **p)
{
	uint32_t n = 0;

	if (skip(p, "self") || skip(p, "thread-self"))
		return true;
	if (**p < '1' || **p > '9')
		return false;
	for (; **p >= '0' && **p <= '9'; (*p)++)
		n = 10 * n + (uint32_t)(**p - '0');
	return n == shim.pid || shim_thread_by_tid(n);
}

static bool is_own_maps(uint64_t at)
{
	char name[NAME_MAX_ + 32] = { 0 };
	const char *p = name;
	size_t n = 0;

	while (n < NAME_MAX_ && tr_copy(name + n, (const char *)at + n, 1) && name[n])
		n++;
	if (n == NAME_MAX_ || !skip(&p, "/proc/") || !skip_own(&p) ||
	    (skip(&p, "/task/") && !skip_own(&p)))
		return false;
	return skip(&p, "/maps") && !*p;
}

static uint64_t hex(const char **p)
{
	uint64_t v = 0;

	for (; (**p >= '0' && **p <= '9') || (**p >= 'a' && **p <= 'f'); (*p)++)
		v = v << 4 | (uint64_t)(**p <= '9' ? **p - '0' : **p - 'a' + 10);
	return v;
}

static void digits(struct raw_text *t, uint64_t v)
{
	unsigned n = 8; /* as the kernel: eight at least */

	while (n < 16 && v >> 4 * n)
		n++;
	while (n--)
		text_strn(t, &"0123456789abcdef"[v >> 4 * n & 15], 1);
}

struct view {
	int fd;
};

static void put(const struct view *view, uint64_t from, uint64_t to, const char *rest)
{
	TEXT(t, MAPS_BUFFER);

	digits(&t, from);
	text_str(&t, "-");
	digits(&t, to);
	text_str(&t, rest);
	text_str(&t, "\n");
	raw(SYS_write, view->fd, t.s, t.n);
}

static void one_mapping(char *line, void *arg)
{
	const struct view *view = arg;
	const char *p = line;
	uint64_t at = hex(&p), end = (p++, hex(&p));
	const char *name = p, *dir = rec_dir_path();
	size_t n = strlen(dir);

	for (unsigned fields = 0; *name && fields < 5; name++)
		fields += *name == ' ' && name[1] != ' ';
	if (n && !memcmp(name, dir, n < strlen(name) ? n : strlen(name) + 1))
		return;
	while (at < end) {
		uint64_t own_end = 0, own = tr_owned_next(at, &own_end);
		uint64_t shim = (uint64_t)__ehdr_start & ~(RAW_PAGE - 1),
			 shim_end = ((uint64_t)_end + RAW_PAGE - 1) & ~(RAW_PAGE - 1);

		if (at < shim_end && shim < own)
			own = shim > at ? shim : at, own_end = shim_end;
		uint64_t stop = tr_min(own, end);

		if (stop > at)
			put(view, at, stop, p);
		at = own < end ? own_end : end;
	}
}

/* After an open that succeeded: another file in its place, if it is our list of mappings. */
void call_view(struct call *k)
{
	static char buf[MAPS_BUFFER] RAW_LARGE;
	unsigned arg = k->nr == SYS_open ? 0 : 1;
	uint64_t flags = k->nr == SYS_open ? k->args[1] : k->args[2];

	if (k->result < 0 || k->nr == SYS_openat2 || !is_own_maps(k->args[arg]))
		return;
	struct view view = { (int)raw(SYS_memfd_create, "maps", 1 /* MFD_CLOEXEC */) };

	if (view.fd < 0)
		return;
	tr_lock();
	bool whole = maps_read(buf, one_mapping, &view);
	tr_unlock();
	raw(SYS_lseek, view.fd, 0, 0);
	if (whole)
		raw(SYS_dup3, view.fd, k->result, flags & O_CLOEXEC);
	raw(SYS_close, view.fd);
}
