// A routing table that is never changed in place: who adds a route copies the table, adds to the copy, publishes it.
// Readers need no more than the snapshot they took. Two who add at a time start from the same table.
#include <algorithm>
#include <cassert>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace net {

struct Table {
	std::vector<std::pair<std::string, int>> routes;
	unsigned version = 0;
};

class Router {
	mutable std::mutex m;
	std::shared_ptr<const Table> table = std::make_shared<Table>();

public:
	std::shared_ptr<const Table> snapshot() const
	{
		std::lock_guard<std::mutex> g(m);
		return table;	/* @snapshot */
	}

	void publish(std::shared_ptr<const Table> t)
	{
		std::lock_guard<std::mutex> g(m);
		table = std::move(t);	/* @publish */
	}

	void add(const std::string &net, int port)
	{
		auto old = snapshot();	/* @take */
		auto next = std::make_shared<Table>(*old);	/* @copy */
		next->routes.emplace_back(net, port);	/* @append */
		next->version = old->version + 1;	/* @version */
		std::sort(next->routes.begin(), next->routes.end());	/* @sort */
		publish(std::move(next));	/* @gives */
	}

	int lookup(const std::string &net) const
	{
		auto t = snapshot();
		for (auto &r : t->routes)
			if (r.first == net)
				return r.second;
		return -1;
	}
};

} // namespace net

int main()
{
	constexpr int ADDERS = 2, EACH = 3;
	net::Router router;
	std::vector<std::thread> adders;

	for (int a = 0; a < ADDERS; a++)
		adders.emplace_back([&router, a] {
			for (int i = 0; i < EACH; i++)
				router.add("10." + std::to_string(a) + "." + std::to_string(i), a);	/* @adds */
		});
	std::thread reader([&router] {
		int known = 0;
		for (int i = 0; i < EACH; i++)
			known += router.lookup("10.0." + std::to_string(i)) >= 0;
		printf("%d known early\n", known);
	});
	for (auto &t : adders)
		t.join();
	reader.join();
	assert(router.snapshot()->routes.size() == ADDERS * EACH);	/* @assert */
}
