/*
 * A multi-threaded key-value server: kvserver [CLIENTS] [REQUESTS]
 *
 * Serves GET, SET, DEL, INCR and STATS over TCP on a free port of the loopback
 * interface. main accepts connections, workers serve them, one at a time each.
 * The load comes from a child process, client.c, in the same program: CLIENTS
 * connections with REQUESTS requests each. When they are done it says STOP.
 *
 * Values are reference counted so that a GET can send one without holding the
 * bucket's lock. The one bug: GET takes its reference after it has let go of the
 * lock, and a SET of the same key can drop the last one in between.
 */
#include "client.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 4
#define BUCKETS 64
#define PENDING 64
#define KEY_MAX 63
#define VALUE_MAX 4096

struct value {
	size_t len;
	uint64_t checksum;
	atomic_int refs;
	char data[];
};

struct entry {
	struct entry *next;
	struct value *value;	/* holds one reference */
	char key[KEY_MAX + 1];
};

struct bucket {
	pthread_mutex_t lock;
	struct entry *entries;
};

struct conn {
	int fd;
	size_t at, end;		/* unread part of in[] */
	char in[8192];
};

/* Connections accepted and not yet served. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	int fds[PENDING];
	int count;
	bool stop;
} pending = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static struct bucket store[BUCKETS];
static atomic_long gets, sets, others;
static int listener;

/* ---- values ---- */

static uint64_t checksum(const char *data, size_t len)
{
	uint64_t sum = 14695981039346656037u;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ (unsigned char)data[i]) * 1099511628211u;
	return sum;
}

static struct value *value_new(const char *data, size_t len)
{
	struct value *v = malloc(sizeof(*v) + len);

	v->len = len;
	memcpy(v->data, data, len);
	v->checksum = checksum(data, len);
	atomic_init(&v->refs, 1);			/* @new */
	return v;
}

static void value_get(struct value *v)
{
	int refs = atomic_fetch_add(&v->refs, 1);	/* @get */

	assert(refs > 0);				/* @use */
}

static void value_put(struct value *v)
{
	int refs = atomic_fetch_sub(&v->refs, 1);	/* @put */

	assert(refs > 0);				/* @use2 */
	if (refs == 1)
		free(v);				/* @free */
}

/* ---- the store ---- */

static struct bucket *bucket_of(const char *key)
{
	return &store[checksum(key, strlen(key)) % BUCKETS];
}

static struct entry **find(struct bucket *b, const char *key)
{
	struct entry **at = &b->entries;

	while (*at && strcmp((*at)->key, key) != 0)
		at = &(*at)->next;
	return at;
}

/* A reference to the key's value, or NULL. */
static struct value *store_get(const char *key)
{
	struct bucket *b = bucket_of(key);
	struct value *v = NULL;
	struct entry *e;

	pthread_mutex_lock(&b->lock);			/* @lock */
	e = *find(b, key);				/* @find */
	if (e)
		v = e->value;				/* @fetch */
	pthread_mutex_unlock(&b->lock);			/* @unlock */
	if (v)
		value_get(v);
	return v;
}

/* Takes over the caller's reference to the value. */
static void store_set(const char *key, struct value *v)
{
	struct bucket *b = bucket_of(key);
	struct value *old = NULL;
	struct entry **at;

	pthread_mutex_lock(&b->lock);			/* @lock */
	at = find(b, key);
	if (*at) {
		old = (*at)->value;
		(*at)->value = v;			/* @replace */
	} else {
		*at = calloc(1, sizeof(**at));
		strcpy((*at)->key, key);
		(*at)->value = v;
	}
	pthread_mutex_unlock(&b->lock);			/* @unlock */
	if (old)
		value_put(old);
}

static bool store_del(const char *key)
{
	struct bucket *b = bucket_of(key);
	struct entry **at, *gone;

	pthread_mutex_lock(&b->lock);			/* @lock */
	at = find(b, key);
	gone = *at;
	if (gone)
		*at = gone->next;			/* @remove */
	pthread_mutex_unlock(&b->lock);			/* @unlock */
	if (!gone)
		return false;
	value_put(gone->value);
	free(gone);
	return true;
}

static long store_incr(const char *key)
{
	struct bucket *b = bucket_of(key);
	struct value *old = NULL, *v;
	struct entry **at;
	char text[32] = "0";
	long n;

	pthread_mutex_lock(&b->lock);			/* @lock */
	at = find(b, key);
	if (*at) {
		old = (*at)->value;
		memcpy(text, old->data, old->len < 31 ? old->len : 31);
		text[old->len < 31 ? old->len : 31] = 0;
	} else {
		*at = calloc(1, sizeof(**at));
		strcpy((*at)->key, key);
	}
	n = strtol(text, NULL, 10) + 1;
	snprintf(text, sizeof(text), "%ld", n);
	v = value_new(text, strlen(text));
	(*at)->value = v;				/* @replace2 */
	pthread_mutex_unlock(&b->lock);			/* @unlock */
	if (old)
		value_put(old);
	return n;
}

static void store_clear(void)
{
	for (int i = 0; i < BUCKETS; i++) {
		while (store[i].entries) {
			struct entry *e = store[i].entries;

			store[i].entries = e->next;
			value_put(e->value);
			free(e);
		}
		pthread_mutex_destroy(&store[i].lock);
	}
}

/* ---- one connection ---- */

