// An instance that is made when it is first asked for, and known to others before it is filled; its constructor the
// compiler writes.
#include <atomic>
#include <cassert>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
class Config {
public:
	static Config &get()
	{
		Config *c = instance_.load(std::memory_order_acquire);
		if (!c) {
			std::lock_guard g(m_);
			c = instance_.load(std::memory_order_relaxed);
			if (!c) {
				c = new Config;
				instance_.store(c, std::memory_order_release); // @publish
				c->load();
			}
		}
		return *c;
	}
	const std::string &at(size_t i) const { return values_.at(i); }
private:
	void load() { for (int i = 0; i < 4; i++) values_.push_back("value" + std::to_string(i)); } // @fill
	std::vector<std::string> values_;
	static std::atomic<Config *> instance_;
	static std::mutex m_;
};
std::atomic<Config *> Config::instance_{nullptr};
std::mutex Config::m_;
int main()
{
	std::vector<std::thread> ts;
	for (int i = 0; i < 3; i++)
		ts.emplace_back([i] { std::printf("%s\n", Config::get().at(i).c_str()); });
	for (auto &t : ts) t.join();
}
