/* A table of settings; the setter logs what it refuses, and the log asks for the verbosity: under the same lock. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int verbosity = 1, limit = 10, refused;

static int get(const int *what)
{
	pthread_mutex_lock(&lock);	/* @again */
	int v = *what;
	pthread_mutex_unlock(&lock);
	return v;
}

static void complain(int v)
{
	if (get(&verbosity))	/* @ask */
		fprintf(stderr, "refused: %d\n", v);
	refused++;
}

static void set_limit(int v)
{
	pthread_mutex_lock(&lock);	/* @first */
	if (v > 100)
		complain(v);	/* @complain */
	else
		limit = v;
	pthread_mutex_unlock(&lock);
}

static void *user(void *arg)
{
	for (int i = 0; i < 30; i++)
		set_limit(i * 5);
	(void)arg;
	return NULL;
}

int main(void)
{
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, user, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%d %d\n", get(&limit), refused);
	return 0;
}
