/* plain C: a session is closed by the main thread while a worker still counts in it. */
#include <pthread.h>
#include <stdlib.h>
#include <assert.h>
struct session { int magic; long hits; char buffer[48]; };
static struct session *session;
static volatile long spun;
static void *worker(void *arg)
{
	struct session *s = session;
	for (int i = 0; i < 200; i++) {
		for (int k = 0; k < 50; k++)
			spun += k;
		s->hits++;				/* use */
		assert(s->magic == 77);			/* check */
	}
	return arg;
}
int main(void)
{
	pthread_t t;
	session = malloc(sizeof *session);
	session->magic = 77;
	session->hits = 0;
	pthread_create(&t, NULL, worker, NULL);
	for (int k = 0; k < 20000; k++)
		spun += k;
	session->magic = 0;
	free(session);					/* free */
	pthread_join(t, NULL);
	return 0;
}
