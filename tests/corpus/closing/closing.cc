// A pool that is shut down by its destructor. The flag is atomic, so it is set without the lock; a worker that has just
// found it unset is not waiting yet when the workers are woken.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class Pool {
	std::mutex m;
	std::condition_variable work;
	std::deque<std::function<void()>> tasks;
	std::atomic<bool> closing{false};
	std::vector<std::thread> workers;

	bool next(std::function<void()> &task)
	{
		std::unique_lock<std::mutex> g(m);
		while (tasks.empty()) {
			if (closing.load())	/* @look */
				return false;
			work.wait(g);	/* @wait */
		}
		task = std::move(tasks.front());
		tasks.pop_front();
		return true;
	}

	void run()
	{
		std::function<void()> task;
		while (next(task))	/* @next */
			task();
	}

public:
	explicit Pool(int n)
	{
		for (int i = 0; i < n; i++)
			workers.emplace_back(&Pool::run, this);	/* @start */
	}

	void submit(std::function<void()> f)
	{
		{
			std::lock_guard<std::mutex> g(m);
			tasks.push_back(std::move(f));
		}
		work.notify_one();
	}

	~Pool()
	{
		closing = true;	/* @close */
		work.notify_all();	/* @wake */
		for (auto &w : workers)
			w.join();	/* @join */
	}
};

int main()
{
	std::atomic<long> squares{0};
	{
		Pool pool(3);
		for (long i = 1; i <= 6; i++)
			pool.submit([&squares, i] { squares += i * i; });
	}	/* @end */
	printf("sum of squares %ld\n", squares.load());
	return squares != 91;
}
