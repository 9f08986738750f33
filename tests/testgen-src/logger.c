/* A logger whose filter may be taken away while it is asked. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct filter {
	int level;
	char *name;
};

struct logger {
	pthread_mutex_t lock;
	struct filter *filter;
	unsigned long logged;
};

struct logger *logger_new(void)
{
	struct logger *l = calloc(1, sizeof *l);

	pthread_mutex_init(&l->lock, NULL);
	return l;
}

void logger_set_filter(struct logger *l, int level)
{
	struct filter *f = level > 0 ? malloc(sizeof *f) : NULL;

	if (f) {
		f->level = level;
		f->name = NULL;
	}
#ifdef FIXED
	pthread_mutex_lock(&l->lock);
#endif
	l->filter = f;
#ifdef FIXED
	pthread_mutex_unlock(&l->lock);
#endif
}

static int is_loggable(const struct filter *f, int level)
{
	return level >= f->level;
}

static void log_record(struct logger *l, int level)
{
	pthread_mutex_lock(&l->lock);
	if (!l->filter || is_loggable(l->filter, level))
		l->logged++;
	pthread_mutex_unlock(&l->lock);
}

void logger_info(struct logger *l, const char *text)
{
	if (*text)
		log_record(l, 2);
}

unsigned long logger_count(struct logger *l)
{
	pthread_mutex_lock(&l->lock);
	unsigned long n = l->logged;
	pthread_mutex_unlock(&l->lock);
	return n;
}

void logger_free(struct logger *l)
{
	free(l);
}
