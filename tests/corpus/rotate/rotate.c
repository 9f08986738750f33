/*
 * Log rotation. A writer looks up the segment that is being written, which may start a new one, and appends to it; both
 * steps lock, nothing holds the lock from the one to the other.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITERS 3
#define LINES 24
#define FULL 400
#define SLACK 128	/* what writers may still add that looked up before it was full */

struct segment {
	int number;
	bool open;
	size_t used;
	char text[FULL + SLACK];
};

struct journal {
	pthread_mutex_t lock;
	struct segment *current;
	struct segment *archive[32];
	int archived;
};

static struct journal journal = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct segment *segment_new(int number)
{
	struct segment *s = calloc(1, sizeof *s);

	s->number = number;
	s->open = true;
	return s;
}

static void rotate(struct journal *j)
{
	struct segment *old = j->current;

	old->open = false;				/* @close */
	j->archive[j->archived++] = old;
	j->current = segment_new(old->number + 1);	/* @switch */
}

static struct segment *journal_segment(struct journal *j, size_t need)
{
	struct segment *s;

	pthread_mutex_lock(&j->lock);			/* @looklock */
	if (j->current->used + need > FULL)		/* @full */
		rotate(j);				/* @rotates */
	s = j->current;					/* @find */
	pthread_mutex_unlock(&j->lock);			/* @found */
	return s;
}

static void journal_append(struct journal *j, const char *line)
{
	size_t n = strlen(line);
	struct segment *s = journal_segment(j, n);	/* @asks */

	pthread_mutex_lock(&j->lock);			/* @applock */
	assert(s->open);				/* @assert */
	memcpy(s->text + s->used, line, n);
	s->used += n;
	pthread_mutex_unlock(&j->lock);			/* @appended */
}

static void *writer(void *arg)
{
	int me = *(int *)arg;
	char line[64];

	for (int i = 0; i < LINES; i++) {
		snprintf(line, sizeof line, "w%d: request %d done\n", me, i);
		journal_append(&journal, line);		/* @logs */
	}
	return NULL;
}

int main(void)
{
	pthread_t t[WRITERS];
	int name[WRITERS];
	size_t total = 0;

	journal.current = segment_new(1);
	for (int i = 0; i < WRITERS; i++) {
		name[i] = i;
		pthread_create(&t[i], NULL, writer, &name[i]);
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(t[i], NULL);
	rotate(&journal);
	for (int i = 0; i < journal.archived; i++) {
		total += journal.archive[i]->used;
		free(journal.archive[i]);
	}
	free(journal.current);
	printf("%zu bytes in %d segments\n", total, journal.archived);
	return 0;
}
