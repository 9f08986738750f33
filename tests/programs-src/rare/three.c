/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Three threads are needed: the second sees a state that lasts for an instant, the third sees both that and the second's note. */
#include "work.h"

static volatile int state, noted;
static volatile int wrong;

static void *changer(void *arg)
{
	work((uintptr_t)arg, 200000);
	state = 1;
	state = 2;
	return NULL;
}

static void *watcher(void *arg)
{
	work((uintptr_t)arg, 350000);
	if (state == 1)
		noted = 1;
	return NULL;
}

static void *judge(void *arg)
{
	work((uintptr_t)arg, 500000);
	if (noted && state == 1)
		wrong = 1;
	return NULL;
}

int main(void)
{
	THREADS(3, changer, watcher, judge);
	assert(!wrong);
	return 0;
}
