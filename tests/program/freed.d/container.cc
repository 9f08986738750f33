// container element: a reference into a vector that another thread makes grow.
#include <vector>
#include <thread>
#include <mutex>
#include <cstdlib>
static std::vector<int> values(8, 5);
static std::mutex lock;
static volatile long spun;
static void reader()
{
	int *first;
	{
		std::lock_guard<std::mutex> g(lock);
		first = &values[0];
	}
	for (int i = 0; i < 300; i++) {
		for (int k = 0; k < 50; k++)
			spun = spun + k;
		if (*first != 5)		// use
			abort();
	}
}
int main()
{
	std::thread t(reader);
	for (int k = 0; k < 20000; k++)
		spun = spun + k;
	{
		std::lock_guard<std::mutex> g(lock);
		for (int i = 0; i < 60; i++)
			values.push_back(5);	// free
	}
	t.join();
}
