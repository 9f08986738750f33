/*
 * A file is replaced by a new one: the old one goes, the new one gets its name. Who opens it in between finds nothing. The
 * threads share no memory; only what their system calls do to names tells them apart.
 */
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char name[64], temporary[80];

static void put(const char *text, const char *to)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd >= 0 && write(fd, text, strlen(text)) > 0)
		close(fd);
}

static void *replace(void *arg)
{
	put("new", temporary);
	unlink(name);
	rename(temporary, name);
	return arg;
}

static void *look(void *arg)
{
	int fd = open(name, O_RDONLY);

	if (fd < 0) {
		unlink(temporary);
		assert(!"the file is there");
	}
	close(fd);
	return arg;
}

int main(void)
{
	pthread_t t[2];

	snprintf(name, sizeof name, "renamed.%d", getpid());
	snprintf(temporary, sizeof temporary, "%s.new", name);
	put("old", name);
	pthread_create(&t[0], NULL, replace, NULL);
	pthread_create(&t[1], NULL, look, NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	unlink(name);
	return 0;
}
