/*
 * A parallel bzip2 compressor: pbzip2 [-p CONSUMERS] [-b BLOCK_KB] INPUT [OUTPUT]
 *
 * main reads the input block by block into a queue, consumers compress, a writer
 * puts the blocks back into order. Without OUTPUT nothing is kept; in both cases
 * every block is decompressed again at the end and compared with the input.
 *
 * main waits for the writer before it deletes the queue, never for the
 * consumers: one of them may still be on its way back to the queue to learn that
 * there is no more work (pbzip2 0.9.4).
 */
#include <bzlib.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUEUE 8
#define MAX_CONSUMERS 64

struct block {
	long number;
	char *data;		/* owned by whoever holds the block */
	unsigned size;
};

struct queue {
	struct block *blocks[QUEUE];
	int head, tail, count;
	bool done;
	pthread_mutex_t *mut;
	pthread_cond_t *not_full, *not_empty;
};

/* Compressed blocks, by number. */
struct output {
	pthread_mutex_t mut;
	pthread_cond_t ready;
	struct block *blocks;
	long expected;
	int fd;
	long long written;
	bool failed;
};

static struct queue *fifo;
static struct output output = {
	.mut = PTHREAD_MUTEX_INITIALIZER,
	.ready = PTHREAD_COND_INITIALIZER,
	.fd = -1,
};

static struct queue *queue_new(void)
{
	struct queue *q = calloc(1, sizeof(*q));

	q->mut = malloc(sizeof(*q->mut));
	q->not_full = malloc(sizeof(*q->not_full));
	q->not_empty = malloc(sizeof(*q->not_empty));
	pthread_mutex_init(q->mut, NULL);
	pthread_cond_init(q->not_full, NULL);
	pthread_cond_init(q->not_empty, NULL);
	return q;
}

static void queue_delete(struct queue *q)
{
	pthread_mutex_destroy(q->mut);		/* @delete */
	free(q->mut);				/* @delete */
	q->mut = NULL;				/* @null */
	pthread_cond_destroy(q->not_full);	/* @delete */
	free(q->not_full);			/* @delete */
	q->not_full = NULL;			/* @delete */
	pthread_cond_destroy(q->not_empty);	/* @delete */
	free(q->not_empty);			/* @delete */
	q->not_empty = NULL;			/* @delete */
	free(q);				/* @delete */
}

static void queue_put(struct queue *q, struct block *block)
{
	pthread_mutex_lock(q->mut);
	while (q->count == QUEUE)
		pthread_cond_wait(q->not_full, q->mut);
	q->blocks[q->tail] = block;
	q->tail = (q->tail + 1) % QUEUE;
	q->count++;
	pthread_cond_signal(q->not_empty);
	pthread_mutex_unlock(q->mut);
}

static struct block *queue_get(struct queue *q)
{
	struct block *block = q->blocks[q->head];

	q->head = (q->head + 1) % QUEUE;
	q->count--;
	return block;
}

static void deliver(struct block *block)
{
	pthread_mutex_lock(&output.mut);
	output.blocks[block->number] = *block;
	pthread_cond_signal(&output.ready);
	pthread_mutex_unlock(&output.mut);
}

static void compress_block(struct block *block)
{
	unsigned size = block->size + block->size / 100 + 600;
	char *data = malloc(size);

	if (BZ2_bzBuffToBuffCompress(data, &size, block->data, block->size, 1, 0, 30) != BZ_OK) {
		fprintf(stderr, "pbzip2: block %ld cannot be compressed\n", block->number);
		exit(1);
	}
	free(block->data);
	block->data = data;
	block->size = size;
}

static void *consumer(void *arg)
{
	(void)arg;
	for (;;) {
		struct block *block;

		pthread_mutex_lock(fifo->mut);			/* @lock */
		while (fifo->count == 0) {			/* @look */
			if (fifo->done) {			/* @look */
				pthread_mutex_unlock(fifo->mut);	/* @unlock */
				return NULL;
			}
			pthread_cond_wait(fifo->not_empty, fifo->mut);	/* @wait */
		}
		block = queue_get(fifo);
		pthread_cond_signal(fifo->not_full);
		pthread_mutex_unlock(fifo->mut);

		compress_block(block);
		deliver(block);
		free(block);
	}
}

