/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a counted object; with BUG the count is read after it was lowered */
#include <atomic>
#include <cassert>
#include <thread>
struct Obj {
	std::atomic<int> n{1};
	int data = 42;
};
static std::atomic<int> freed{0};
static void put(Obj *o)
{
#ifdef BUG
	o->n.fetch_sub(1);
	if (o->n.load() == 0)
		freed++;
#else
	if (o->n.fetch_sub(1) == 1)
		freed++;
#endif
}
int main()
{
	Obj *o = new Obj;
	o->n = 3;
	std::thread a([&] {
		assert(o->data == 42);
		put(o);
	}),
	    b([&] { put(o); }), c([&] { put(o); });
	a.join();
	b.join();
	c.join();
	assert(freed == 1);
	delete o;
	return 0;
}
