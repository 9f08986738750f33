/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that are created where somebody prepared the place: nothing else is written to, nothing half is left. */
#include "common/newfile.h"
#include "common/vec.h"
#include "tests/lib/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/csched-newfile.XXXXXX";

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
}

static bool holds(const char *path, const char *text)
{
	char buf[200] = "";
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(buf, 1, sizeof buf - 1, f) : 0;

	if (f)
		fclose(f);
	return f && n == strlen(text) && !strcmp(buf, text);
}

static bool is_link(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISLNK(st.st_mode);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_mode & 0777;
}

static size_t entries(void)
{
	DIR *d = opendir(".");
	size_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static err_t hello(FILE *f, void *arg)
{
	(void)arg;
	fputs("hello\n", f);
	return NULL;
}

static err_t refuses(FILE *f, void *arg)
{
	(void)arg;
	fputs("half", f);
	return err_new(ERR_NOANSWER, "no");
}

static bool written(const char *path, enum newfile_name named)
{
	err_t e = newfile_write(path, named, 0666, hello, NULL);
	bool good = !e;

	err_free(e);
	return good;
}

static void links(enum newfile_name named)
{
	const char *kind = named == NEWFILE_GIVEN ? "given" : "derived";

	put("victim", "mine");
	symlink("victim", "link");
	CHECK(written("link", named) && !is_link("link") && holds("link", "hello\n") && holds("victim", "mine"),
	      "%s: a symbolic link is replaced, what it led to stays", kind);
	symlink("nothing", "dangling");
	CHECK(written("dangling", named) && !is_link("dangling") && access("nothing", F_OK),
	      "%s: nor is anything made at the end of a dangling one", kind);
	link("victim", "hard");
	CHECK(written("hard", named) && holds("hard", "hello\n") && holds("victim", "mine"), "%s: a hard link, too", kind);
	unlink("link");
	unlink("dangling");
	unlink("hard");
	unlink("victim");
}

static void leaves_nothing(void)
{
	put("old", "old");
	size_t before = entries();
	err_t e = newfile_write("old", NEWFILE_DERIVED, 0666, refuses, NULL);

	CHECK(e && e->code == ERR_NOANSWER && holds("old", "old") && entries() == before,
	      "a file that is not to be leaves nothing, and what was there stays");
	err_free(e);
	unlink("old");
	mkdir("sub", 0777);
	e = newfile_write("sub", NEWFILE_GIVEN, 0666, hello, NULL);
	CHECK(e && e->code == ERR_INPUT && strstr(e->msg, "directory"), "a directory is none");
	err_free(e);
	rmdir("sub");
	e = newfile_write("missing/x", NEWFILE_GIVEN, 0666, hello, NULL);
	CHECK(e && strstr(e->msg, "missing/x"), "a directory that is not there is named");
	err_free(e);
}

static void devices(void)
{
	struct newfile n;
	struct stat st;
	int both[2];

	CHECK(written("/dev/null", NEWFILE_GIVEN) && !stat("/dev/null", &st) && S_ISCHR(st.st_mode),
	      "a device the user names is written to");
	CHECK(!pipe(both), "a pipe");
	char *name = xasprintf("/dev/fd/%d", both[1]), buf[10] = "";
	CHECK(written(name, NEWFILE_GIVEN) && read(both[0], buf, 9) == 6 && !strcmp(buf, "hello\n"),
	      "and so is a pipe under its name in /dev/fd");
	free(name);
	int fd = open("plain", O_RDWR | O_CREAT, 0600);
	name = xasprintf("/dev/fd/%d", fd);
	CHECK(written(name, NEWFILE_GIVEN) && holds("plain", "hello\n"), "or a file that was opened before");
	free(name);
	close(fd);
	unlink("plain");
	mkfifo("fifo", 0666);
	err_t e = newfile_open(&n, "fifo", NEWFILE_DERIVED, 0666);
	CHECK(!e && !newfile_keep(&n) && !lstat("fifo", &st) && S_ISREG(st.st_mode),
	      "where we chose the name a fifo is replaced, not waited for");
	unlink("fifo");
}

static void modes(void)
{
	umask(022);
	CHECK(written("new", NEWFILE_GIVEN) && mode_of("new") == 0644, "a new file has the usual mode");
	chmod("new", 0600);
	CHECK(written("new", NEWFILE_GIVEN) && mode_of("new") == 0600, "one that only its owner may read stays so");
	unlink("new");
}

static void reading(void)
{
	put("file", "x");
	symlink("file", "link");
	mkfifo("fifo", 0666);
	int plain = newfile_open_regular(AT_FDCWD, "file", false), through = newfile_open_regular(AT_FDCWD, "link", true);

	CHECK(plain >= 0 && through >= 0, "a regular file is opened, through a link where that is asked for");
	CHECK(newfile_open_regular(AT_FDCWD, "link", false) < 0 && errno == ELOOP, "and not where it is not");
	CHECK(newfile_open_regular(AT_FDCWD, "fifo", true) < 0 && errno == EINVAL, "a fifo is not");
	CHECK(newfile_open_regular(AT_FDCWD, "/dev/zero", true) < 0 && errno == EINVAL, "nor a device");
	CHECK(newfile_open_regular(AT_FDCWD, ".", true) < 0 && errno == EISDIR, "nor a directory");
	close(plain);
	close(through);
	unlink("file");
	unlink("link");
	unlink("fifo");
}

int main(void)
{
	if (!mkdtemp(dir) || chdir(dir))
		return 1;
	links(NEWFILE_GIVEN);
	links(NEWFILE_DERIVED);
	leaves_nothing();
	devices();
	modes();
	reading();
	CHECK(entries() == 0, "nothing is left behind");
	if (chdir("/"))
		return 1;
	rmdir(dir);
	CHECK_END();
}
