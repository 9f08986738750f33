/* What runs print: only the end keeps its room. */
#include "analyzer/hunt/files.h"
#include "tests/lib/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/tmp/csched-test.XXXXXX";

static struct stat state(void)
{
	struct stat st;

	stat(path, &st);
	return st;
}

int main(void)
{
	static char block[1 << 20];
	int fd = mkstemp(path);
	char end[9] = "";

	memset(block, 'x', sizeof block);
	CHECK(write(fd, block, sizeof block) == (ssize_t)sizeof block, "a little is written");
	struct stat before = state();
	files_thin_output(path);
	CHECK(state().st_blocks == before.st_blocks, "a little is kept as it is");
	for (int i = 0; i < 15; i++)
		CHECK(write(fd, block, sizeof block) == (ssize_t)sizeof block, "much is written");
	before = state();
	files_thin_output(path);
	CHECK(state().st_size == before.st_size, "the size stays");
	CHECK(state().st_blocks < before.st_blocks / 4, "the room is given back");
	CHECK(write(fd, "and more", 8) == 8 && pread(fd, end, 8, before.st_size) == 8 && !strcmp(end, "and more") &&
	      pread(fd, end, 8, before.st_size - 8) == 8 && !strcmp(end, "xxxxxxxx"), "the end is there, and it goes on behind it");
	close(fd);
	files_thin_output("/no/such/file");
	unlink(path);
	CHECK_END();
}
