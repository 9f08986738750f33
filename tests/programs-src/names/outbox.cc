// A class of atomics and a queue: what the library calls their bases and members is nobody's business.
#include <atomic>
#include <cassert>
#include <mutex>
#include <queue>
#include <string>
#include <thread>

class Outbox {
	std::mutex m;
	std::queue<std::string> mail;
	std::atomic<long> pending{0};

public:
	void send(int n)
	{
		pending.store(pending.load() + 1);
		std::lock_guard<std::mutex> g(m);
		mail.push("letter " + std::to_string(n));
	}

	bool complete()
	{
		std::lock_guard<std::mutex> g(m);
		return pending == static_cast<long>(mail.size());
	}
};

int main()
{
	Outbox box;
	std::thread a([&box] { for (int i = 0; i < 3; i++) box.send(i); });
	std::thread b([&box] { for (int i = 0; i < 3; i++) box.send(10 + i); });
	a.join();
	b.join();
	assert(box.complete());
}