static void *writer(void *arg)
{
	(void)arg;
	for (long n = 0; n < output.expected; n++) {
		struct block block;

		pthread_mutex_lock(&output.mut);
		while (!output.blocks[n].data)
			pthread_cond_wait(&output.ready, &output.mut);
		block = output.blocks[n];
		pthread_mutex_unlock(&output.mut);
		if (output.fd >= 0 && write(output.fd, block.data, block.size) != block.size)
			output.failed = true;
		output.written += block.size;
	}
	return NULL;
}

/* Reads the input into the queue; false: it could not be read. */
static bool produce(int fd, unsigned block_size)
{
	for (long n = 0; n < output.expected; n++) {
		struct block *block = malloc(sizeof(*block));
		ssize_t got;

		block->number = n;
		block->data = malloc(block_size);
		got = pread(fd, block->data, block_size, n * (off_t)block_size);
		if (got <= 0)
			return false;
		block->size = got;
		queue_put(fifo, block);
	}
	pthread_mutex_lock(fifo->mut);
	fifo->done = true;
	pthread_cond_broadcast(fifo->not_empty);
	pthread_mutex_unlock(fifo->mut);
	return true;
}

/* Decompresses every block and compares it with the input. */
static bool verify(int fd, unsigned block_size)
{
	char *original = malloc(block_size), *again = malloc(block_size);
	bool same = true;

	for (long n = 0; same && n < output.expected; n++) {
		struct block *block = &output.blocks[n];
		ssize_t got = pread(fd, original, block_size, n * (off_t)block_size);
		unsigned size = block_size;

		same = got > 0 &&
		       BZ2_bzBuffToBuffDecompress(again, &size, block->data, block->size, 0, 0) == BZ_OK &&
		       size == got && memcmp(original, again, size) == 0;
		free(block->data);
	}
	free(original);
	free(again);
	free(output.blocks);
	return same;
}

static int compress_file(int fd, long long size, unsigned block_size, int consumers)
{
	pthread_t write_thread, thread;

	output.expected = (size + block_size - 1) / block_size;
	output.blocks = calloc(output.expected + 1, sizeof(*output.blocks));
	fifo = queue_new();
	pthread_create(&write_thread, NULL, writer, NULL);
	for (int i = 0; i < consumers; i++) {
		pthread_create(&thread, NULL, consumer, NULL);
		pthread_detach(thread);
	}
	if (!produce(fd, block_size)) {
		perror("pbzip2: read");
		return 1;
	}
	pthread_join(write_thread, NULL);
	queue_delete(fifo);
	fifo = NULL;					/* @null */

	if (!verify(fd, block_size) || output.failed) {
		fprintf(stderr, "pbzip2: the output is not what went in\n");
		return 1;
	}
	printf("%lld bytes in %ld blocks: %lld bytes\n", size, output.expected, output.written);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned block_size = 100 * 1000;
	int consumers = 7, opt, fd;
	struct stat st;

	while ((opt = getopt(argc, argv, "p:b:")) != -1) {
		if (opt == 'p')
			consumers = atoi(optarg);
		else if (opt == 'b')
			block_size = atoi(optarg) * 1000;
		else
			optind = argc + 1;
	}
	if (optind >= argc || consumers < 1 || consumers > MAX_CONSUMERS || !block_size) {
		fprintf(stderr, "usage: %s [-p CONSUMERS] [-b BLOCK_KB] INPUT [OUTPUT]\n", argv[0]);
		return 2;
	}
	fd = open(argv[optind], O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0) {
		perror(argv[optind]);
		return 1;
	}
	if (optind + 1 < argc) {
		output.fd = open(argv[optind + 1], O_WRONLY | O_CREAT | O_TRUNC, 0666);
		if (output.fd < 0) {
			perror(argv[optind + 1]);
			return 1;
		}
	}
	return compress_file(fd, st.st_size, block_size, consumers);
}
