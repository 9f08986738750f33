/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A redis module with a check-then-act: shop.buy hands the last item to one of two workers, each of which looks whether it is there
 * and then takes it. What it needs of redis's module interface is declared here.
 */
#include <pthread.h>
#include <stdlib.h>

typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleString RedisModuleString;
typedef int command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

static int (*get_api)(const char *name, void *target);
static int (*create_command)(RedisModuleCtx *ctx, const char *name, command *f, const char *flags, int first, int last, int step);
static void (*set_attributes)(RedisModuleCtx *ctx, const char *name, int version, int api);
static int (*reply)(RedisModuleCtx *ctx, const char *text);

struct item {
	long price;
};

static struct item *volatile shelf;
static long sold[2];
static struct worker {
	pthread_mutex_t lock;
	pthread_cond_t come;
	int jobs;
} workers[2] = { { .lock = PTHREAD_MUTEX_INITIALIZER, .come = PTHREAD_COND_INITIALIZER },
		 { .lock = PTHREAD_MUTEX_INITIALIZER, .come = PTHREAD_COND_INITIALIZER } };

static void sell(long me)
{
	if (shelf) { /* @check */
		sold[me] += shelf->price; /* @use */
		shelf = NULL; /* @taken */
	}
}

static void *work(void *arg)
{
	struct worker *w = &workers[(long)arg];

	for (;;) {
		pthread_mutex_lock(&w->lock);
		while (!w->jobs)
			pthread_cond_wait(&w->come, &w->lock);
		w->jobs--;
		pthread_mutex_unlock(&w->lock);
		sell((long)arg);
	}
}

static int buy(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
	static int turn;
	struct worker *w = &workers[turn++ % 2];

	(void)argv;
	(void)argc;
	pthread_mutex_lock(&w->lock);
	w->jobs++;
	pthread_cond_signal(&w->come);
	pthread_mutex_unlock(&w->lock);
	return reply(ctx, "ordered");
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
	pthread_t t;

	(void)argv;
	(void)argc;
	get_api = (int (*)(const char *, void *))*(void **)ctx;
	get_api("RedisModule_SetModuleAttribs", (void *)&set_attributes);
	get_api("RedisModule_CreateCommand", (void *)&create_command);
	get_api("RedisModule_ReplyWithSimpleString", (void *)&reply);
	set_attributes(ctx, "shop", 1, 1);
	shelf = calloc(1, sizeof *shelf);
	for (long i = 0; i < 2; i++)
		pthread_create(&t, NULL, work, (void *)i);
	return create_command(ctx, "shop.buy", buy, "fast", 0, 0, 0);
}
