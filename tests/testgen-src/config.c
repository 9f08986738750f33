/* Settings that are made when they are first asked for, and seen by others before they are complete. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct settings {
	char *name;
	int level;
};

struct config {
	pthread_mutex_t lock;
	struct settings *settings;
};

struct config *config_new(void)
{
	struct config *c = calloc(1, sizeof *c);

	pthread_mutex_init(&c->lock, NULL);
	return c;
}

static struct settings *settings(struct config *c)
{
#ifdef FIXED
	pthread_mutex_lock(&c->lock);
#endif
	if (!c->settings) {
		c->settings = malloc(sizeof *c->settings);
		c->settings->name = strdup("default");
		c->settings->level = 1;
	}
	struct settings *s = c->settings;
#ifdef FIXED
	pthread_mutex_unlock(&c->lock);
#endif
	return s;
}

int config_first_letter(struct config *c)
{
	return settings(c)->name[0];
}

int config_level(struct config *c)
{
	return settings(c)->level;
}

void config_free(struct config *c)
{
	free(c);
}
