// A sequence lock. The reader waits until no writer is at it and then reads, but does not look at the sequence number
// again: what a writer does meanwhile it does not see.
#include <atomic>
#include <cassert>
#include <cstdio>
#include <thread>
#include <vector>

struct Quote {
	long bid, ask;
};

template <class T> class Cell {
	std::atomic<T> value;

public:
	explicit Cell(T v) : value(v) {}
	T get() const { return value.load(std::memory_order_acquire); /* @get */ }
	void set(T v) { value.store(v, std::memory_order_release); /* @set */ }
};

class Ticker {
	Cell<unsigned> sequence{0};
	Cell<long> bid{100}, ask{102};

public:
	Quote read() const
	{
		while (sequence.get() & 1)	/* @sequence */
			std::this_thread::yield();
		Quote q;
		q.bid = bid.get();	/* @bid */
		q.ask = ask.get();	/* @ask */
		return q;
	}

	void write(const Quote &q)
	{
		unsigned s = sequence.get();
		sequence.set(s + 1);
		bid.set(q.bid);	/* @setbid */
		ask.set(q.ask);	/* @setask */
		sequence.set(s + 2);
	}
};

static void market(Ticker &t)
{
	long price = 100;
	for (int i = 1; i <= 12; i++) {
		price += i % 3 == 2 ? -7 : 5;
		t.write({price, price + 2});	/* @writes */
	}
}

static void trader(const Ticker &t, long &spread)
{
	for (int i = 0; i < 12; i++) {
		Quote q = t.read();	/* @reads */
		assert(q.bid < q.ask);	/* @assert */
		spread += q.ask - q.bid;
	}
}

int main()
{
	Ticker t;
	long spread[2] = {0, 0};
	std::vector<std::thread> all;

	all.emplace_back(market, std::ref(t));
	for (long &s : spread)
		all.emplace_back([&t, &s] { trader(t, s); });	/* @trades */
	for (auto &x : all)
		x.join();
	printf("spreads %ld and %ld\n", spread[0], spread[1]);
}
