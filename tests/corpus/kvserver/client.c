/*
 * The load: every connection sends its next request when the last one has been
 * answered, all from one thread, so what is sent does not depend on timing.
 */
#include "client.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEYS 12
#define CLIENTS_MAX 64

enum { ALL_RIGHT, WRONG_ANSWER, SERVER_GONE = 3 };

struct client {
	int fd;
	unsigned state;		/* of its random numbers */
	int left;		/* requests */
	char in[8192];
	size_t got;
};

static unsigned draw(struct client *c, unsigned below)
{
	c->state = c->state * 1103515245u + 12345u;
	return (c->state >> 16) % below;
}

static int connect_to(int port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static bool send_request(struct client *c)
{
	char out[1024];
	int n, kind = draw(c, 20), key = draw(c, KEYS);

	if (kind < 11) {
		n = snprintf(out, sizeof(out), "GET key%d\n", key);
	} else if (kind < 18) {
		int len = 16 + draw(c, 400);

		n = snprintf(out, sizeof(out), "SET key%d %d\n", key, len);
		memset(out + n, 'a' + key, len);
		n += len;
	} else if (kind < 19) {
		n = snprintf(out, sizeof(out), "INCR counter%d\n", key % 3);
	} else {
		n = snprintf(out, sizeof(out), "DEL key%d\n", key);
	}
	c->left--;
	c->got = 0;
	return send(c->fd, out, n, MSG_NOSIGNAL) == n;
}

/* Whether the answer read so far is whole; *right: and as it must be. */
static bool answer_whole(struct client *c, bool *right)
{
	char *nl = memchr(c->in, '\n', c->got);
	size_t len, head;

	*right = true;
	if (!nl)
		return false;
	if (strncmp(c->in, "VALUE ", 6) != 0) {
		*right = strncmp(c->in, "ERROR", 5) != 0;
		return true;
	}
	head = nl + 1 - c->in;
	len = strtoul(c->in + 6, NULL, 10);
	if (c->got < head + len)
		return false;
	for (size_t i = 1; i < len; i++)
		if (c->in[head + i] != c->in[head])
			*right = false;
	return true;
}

/* Reads; when the answer is whole, sends the next request. */
static int go_on(struct client *c)
{
	ssize_t n = read(c->fd, c->in + c->got, sizeof(c->in) - c->got);
	bool right;

	if (n <= 0)
		return SERVER_GONE;
	c->got += n;
	if (!answer_whole(c, &right))
		return ALL_RIGHT;
	if (!right)
		return WRONG_ANSWER;
	if (c->left > 0)
		return send_request(c) ? ALL_RIGHT : SERVER_GONE;
	close(c->fd);
	c->fd = -1;
	return ALL_RIGHT;
}

static int stop_server(int port)
{
	char answer[8];
	int fd = connect_to(port);
	bool said;

	if (fd < 0)
		return SERVER_GONE;
	said = send(fd, "STOP\n", 5, MSG_NOSIGNAL) == 5 && read(fd, answer, sizeof(answer)) > 0;
	close(fd);
	return said ? ALL_RIGHT : SERVER_GONE;
}

/* Answers and requests in turn until every client is done or one fails. */
static int drive(struct client *c, int clients)
{
	struct pollfd polls[CLIENTS_MAX];
	int open = clients, result;

	while (open > 0) {
		for (int i = 0; i < clients; i++)
			polls[i] = (struct pollfd){.fd = c[i].fd, .events = POLLIN};
		if (poll(polls, clients, -1) < 0)
			return SERVER_GONE;
		for (int i = 0; i < clients; i++) {
			if (c[i].fd < 0 || !polls[i].revents)
				continue;
			result = go_on(&c[i]);
			if (result != ALL_RIGHT)
				return result;
			open -= c[i].fd < 0;
		}
	}
	return ALL_RIGHT;
}

int client_run(int port, int clients, int requests)
{
	static struct client c[CLIENTS_MAX];
	int result, stopped;

	if (clients > CLIENTS_MAX)
		clients = CLIENTS_MAX;
	for (int i = 0; i < clients; i++) {
		c[i] = (struct client){.fd = connect_to(port), .state = i + 1, .left = requests};
		if (c[i].fd < 0 || !send_request(&c[i]))
			return SERVER_GONE;
	}
	result = drive(c, clients);
	for (int i = 0; i < clients; i++)
		if (c[i].fd >= 0)
			close(c[i].fd);
	stopped = stop_server(port);
	return result == ALL_RIGHT ? stopped : result;
}
