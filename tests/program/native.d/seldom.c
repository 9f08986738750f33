/* Fails in its first run, and in one run much later: in which one it is, it reads off the length of a file. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = open("runs", O_WRONLY | O_CREAT | O_APPEND, 0644);

	if (argc != 2 || fd < 0 || write(fd, "r", 1) != 1)
		return 2;
	long runs = (long)lseek(fd, 0, SEEK_END);
	assert(runs != 1 && runs != atol(argv[1]));
	return 0;
}
