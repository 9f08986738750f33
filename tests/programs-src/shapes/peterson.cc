/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Peterson's lock; with BUG without turns */
#include <atomic>
#include <cassert>
#include <thread>
static std::atomic<int> flag[2], turn;
static int in;
static void p(int i)
{
	flag[i] = 1;
#ifndef BUG
	turn = 1 - i;
	while (flag[1 - i] && turn == 1 - i)
		;
#else
	for (int k = 0; k < 3 && flag[1 - i]; k++)
		;
#endif
	int v = *(volatile int *)&in;
	*(volatile int *)&in = v + 1;
	flag[i] = 0;
}
int main()
{
	std::thread a(p, 0), b(p, 1);
	a.join();
	b.join();
	assert(in == 2);
	return 0;
}
