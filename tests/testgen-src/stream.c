/* A buffered stream that is closed while it is read. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct stream {
	pthread_mutex_t lock;
	char *buffer;
	size_t at, n;
};

struct stream *stream_open(const char *text)
{
	struct stream *s = calloc(1, sizeof *s);

	pthread_mutex_init(&s->lock, NULL);
	s->n = strlen(text);
	s->buffer = malloc(s->n + 1);
	memcpy(s->buffer, text, s->n + 1);
	return s;
}

int stream_read(struct stream *s)
{
	int c = -1;

	pthread_mutex_lock(&s->lock);
	if (s->buffer && s->at < s->n)
		c = s->buffer[s->at++];
	pthread_mutex_unlock(&s->lock);
	return c;
}

void stream_rewind(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->at = 0;
	pthread_mutex_unlock(&s->lock);
}

void stream_shut(struct stream *s)
{
#ifdef FIXED
	pthread_mutex_lock(&s->lock);
#endif
	char *old = s->buffer;
	s->buffer = NULL;
	free(old);
#ifdef FIXED
	pthread_mutex_unlock(&s->lock);
#endif
}

void stream_free(struct stream *s)
{
	free(s->buffer);
	free(s);
}
