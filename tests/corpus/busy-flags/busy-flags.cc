/*
 * Busy flags of atomics, looked at and set in two steps, behind two layers of helpers. Two printers take the same tray.
 */
#include <atomic>
#include <cassert>
#include <cstdio>
#include <thread>

namespace {

constexpr int kTrays = 2, kPages = 12;

template <class T> class cell {
public:
	T get() const { return value_.load(std::memory_order_acquire); }
	void put(T v) { value_.store(v, std::memory_order_release); }

private:
	std::atomic<T> value_{};
};

class tray {
public:
	bool busy() const { return flag_.get(); }
	void take() { flag_.put(true); }
	void leave() { flag_.put(false); }

	int printer = 0;

private:
	cell<bool> flag_;
};

tray trays[kTrays];

void print(int me)
{
	for (int page = 0; page < kPages; page++)
		for (auto &t : trays) {
			if (t.busy())	/* @test */
				continue;
			t.take();	/* @take */
			t.printer = me;	/* @mine */
			assert(t.printer == me);	/* @assert */
			t.leave();	/* @leave */
			break;
		}
}

} // namespace

int main()
{
	std::thread a(print, 1), b(print, 2);

	a.join();
	b.join();
	std::puts("printed");
}
