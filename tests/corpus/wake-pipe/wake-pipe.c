/*
 * An event loop that sleeps in read() on a pipe. Who posts an event writes to the pipe, but only when nobody has done so
 * since the loop last looked: the loop says so after it has emptied its queue, and forgets what came in between.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define POSTERS 2
#define EACH 3
#define QUEUE 16

struct loop {
	pthread_mutex_t lock;
	int queue[QUEUE];
	unsigned head, tail;
	bool woken;
	int pipe[2];
	long sum;
	int handled;
};

static struct loop loop = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void loop_post(struct loop *l, int event)
{
	bool wake;

	pthread_mutex_lock(&l->lock);		/* @postlock */
	l->queue[l->tail++ % QUEUE] = event;	/* @put */
	wake = !l->woken;			/* @asks */
	l->woken = true;			/* @marks */
	pthread_mutex_unlock(&l->lock);		/* @posted */
	if (wake && write(l->pipe[1], "!", 1) != 1)	/* @wake */
		perror("wake");
}

static bool loop_next(struct loop *l, int *event)
{
	bool any;

	pthread_mutex_lock(&l->lock);
	any = l->head != l->tail;		/* @empty */
	if (any)
		*event = l->queue[l->head++ % QUEUE];
	pthread_mutex_unlock(&l->lock);		/* @looked */
	return any;
}

static void *loop_run(void *arg)
{
	struct loop *l = arg;
	char c;
	int event;

	while (l->handled < POSTERS * EACH) {
		if (read(l->pipe[0], &c, 1) != 1)	/* @sleep */
			break;
		while (loop_next(l, &event)) {	/* @drain */
			l->sum += event;
			l->handled++;
		}
		pthread_mutex_lock(&l->lock);
		l->woken = false;		/* @reset */
		pthread_mutex_unlock(&l->lock);
	}
	return NULL;
}

static void *poster(void *arg)
{
	int base = *(int *)arg;

	for (int i = 0; i < EACH; i++)
		loop_post(&loop, base + i);	/* @posts */
	return NULL;
}

int main(void)
{
	pthread_t runner, t[POSTERS];
	int base[POSTERS];

	if (pipe(loop.pipe) < 0) {
		perror("pipe");
		return 1;
	}
	pthread_create(&runner, NULL, loop_run, &loop);
	for (int i = 0; i < POSTERS; i++) {
		base[i] = 100 * i;
		pthread_create(&t[i], NULL, poster, &base[i]);
	}
	for (int i = 0; i < POSTERS; i++)
		pthread_join(t[i], NULL);
	pthread_join(runner, NULL);		/* @join */
	printf("%d events, sum %ld\n", loop.handled, loop.sum);
	return 0;
}
