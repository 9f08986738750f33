// SPDX-License-Identifier: GPL-2.0-or-later
// A gate of the program's own, by futex(); BUG: it is opened before what lies behind it is ready.
#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int gate;
static volatile int ready;

static void *opens(void *unused)
{
	(void)unused;
#ifndef BUG
	ready = 1;
#endif
	atomic_store(&gate, 1);
	syscall(SYS_futex, &gate, FUTEX_WAKE_PRIVATE, 100, NULL, NULL, 0);
#ifdef BUG
	ready = 1;
#endif
	return NULL;
}

int main(void)
{
	pthread_t t;

	pthread_create(&t, NULL, opens, NULL);
	while (!atomic_load(&gate))
		syscall(SYS_futex, &gate, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	assert(ready);
	pthread_join(t, NULL);
	return 0;
}
