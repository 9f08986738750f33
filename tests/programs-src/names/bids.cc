// A price is checked and then set; who reads it in between throws, and nobody catches that.
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
class Auction {
	std::atomic<int> lowest{-5};
	int at() const { return lowest.load(); }
public:
	void lower()
	{
		int seen = at();
		lowest.store(seen - 1);
		if (at() != seen - 1)
			throw std::runtime_error("the bid of " + std::to_string(seen - 1) + " was lost");
	}
};
int main()
{
	Auction a;
	auto bid = [&a] { for (int i = 0; i < 10; i++) a.lower(); };
	std::thread one(bid), two(bid);
	one.join();
	two.join();
}
