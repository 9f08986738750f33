// A counter that is changed under a lock held for reading.
#include <cassert>
#include <cstdio>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>
class Registry {
public:
	void set(const std::string &k, int v) { std::unique_lock l(m_); map_[k] = v; }
	int get(const std::string &k)
	{
		std::shared_lock l(m_);
		lookups_++; // @count
		auto it = map_.find(k);
		return it == map_.end() ? -1 : it->second;
	}
	long lookups() { std::unique_lock l(m_); return lookups_; }
private:
	std::shared_mutex m_;
	std::map<std::string, int> map_;
	long lookups_ = 0;
};
int main()
{
	Registry r;
	r.set("alpha", 1); r.set("beta", 2);
	std::vector<std::thread> ts;
	for (int t = 0; t < 3; t++)
		ts.emplace_back([&r, t] { for (int i = 0; i < 5; i++) r.get(t % 2 ? "alpha" : "beta"); });
	for (auto &t : ts) t.join();
	std::printf("%ld lookups\n", r.lookups());
	assert(r.lookups() == 15);
}
