/*
 * Access log (Apache 25520). A line is copied to the end of a buffer and the
 * count of bytes is moved on, without a lock: two requests write to the same
 * place, or the count loses one of them.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define SIZE 1024
#define LINES 10

struct buffered_log {
	unsigned outcnt;
	char outbuf[SIZE];
};

static struct buffered_log access_log;

static void log_writer(const char *line, unsigned len)
{
	if (access_log.outcnt + len > SIZE)				/* @look */
		return;
	memcpy(&access_log.outbuf[access_log.outcnt], line, len);	/* @copy */
	access_log.outcnt += len;					/* @count */
}

static void *requests(void *arg)
{
	char line[32];

	for (int i = 0; i < LINES; i++) {
		int len = snprintf(line, sizeof(line), "%s /%d\n", (char *)arg, i);

		log_writer(line, (unsigned)len);
	}
	return NULL;
}

int main(void)
{
	pthread_t a, b;
	int lines = 0;

	pthread_create(&a, NULL, requests, "GET");
	pthread_create(&b, NULL, requests, "PUT");
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	for (unsigned i = 0; i < access_log.outcnt; i++)
		lines += access_log.outbuf[i] == '\n';		/* @read */
	printf("lines %d\n", lines);
	fflush(stdout);
	assert(lines == 2 * LINES);				/* @audit */
	return 0;
}
