// What was used last comes first: a look moves it there, under a lock for reading. The list's nodes are linked
// inside the C++ library.
#include <cstdlib>
#include <list>
#include <shared_mutex>
#include <thread>
#include <vector>

class Recent {
public:
	explicit Recent(int n)
	{
		for (int i = 0; i < n; i++)
			nodes_.push_back(order_.insert(order_.end(), i));
	}
	int get(int k)
	{
		std::shared_lock<std::shared_mutex> g(m_);

		order_.splice(order_.begin(), order_, nodes_[k]); // @move
		return *nodes_[k];
	}
	int count() const
	{
		int n = 0;

		for (auto i = order_.begin(); i != order_.end() && n < 100; ++i)
			n++;
		return n;
	}
private:
	std::shared_mutex m_;
	std::list<int> order_;
	std::vector<std::list<int>::iterator> nodes_;
};

int main()
{
	Recent r(8);
	auto look = [&r](int from) { for (int i = 0; i < 12; i++) r.get((i * 3 + from) % 8); };
	std::thread a(look, 0), b(look, 1);

	a.join();
	b.join();
	if (r.count() != 8) // @check
		std::abort();
}
