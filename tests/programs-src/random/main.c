/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * random SEED [OPERATIONS]: a program of random system calls. What it prints depends on the seed
 * alone: results, errors and contents, never addresses, process numbers or times; threads and
 * children meet again before anything depends on them.
 */
#include "random.h"

#include <stdarg.h>
#include <sys/stat.h>

unsigned char buffer[4 * PAGE];
static uint64_t state;

unsigned rnd(unsigned n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return n ? (unsigned)(state >> 33) % n : 0;
}

bool chance(unsigned percent)
{
	return rnd(100) < percent;
}

unsigned checksum(const void *p, size_t n)
{
	const unsigned char *b = p;
	unsigned s = 5381;

	while (n--)
		s = s * 33 + *b++;
	return s;
}

void fill_random(void *p, size_t n)
{
	unsigned char *b = p;

	while (n--)
		*b++ = (unsigned char)rnd(256);
}

void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

void result(const char *what, long r)
{
	const char *error = r == -1 && errno ? strerrorname_np(errno) : "";

	say("%.40s = %ld %s", what, r, error ? error : "?");
}

static const struct {
	void (*run)(void);
	unsigned weight;
} ops[] = {
    {op_file, 22},   {op_name, 8},    {op_pipe, 8},    {op_socket, 10}, {op_event, 5},
    {op_memory, 16}, {op_access, 14}, {op_signal, 10}, {op_mask, 8},	{op_jump, 3},
    {op_thread, 3},  {op_child, 2},   {op_misc, 6},    {op_error, 5},
};

int main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 200, total = 0;
	char dir[64];

	state = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 2 + 1;
	for (int i = 0; i < 10; i++)
		rnd(2);
	snprintf(dir, sizeof dir, "random.%d", (int)getpid());
	umask(022);
	if (mkdir(dir, 0700) || chdir(dir))
		return 2;
	signals_begin();
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		total += ops[i].weight;
	while (n--) {
		unsigned at = rnd(total);
		size_t i = 0;

		while (at >= ops[i].weight)
			at -= ops[i++].weight;
		ops[i].run();
	}
	files_end();
	if (chdir("..") || rmdir(dir))
		say("the directory is not empty");
	fflush(stdout);
	if (chance(20)) {
		signal(SIGTERM, SIG_DFL);
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		raise(SIGTERM);
	}
	return (int)rnd(100);
}
