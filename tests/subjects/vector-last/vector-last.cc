/*
 * The last element of a vector that another thread empties (JDK 1.1, Vector).
 * Built with -DCORRECT it is right.
 */
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>

class Vector {
public:
	int count;
	int elements[4];
	pthread_mutex_t lock;

	int size()
	{
		pthread_mutex_lock(&lock);
		int n = count; /* @count */
		pthread_mutex_unlock(&lock);
		return n;
	}

	int element_at(int i)
	{
		pthread_mutex_lock(&lock);
		assert(i < count); /* @get */
		int e = elements[i];
		pthread_mutex_unlock(&lock);
		return e;
	}

	int last()
	{
#ifdef CORRECT
		pthread_mutex_lock(&lock);
		int e = count ? elements[count - 1] : -1;
		pthread_mutex_unlock(&lock);
		return e;
#else
		int n = size();

		return n ? element_at(n - 1) : -1;
#endif
	}

	void clear()
	{
		pthread_mutex_lock(&lock);
		count = 0; /* @clear */
		pthread_mutex_unlock(&lock);
	}
};

static Vector v = { 2, { 5, 6 }, PTHREAD_MUTEX_INITIALIZER };
static int seen;

static void *asks(void *arg)
{
	seen = v.last();
	return arg;
}

static void *clears(void *arg)
{
	v.clear();
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, asks, NULL);
	pthread_create(&b, NULL, clears, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d\n", seen);
	return 0;
}
