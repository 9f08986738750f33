/* Lines between a writer and a reader, with no lock: an opaque handle by way of a typedef, options, callbacks, no debug information. */
#include "conn.h"

#include <stdlib.h>
#include <string.h>

struct line {
	struct line *next;
	size_t len;
	char text[];
};

struct watch {
	struct watch *next;
	conn_callback cb;
	void *arg;
};

struct conn_impl {
	struct line *first, **last;
	int pending;
	struct watch *watches;
	unsigned depth;
};

conn_status conn_open(conn_t *out, const conn_options *o)
{
	conn_t c = calloc(1, sizeof *c);

	c->last = &c->first;
	c->depth = o && o->depth ? o->depth : 8;
	*out = c;
	return CONN_OK;
}

conn_status conn_write(conn_t c, const void *data, size_t len)
{
	if (!c || !data || len > 4096)
		return CONN_BAD;
	struct line *l = malloc(sizeof *l + len + 1);
	l->next = NULL;
	l->len = len;
	memcpy(l->text, data, len);
	l->text[len] = 0;
	*c->last = l;
	c->last = &l->next;
	c->pending++;
	for (struct watch *w = c->watches; w; w = w->next)
		if (w->cb)
			w->cb(c, l->text, w->arg);
	return CONN_OK;
}

conn_status conn_read(conn_t c, char *buf, size_t room, size_t *got)
{
	struct line *l = c->first;

	if (!l)
		return CONN_EMPTY;
	size_t n = l->len < room ? l->len : room;
	memcpy(buf, l->text, n);
	c->first = l->next;
	if (!c->first)
		c->last = &c->first;
	c->pending--;
	free(l);
	if (got)
		*got = n;
	return CONN_OK;
}

int (conn_pending)(conn_t c)
{
	return c->pending;
}

conn_cookie conn_watch(conn_t c, conn_callback cb, void *arg)
{
	struct watch *w = malloc(sizeof *w);

	w->cb = cb;
	w->arg = arg;
	w->next = c->watches;
	c->watches = w;
	return w;
}

void conn_unwatch(conn_t c, conn_cookie w)
{
	for (struct watch **p = &c->watches; *p; p = &(*p)->next)
		if (*p == w) {
			*p = (*p)->next;
			free(w);
			return;
		}
}

void conn_close(conn_t c)
{
	while (c->first) {
		struct line *l = c->first;

		c->first = l->next;
		free(l);
	}
	free(c);
}

const char *conn_error(conn_status s)
{
	return s ? "bad" : "ok";
}
