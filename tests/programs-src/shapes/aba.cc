/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a lock-free stack; with BUG without a tag against ABA */
#include <atomic>
#include <cassert>
#include <thread>
struct N {
	int next;
};
static N n[4];
static std::atomic<unsigned long> top; // index+1 low, tag high
static int owner[4];
static int pop()
{
	for (;;) {
		unsigned long t = top.load();
		unsigned i = (unsigned)t;
		if (!i)
			return 0;
		unsigned long nx = (unsigned)*(volatile int *)&n[i].next;
#ifndef BUG
		nx |= ((t >> 32) + 1) << 32;
#endif
		if (top.compare_exchange_strong(t, nx))
			return i;
	}
}
static void push(int i)
{
	for (;;) {
		unsigned long t = top.load();
		*(volatile int *)&n[i].next = (unsigned)t;
		unsigned long nx = i;
#ifndef BUG
		nx |= ((t >> 32) + 1) << 32;
#endif
		if (top.compare_exchange_strong(t, nx))
			return;
	}
}
int main()
{
	n[1].next = 2;
	n[2].next = 3;
	n[3].next = 0;
	top = 1;
	std::thread a([] {
		int x = pop();
		if (x) {
			int v = __atomic_add_fetch(&owner[x], 1, __ATOMIC_SEQ_CST);
			assert(v == 1);
			int y = pop();
			if (y) {
				v = __atomic_add_fetch(&owner[y], 1, __ATOMIC_SEQ_CST);
				assert(v == 1);
			}
		}
	}),
	    b([] {
		    int x = pop(), y = pop();
		    if (y) {
			    int v = __atomic_add_fetch(&owner[y], 1, __ATOMIC_SEQ_CST);
			    assert(v == 1);
		    }
		    if (x)
			    push(x);
	    });
	a.join();
	b.join();
	return 0;
}
