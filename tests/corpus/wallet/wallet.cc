// A wallet whose methods lock; its user asks first and takes then.
#include <cassert>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

class Wallet {
	mutable std::mutex m;
	long coins = 50;
public:
	long amount() const { std::lock_guard<std::mutex> g(m); return coins; /* @amount */ }
	void take(long n)
	{
		std::lock_guard<std::mutex> g(m);
		coins -= n;	/* @take */
		assert(coins >= 0);	/* @assert */
	}	/* @release */
};

static bool affordable(const Wallet &w, long price)
{
	return w.amount() >= price;	/* @asks */
}

static void shop(Wallet &w, int seed)
{
	unsigned r = seed;
	for (int i = 0; i < 20; i++) {
		r = r * 1103515245 + 12345;
		long price = 1 + (r >> 16) % 9;
		if (!affordable(w, price))	/* @check */
			break;
		w.take(price);	/* @buys */
	}
}

int main()
{
	Wallet w;
	std::vector<std::thread> t;
	for (int i = 0; i < 3; i++)
		t.emplace_back(shop, std::ref(w), i * 77 + 1);
	for (auto &x : t)
		x.join();
	printf("%ld left\n", w.amount());
}
