// SPDX-License-Identifier: GPL-2.0-or-later
// Two threads take turns by spinning, one of them politely; BUG: the second hands the turn on before it has used it.
#include <atomic>
#include <cassert>
#include <sched.h>
#include <thread>

static std::atomic<int> turn{0};
static int used;

static void play(int me, bool polite)
{
	for (int i = 0; i < 2; i++) {
		while (turn.load() != me)
			if (polite)
				sched_yield();
#ifdef BUG
		if (me)
			turn.store(!me);
#endif
		int before = used;
		used = before + 1;
		turn.store(!me);
	}
}

int main()
{
	std::thread first(play, 0, true), second(play, 1, false);

	first.join();
	second.join();
	assert(used == 4);
	return 0;
}
