/*
 * A plot is drawn while its dataset is taken away (JFreeChart, XYPlot).
 * Built with -DCORRECT it is right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dataset {
	int items;
};

static struct dataset *volatile dataset;
static int drawn;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *draw(void *arg)
{
#ifdef CORRECT
	pthread_mutex_lock(&lock);
#endif
	if (dataset) /* @check */
		drawn = dataset->items; /* @use */
#ifdef CORRECT
	pthread_mutex_unlock(&lock);
#endif
	return arg;
}

static void *set_dataset(void *arg)
{
	pthread_mutex_lock(&lock);
	dataset = NULL; /* @clear */
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(void)
{
	pthread_t a, b;

	static struct dataset d = { 12 };

	dataset = &d;
	pthread_create(&a, NULL, draw, NULL);
	pthread_create(&b, NULL, set_dataset, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d\n", drawn);
	return 0;
}
