/* A range that keeps its text: whoever changes the range frees it while others read it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct text {
	char *chars;
	size_t n;
};

struct range {
	pthread_mutex_t lock;
	int min, max;
	struct text *text;
};

int range_init(struct range *r, int min, int max)
{
	memset(r, 0, sizeof *r);
	pthread_mutex_init(&r->lock, NULL);
	r->min = min;
	r->max = max;
	return 0;
}

static struct text *make_text(const struct range *r)
{
	struct text *t = malloc(sizeof *t);

	t->chars = malloc(2);
	t->chars[0] = r->min < r->max ? '<' : '=';
	t->chars[1] = 0;
	t->n = 1;
	return t;
}

static void forget(struct range *r)
{
	struct text *t = r->text;

	r->text = NULL;
	if (t) {
		free(t->chars);
		free(t);
	}
}

int range_first_char(struct range *r)
{
#ifdef FIXED
	pthread_mutex_lock(&r->lock);
#endif
	if (!r->text)
		r->text = make_text(r);
	struct text *t = r->text;
	int c = t->n ? t->chars[0] : 0;
#ifdef FIXED
	pthread_mutex_unlock(&r->lock);
#endif
	return c;
}

void range_move(struct range *r, int by)
{
	pthread_mutex_lock(&r->lock);
	r->min += by;
	forget(r);
	pthread_mutex_unlock(&r->lock);
}

int range_contains(struct range *r, int x)
{
	pthread_mutex_lock(&r->lock);
	int yes = x >= r->min && x <= r->max;
	pthread_mutex_unlock(&r->lock);
	return yes;
}

void range_fini(struct range *r)
{
	forget(r);
}
