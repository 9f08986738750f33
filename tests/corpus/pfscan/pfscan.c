/*
 * A parallel file scanner: pfscan STRING DIRECTORY...
 *
 * main walks the directories and puts every regular file on a bounded queue;
 * workers take files off it and count where the string occurs. Waiting for work
 * and taking it are two calls, each locked for itself: two workers can both be
 * told that there is work when one item is left.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKERS 4
#define QUEUE 16

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t more, less;
	char *paths[QUEUE];
	int in, out;
	int filled;
	bool closed;
};

struct totals {
	pthread_mutex_t lock;
	long files, bytes, matches, errors;
};

static struct queue queue = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.more = PTHREAD_COND_INITIALIZER,
	.less = PTHREAD_COND_INITIALIZER,
};
static struct totals totals = {.lock = PTHREAD_MUTEX_INITIALIZER};
static const char *needle;
static size_t needle_len;
static size_t skip[256];

static void queue_put(struct queue *q, char *path)
{
	pthread_mutex_lock(&q->lock);			/* @lock */
	while (q->filled == QUEUE)
		pthread_cond_wait(&q->less, &q->lock);	/* @lock */
	q->paths[q->in] = path;
	q->in = (q->in + 1) % QUEUE;
	q->filled++;					/* @put */
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);			/* @unlock */
}

static void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->more);
	pthread_mutex_unlock(&q->lock);
}

/* Waits for work; false: the queue is closed and empty. */
static bool queue_wait(struct queue *q)
{
	bool work;

	pthread_mutex_lock(&q->lock);			/* @lock */
	while (q->filled == 0 && !q->closed)		/* @check */
		pthread_cond_wait(&q->more, &q->lock);	/* @lock */
	work = q->filled > 0;				/* @check2 */
	pthread_mutex_unlock(&q->lock);			/* @unlock */
	return work;
}

static char *queue_take(struct queue *q)
{
	char *path;

	pthread_mutex_lock(&q->lock);			/* @lock */
	assert(q->filled > 0);				/* @use */
	path = q->paths[q->out];
	q->paths[q->out] = NULL;
	q->out = (q->out + 1) % QUEUE;
	q->filled--;					/* @take */
	pthread_cond_signal(&q->less);
	pthread_mutex_unlock(&q->lock);			/* @unlock */
	return path;
}

/* Horspool's search: how far the window may move is looked up by its last byte. */
static void prepare(const char *string)
{
	needle = string;
	needle_len = strlen(string);
	for (int i = 0; i < 256; i++)
		skip[i] = needle_len;
	for (size_t i = 0; i + 1 < needle_len; i++)
		skip[(unsigned char)needle[i]] = needle_len - 1 - i;
}

static long count(const unsigned char *text, size_t len)
{
	size_t at = 0;
	long found = 0;

	while (at + needle_len <= len) {
		if (memcmp(text + at, needle, needle_len) == 0)
			found++;
		at += skip[text[at + needle_len - 1]];
	}
	return found;
}

/* The number of matches, or -1 with errno set. */
static long scan(const char *path, long *bytes)
{
	struct stat st;
	void *text;
	long found = 0;
	int fd = open(path, O_RDONLY | O_NOFOLLOW);

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0) {
		close(fd);
		return -1;
	}
	*bytes = st.st_size;
	if (st.st_size > 0) {
		text = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (text == MAP_FAILED) {
			close(fd);
			return -1;
		}
		found = count(text, st.st_size);
		munmap(text, st.st_size);
	}
	close(fd);
	return found;
}

static void *worker(void *arg)
{
	(void)arg;
	while (queue_wait(&queue)) {			/* @asks */
		char *path = queue_take(&queue);	/* @gets */
		long bytes = 0, found = scan(path, &bytes);

		pthread_mutex_lock(&totals.lock);
		totals.files++;
		totals.bytes += bytes;
		if (found < 0)
			totals.errors++;
		else
			totals.matches += found;
		pthread_mutex_unlock(&totals.lock);
		free(path);
	}
	return NULL;
}

static void walk(const char *path)
{
	struct dirent *entry;
	struct stat st;
	DIR *dir;
	char *child;

	if (lstat(path, &st) < 0)
		return;
	if (S_ISREG(st.st_mode)) {
		queue_put(&queue, strdup(path));
		return;
	}
	if (!S_ISDIR(st.st_mode))
		return;
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (asprintf(&child, "%s/%s", path, entry->d_name) < 0)
			break;
		walk(child);
		free(child);
	}
	closedir(dir);
}

int main(int argc, char **argv)
{
	pthread_t workers[WORKERS];

	if (argc < 3 || !argv[1][0]) {
		fprintf(stderr, "usage: %s STRING DIRECTORY...\n", argv[0]);
		return 2;
	}
	prepare(argv[1]);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&workers[i], NULL, worker, NULL);
	for (int i = 2; i < argc; i++)
		walk(argv[i]);
	queue_close(&queue);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	printf("%ld files, %ld bytes, %ld matches, %ld errors\n",
	       totals.files, totals.bytes, totals.matches, totals.errors);
	return 0;
}
