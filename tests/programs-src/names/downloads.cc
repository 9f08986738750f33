// A pool whose jobs use an object that its owner frees as soon as the last job was handed out.
#include <cassert>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
struct Download {
	std::string url = "https://example.org/a/rather/long/name/that/is/on/the/heap";
	long bytes = 0;
	void arrived(long n)
	{
		assert(url.size() < 100); // what free() leaves there is larger
		bytes += n;
	}
};
class Workers {
	std::mutex guard;
	std::condition_variable more;
	std::deque<std::function<void()>> jobs;
	bool closed = false;
	std::vector<std::thread> threads;
	void work()
	{
		for (;;) {
			std::unique_lock l(guard);
			more.wait(l, [this] { return closed || !jobs.empty(); });
			if (jobs.empty())
				return;
			auto job = std::move(jobs.front());
			jobs.pop_front();
			l.unlock();
			job();
		}
	}
public:
	explicit Workers(int n)
	{
		for (int i = 0; i < n; i++)
			threads.emplace_back(&Workers::work, this);
	}
	void submit(std::function<void()> job)
	{
		std::lock_guard l(guard);
		jobs.push_back(std::move(job));
		more.notify_one();
	}
	bool idle()
	{
		std::lock_guard l(guard);
		return jobs.empty();
	}
	~Workers()
	{
		{
			std::lock_guard l(guard);
			closed = true;
		}
		more.notify_all();
		for (auto &t : threads)
			t.join();
	}
};
int main()
{
	Workers pool(2);
	auto *d = new Download;
	for (int i = 0; i < 6; i++)
		pool.submit([d] { d->arrived(100); });
	while (!pool.idle()) // nothing waits any more, but a job may still run
		std::this_thread::yield();
	delete d;
}
