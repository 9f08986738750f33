/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a ring of one writer and one reader; with BUG published before it is written */
#include <atomic>
#include <cassert>
#include <thread>
static int ring[4];
static std::atomic<unsigned> head{0};
int main()
{
	std::thread p([] {
		for (unsigned i = 0; i < 3; i++) {
#ifdef BUG
			head.store(i + 1);
			*(volatile int *)&ring[i] = 100 + i;
#else
			ring[i] = 100 + i;
			head.store(i + 1);
#endif
		}
	}),
	    c([] {
		    unsigned h = head.load();
		    for (unsigned i = 0; i < h; i++)
			    assert(*(volatile int *)&ring[i] == (int)(100 + i));
	    });
	p.join();
	c.join();
	return 0;
}
