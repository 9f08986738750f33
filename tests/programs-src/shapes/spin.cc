/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a spin lock of its own that yields; with BUG released too early */
#include <atomic>
#include <cassert>
#include <thread>
static std::atomic_flag f = ATOMIC_FLAG_INIT;
static int n;
static void inc()
{
	while (f.test_and_set())
		std::this_thread::yield();
#ifdef BUG
	f.clear();
	int v = *(volatile int *)&n;
	*(volatile int *)&n = v + 1;
#else
	n++;
	f.clear();
#endif
}
int main()
{
	std::thread a(inc), b(inc), c(inc);
	a.join();
	b.join();
	c.join();
	assert(n == 3);
	return 0;
}
