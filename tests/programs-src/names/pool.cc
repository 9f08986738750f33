// A pool of threads that run std::function jobs from a deque; the job counter is not the lock's.
#include <cassert>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>
class Pool {
	std::deque<std::function<void()>> jobs;
	std::mutex m;
	std::condition_variable more;
	bool closed = false;
	std::vector<std::thread> workers;
	void work()
	{
		for (;;) {
			std::function<void()> job;
			{
				std::unique_lock l(m);
				more.wait(l, [this] { return closed || !jobs.empty(); });
				if (jobs.empty())
					return;
				job = std::move(jobs.front());
				jobs.pop_front();
			}
			job();
			done = done + 1;
		}
	}
public:
	int done = 0;
	explicit Pool(int n)
	{
		for (int i = 0; i < n; i++)
			workers.emplace_back(&Pool::work, this);
	}
	void submit(std::function<void()> job)
	{
		std::lock_guard l(m);
		jobs.push_back(std::move(job));
		more.notify_one();
	}
	void finish()
	{
		{
			std::lock_guard l(m);
			closed = true;
		}
		more.notify_all();
		for (auto &w : workers)
			w.join();
	}
};
int main()
{
	Pool p(3);
	std::vector<int> results(30);
	for (int i = 0; i < 30; i++)
		p.submit([&results, i] { results[i] = i * i; });
	p.finish();
	assert(p.done == 30);
}
