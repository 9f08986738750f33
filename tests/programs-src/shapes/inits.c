// SPDX-License-Identifier: GPL-2.0-or-later
// Two modules, each initialised by pthread_once(), register themselves; BUG: without the registry's lock.
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once[2] = { PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT };
static const char *names[2];
static volatile int registered;

static void add(const char *name)
{
#ifndef BUG
	pthread_mutex_lock(&lock);
#endif
	names[registered] = name;
	registered++;
#ifndef BUG
	pthread_mutex_unlock(&lock);
#endif
}

static void net(void)
{
	add("net");
}

static void disk(void)
{
	add("disk");
}

static void *use_net(void *unused)
{
	(void)unused;
	pthread_once(&once[0], net);
	return NULL;
}

static void *use_disk(void *unused)
{
	(void)unused;
	pthread_once(&once[1], disk);
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, use_net, NULL);
	pthread_create(&b, NULL, use_disk, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	assert(registered == 2 && names[0] && names[1]);
	return 0;
}
