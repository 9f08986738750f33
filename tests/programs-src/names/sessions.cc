// C++20: jthread, shared_mutex, map of shared_ptr, atomic: who looks and who adds are two critical sections.
#include <atomic>
#include <cassert>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>
struct Session { std::string user; };
class Registry {
	std::map<int, std::shared_ptr<Session>> sessions;
	mutable std::shared_mutex lock;
	std::atomic<int> live{0};
public:
	bool has(int id) const
	{
		std::shared_lock l(lock);
		return sessions.find(id) != sessions.end();
	}
	void add(int id)
	{
		if (has(id))
			return;
		std::unique_lock l(lock);
		sessions[id] = std::make_shared<Session>();
		live++;
	}
	int counted() const { return live; }
	int held() const { std::shared_lock l(lock); return (int)sessions.size(); }
};
int main()
{
	Registry r;
	{
		std::vector<std::jthread> users;
		for (int t = 0; t < 3; t++)
			users.emplace_back([&r] {
				for (int i = 0; i < 4; i++)
					r.add(i);
			});
	}
	assert(r.counted() == r.held());
}
