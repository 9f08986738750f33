/*
 * A failure that is an uncaught C++ exception. The reader asks for the size and
 * then for the last element; the trimmer shortens the list between the two calls.
 */
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

class Queue {
public:
	void add(int value)
	{
		std::lock_guard<std::mutex> guard(mutex);	/* @lock */
		items.push_back(value);
	}

	size_t size()
	{
		std::lock_guard<std::mutex> guard(mutex);	/* @lock */
		return items.size();				/* @size */
	}	/* @leave */

	int at(size_t n)
	{
		std::lock_guard<std::mutex> guard(mutex);	/* @lock */
		return items.at(n);				/* @use */
	}

	void trim()
	{
		std::lock_guard<std::mutex> guard(mutex);	/* @lock */
		if (!items.empty())
			items.pop_back();			/* @trim */
	}

private:
	std::mutex mutex;
	std::vector<int> items;
};

static Queue queue;
static long sum;

static void reader()
{
	for (int i = 0; i < 6; i++) {
		size_t n = queue.size();		/* @asks */

		if (n > 0)
			sum += queue.at(n - 1);			/* @call */
	}
}

int main()
{
	for (int i = 0; i < 8; i++)
		queue.add(i);
	std::thread thread(reader);
	for (int i = 0; i < 4; i++)
		queue.trim();
	thread.join();
	std::printf("%s\n", sum > 0 ? "read" : "odd");
	return 0;
}
