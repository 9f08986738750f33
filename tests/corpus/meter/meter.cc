// Statistics: atomics behind a value type behind a meter; adding reads and writes.
#include <atomic>
#include <cassert>
#include <cstdio>
#include <thread>

template <class T> class relaxed {
	std::atomic<T> v{};
public:
	operator T() const { return v.load(std::memory_order_relaxed); /* @load */ }
	relaxed &operator=(T x) { v.store(x, std::memory_order_relaxed); /* @store */ return *this; }
};

struct Meter {
	relaxed<long> bytes, calls;
	void add(long n)
	{
		bytes = bytes + n;	/* @bytes */
		calls = calls + 1;	/* @calls */
	}
};

static Meter meter;

static void io(long chunk)
{
	for (int i = 0; i < 40; i++)
		meter.add(chunk);	/* @add */
}

int main()
{
	std::thread a(io, 10), b(io, 3);
	a.join();
	b.join();
	long bytes = meter.bytes, calls = meter.calls;
	assert(bytes == 520 && calls == 80);	/* @assert */
	printf("%ld\n", bytes);
}
