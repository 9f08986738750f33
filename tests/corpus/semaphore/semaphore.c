/*
 * Semaphore misuse. A semaphore counts the free printers, so two threads can be
 * inside at once; picking a free one of the two needs a lock and has none.
 */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#define PRINTERS 2
#define USERS 3
#define PAGES 3

struct printer {
	int busy;
	int user;
	int pages;
};

static sem_t free_printers;
static struct printer printers[PRINTERS];

static struct printer *claim(int user)
{
	sem_wait(&free_printers);			/* @sem */
	for (int i = 0; i < PRINTERS; i++) {
		if (printers[i].busy == 0) {		/* @check */
			printers[i].user = user;	/* @user */
			printers[i].busy = 1;		/* @claim */
			return &printers[i];
		}
	}
	assert(!"a printer is free");
	return NULL;
}

static void print_page(struct printer *p, int user)
{
	char page[40];

	snprintf(page, sizeof(page), "page %d of user %d", p->pages, user);
	p->pages++;
	assert(p->user == user);			/* @use */
}

static void release(struct printer *p)
{
	p->busy = 0;					/* @release */
	sem_post(&free_printers);			/* @sem */
}

static void *user(void *arg)
{
	int me = 1 + (int)(long)arg;

	for (int i = 0; i < PAGES; i++) {
		struct printer *p = claim(me);

		print_page(p, me);
		release(p);
	}
	return NULL;
}

int main(void)
{
	pthread_t users[USERS];

	sem_init(&free_printers, 0, PRINTERS);
	for (long i = 0; i < USERS; i++)
		pthread_create(&users[i], NULL, user, (void *)i);
	for (int i = 0; i < USERS; i++)
		pthread_join(users[i], NULL);
	printf("pages %d\n", printers[0].pages + printers[1].pages);
	sem_destroy(&free_printers);
	return 0;
}
