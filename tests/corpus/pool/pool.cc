// Tasks may be put into a pool that is closing.
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

static std::mutex m;
static std::condition_variable cv;
static std::deque<int> tasks;
static bool closed;
static long done;

static bool is_open()
{
	std::lock_guard<std::mutex> g(m);
	return !closed;	/* @look */
}	/* @release */

static void worker()
{
	for (;;) {
		std::unique_lock<std::mutex> l(m);
		cv.wait(l, [] { return closed || !tasks.empty(); });
		if (tasks.empty())
			return;
		done += tasks.front();
		tasks.pop_front();
	}
}

static void submit(int n)
{
	if (!is_open())	/* @check */
		return;
	std::lock_guard<std::mutex> g(m);
	assert(!closed);	/* @assert */
	tasks.push_back(n);	/* @push */
	cv.notify_one();
}

static void client()
{
	for (int i = 0; i < 20; i++)
		submit(i);
}

static void close_pool()
{
	std::lock_guard<std::mutex> g(m);
	closed = true;	/* @close */
	cv.notify_all();
}

int main()
{
	std::thread w(worker), c(client);
	for (volatile int i = 0; i < 2000; i = i + 1)
		;
	close_pool();
	w.join();
	c.join();
	printf("%ld\n", done);
}
