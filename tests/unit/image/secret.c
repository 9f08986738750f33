/* The structure of which ways.c knows only the name. */
#include <stdlib.h>

struct secret {
	long magic;
	int level;
};

void *secret_at;

struct secret *make_secret(void)
{
	secret_at = calloc(1, sizeof(struct secret));
	return secret_at;
}

void touch_secret(struct secret *s)
{
	s->level++;
}