static bool fill(struct conn *c)
{
	ssize_t n;

	if (c->at > 0) {
		memmove(c->in, c->in + c->at, c->end - c->at);
		c->end -= c->at;
		c->at = 0;
	}
	if (c->end == sizeof(c->in))
		return false;
	do
		n = read(c->fd, c->in + c->end, sizeof(c->in) - c->end);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	c->end += n;
	return true;
}

/* The next line, without its newline, or NULL at the end. */
static char *read_line(struct conn *c)
{
	char *line, *nl;

	while (!(nl = memchr(c->in + c->at, '\n', c->end - c->at)))
		if (!fill(c))
			return NULL;
	*nl = 0;
	line = c->in + c->at;
	c->at = nl + 1 - c->in;
	return line;
}

static bool reply(struct conn *c, const char *format, ...)
{
	char text[128];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return send(c->fd, text, n, MSG_NOSIGNAL) == n;
}

static bool do_get(struct conn *c, const char *key)
{
	char out[64 + VALUE_MAX];
	struct value *v = store_get(key);
	bool sent;
	int n;

	atomic_fetch_add(&gets, 1);
	if (!v)
		return reply(c, "NONE\n");
	n = snprintf(out, 64, "VALUE %zu\n", v->len);
	memcpy(out + n, v->data, v->len);
	sent = send(c->fd, out, n + v->len, MSG_NOSIGNAL) == (ssize_t)(n + v->len);
	value_put(v);
	return sent;
}

static bool do_set(struct conn *c, const char *key, size_t len)
{
	if (len > VALUE_MAX)
		return false;
	while (c->end - c->at < len)
		if (!fill(c))
			return false;
	store_set(key, value_new(c->in + c->at, len));
	c->at += len;
	atomic_fetch_add(&sets, 1);
	return reply(c, "STORED\n");
}

static void stop_all(void)
{
	pthread_mutex_lock(&pending.lock);
	pending.stop = true;
	pthread_cond_broadcast(&pending.more);
	pthread_mutex_unlock(&pending.lock);
	shutdown(listener, SHUT_RDWR);
}

/* One request; false: the connection ends. */
static bool serve_request(struct conn *c)
{
	char *line = read_line(c), key[KEY_MAX + 1] = "";
	size_t len = 0;

	if (!line)
		return false;
	if (sscanf(line, "GET %63s", key) == 1)
		return do_get(c, key);
	if (sscanf(line, "SET %63s %zu", key, &len) == 2)
		return do_set(c, key, len);
	atomic_fetch_add(&others, 1);
	if (sscanf(line, "DEL %63s", key) == 1)
		return reply(c, store_del(key) ? "DELETED\n" : "NONE\n");
	if (sscanf(line, "INCR %63s", key) == 1)
		return reply(c, "COUNT %ld\n", store_incr(key));
	if (strcmp(line, "STATS") == 0)
		return reply(c, "GETS %ld SETS %ld\n", atomic_load(&gets), atomic_load(&sets));
	if (strcmp(line, "STOP") == 0) {
		reply(c, "BYE\n");
		stop_all();
		return false;
	}
	return reply(c, "ERROR\n");
}

/* ---- threads ---- */

static int next_connection(void)
{
	int fd = -1;

	pthread_mutex_lock(&pending.lock);
	while (pending.count == 0 && !pending.stop)
		pthread_cond_wait(&pending.more, &pending.lock);
	if (pending.count > 0)
		fd = pending.fds[--pending.count];
	pthread_mutex_unlock(&pending.lock);
	return fd;
}

static void *worker(void *arg)
{
	struct conn *c = malloc(sizeof(*c));

	(void)arg;
	while ((c->fd = next_connection()) >= 0) {
		c->at = c->end = 0;
		while (serve_request(c))
			;
		close(c->fd);
	}
	free(c);
	return NULL;
}

static void accept_all(void)
{
	int fd, one = 1;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		pthread_mutex_lock(&pending.lock);
		if (pending.count < PENDING)
			pending.fds[pending.count++] = fd;
		else
			close(fd);
		pthread_cond_signal(&pending.more);
		pthread_mutex_unlock(&pending.lock);
	}
}

/* Listens on a free port of the loopback interface; the port, or -1. */
static int listen_somewhere(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(address);

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, len) < 0 ||
	    listen(listener, PENDING) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &len) < 0)
		return -1;
	return ntohs(address.sin_port);
}

int main(int argc, char **argv)
{
	int clients = argc > 1 ? atoi(argv[1]) : 4;
	int requests = argc > 2 ? atoi(argv[2]) : 10000;
	pthread_t workers[WORKERS];
	int port = listen_somewhere(), status;
	pid_t child;

	if (port < 0) {
		perror("kvserver: listen");
		return 1;
	}
	fflush(stdout);
	child = fork();
	if (child < 0) {
		perror("kvserver: fork");
		return 1;
	}
	if (child == 0) {
		close(listener);
		_exit(client_run(port, clients, requests));
	}
	for (int i = 0; i < BUCKETS; i++)
		pthread_mutex_init(&store[i].lock, NULL);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&workers[i], NULL, worker, NULL);
	accept_all();
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	close(listener);
	store_clear();
	printf("gets %ld, sets %ld, others %ld\n", atomic_load(&gets), atomic_load(&sets),
	       atomic_load(&others));
	if (waitpid(child, &status, 0) < 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
