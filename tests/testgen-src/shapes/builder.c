/* A string builder with pointer-and-length pairs and a variable number of arguments: the room is measured too early. */
#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct builder {
	char *text;
	size_t length, room;
	pthread_mutex_t lock;
};

struct builder *builder_new(void)
{
	struct builder *b = calloc(1, sizeof *b);

	b->room = 16;
	b->text = malloc(b->room);
	b->text[0] = 0;
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

static void make_room(struct builder *b, size_t n)
{
	while (b->length + n + 1 > b->room) {
		b->room *= 2;
		b->text = realloc(b->text, b->room);
	}
}

void builder_add(struct builder *b, const char *part, size_t length)
{
	if (!part)
		return;
#ifndef FIXED
	int fits = b->length + length + 1 <= b->room;
#endif
	pthread_mutex_lock(&b->lock);
#ifdef FIXED
	int fits = b->length + length + 1 <= b->room;
#endif
	if (!fits)
		make_room(b, length);
	assert(b->length + length < b->room);
	memcpy(b->text + b->length, part, length);
	b->length += length;
	b->text[b->length] = 0;
	pthread_mutex_unlock(&b->lock);
}

int builder_format(struct builder *b, const char *format, ...)
{
	char part[256];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(part, sizeof part, format, args);
	va_end(args);
	if (n >= 0)
		builder_add(b, part, (size_t)n < sizeof part ? (size_t)n : sizeof part - 1);
	return n;
}

void builder_cut(struct builder *b, size_t length)
{
	pthread_mutex_lock(&b->lock);
	if (length < b->length) {
		b->length = length;
		b->text[length] = 0;
	}
	pthread_mutex_unlock(&b->lock);
}

size_t builder_copy(struct builder *b, char *to, size_t room)
{
	pthread_mutex_lock(&b->lock);
	size_t n = b->length < room ? b->length : room ? room - 1 : 0;
	memcpy(to, b->text, n);
	if (room)
		to[n] = 0;
	pthread_mutex_unlock(&b->lock);
	return n;
}

void builder_free(struct builder *b)
{
	free(b->text);
	free(b);
}
