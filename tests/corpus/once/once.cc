// Two searchers; the first that finds keeps the promise.
#include <cstdio>
#include <future>
#include <thread>

static std::promise<int> answer;
static bool answered;

static void search(int from, int to)
{
	for (int i = from; i < to; i++)
		if (i * i % 1009 == 5) {
			if (!answered) {	/* @test */
				answered = true;	/* @set */
				answer.set_value(i);	/* @keep */
			}
			return;
		}
}

int main()
{
	std::future<int> f = answer.get_future();
	std::thread a(search, 0, 1009), b(search, 1009, 2018);
	int n = f.get();
	a.join();
	b.join();
	printf("%d\n", n);
}
