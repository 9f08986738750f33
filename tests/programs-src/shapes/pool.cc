/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a pool of threads; with BUG a job under way is not counted */
#include <cassert>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>
class Pool
{
	std::mutex m;
	std::condition_variable work, idle;
	std::queue<std::function<void()>> q;
	int busy = 0;
	bool stop = false;
	std::vector<std::thread> ts;
	void loop()
	{
		std::unique_lock<std::mutex> l(m);
		for (;;) {
			work.wait(l, [&] { return stop || !q.empty(); });
			if (q.empty())
				return;
			auto f = std::move(q.front());
			q.pop();
#ifndef BUG
			busy++;
#endif
			l.unlock();
			f();
			l.lock();
#ifndef BUG
			busy--;
#endif
			idle.notify_all();
		}
	}

      public:
	Pool(int n)
	{
		for (int i = 0; i < n; i++)
			ts.emplace_back([this] { loop(); });
	}
	void add(std::function<void()> f)
	{
		std::lock_guard<std::mutex> g(m);
		q.push(std::move(f));
		work.notify_one();
	}
	void drain()
	{
		std::unique_lock<std::mutex> l(m);
		idle.wait(l, [&] { return q.empty() && !busy; });
	}
	~Pool()
	{
		{
			std::lock_guard<std::mutex> g(m);
			stop = true;
		}
		work.notify_all();
		for (auto &t : ts)
			t.join();
	}
};
int main()
{
	int *sum = new int(0);
	std::mutex sm;
	Pool p(2);
	for (int i = 1; i <= 2; i++)
		p.add([&, i] {
			std::lock_guard<std::mutex> g(sm);
			*sum += i;
		});
	p.drain();
	int s;
	{
		std::lock_guard<std::mutex> g(sm);
		s = *sum;
	}
	assert(s == 3);
	return 0;
}
