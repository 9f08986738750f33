// What an object on main's stack keeps on the heap: the other threads know it by `this`, the reader by its name.
#include <cassert>
#include <thread>
#include <vector>

class Ledger {
	std::vector<long> totals = { 0, 0 };

public:
	void add(size_t account, long n)
	{
		long before = totals[account];
		totals[account] = before + n;
	}

	long total(size_t account) const { return totals[account]; }
};

int main()
{
	Ledger book;
	std::thread a([&book] { for (int i = 0; i < 3; i++) book.add(1, 1); });
	std::thread b([&book] { for (int i = 0; i < 3; i++) book.add(1, 10); });
	a.join();
	b.join();
	assert(book.total(1) == 33);
}
