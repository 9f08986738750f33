/*
 * A vector is copied while another thread removes from it (JDK 1.4, Vector).
 * Built with -DCORRECT it is right.
 */
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>

class Vector {
public:
	int count;
	int *elements;
	pthread_mutex_t lock;

	void copy_into(int *to, int *n)
	{
#ifdef CORRECT
		pthread_mutex_lock(&lock);
#endif
		*n = count; /* @count */
		for (int i = 0; i < *n; i++)
			to[i] = elements[i]; /* @copy */
#ifdef CORRECT
		pthread_mutex_unlock(&lock);
#endif
	}

	void remove_all()
	{
		pthread_mutex_lock(&lock);
		elements = nullptr; /* @drop */
		count = 0;
		pthread_mutex_unlock(&lock);
	}
};

static int storage[2] = { 7, 8 };
static Vector v = { 2, storage, PTHREAD_MUTEX_INITIALIZER };
static int copied[4], ncopied;

static void *copies(void *arg)
{
	v.copy_into(copied, &ncopied);
	return arg;
}

static void *removes(void *arg)
{
	v.remove_all();
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, copies, NULL);
	pthread_create(&b, NULL, removes, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d copied\n", ncopied);
	return 0;
}
