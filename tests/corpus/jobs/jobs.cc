// A queue under a lock, its length outside.
#include <cstdio>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>

static std::mutex m;
static std::deque<int> q;
static int length;

static void add(int n)
{
	std::lock_guard<std::mutex> g(m);
	q.push_back(n);
	length++;
}

static int take()
{
	std::lock_guard<std::mutex> g(m);
	if (q.empty())	/* @empty */
		throw std::logic_error("the queue is empty");	/* @throw */
	int n = q.front();
	q.pop_front();	/* @pop */
	length--;	/* @shorter */
	return n;
}

static void worker()
{
	while (length > 0)	/* @look */
		take();	/* @take */
}

int main()
{
	for (int i = 0; i < 15; i++)
		add(i);
	std::thread a(worker), b(worker);
	a.join();
	b.join();
	puts("done");
}
