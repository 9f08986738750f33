// A shared lock for looking, an exclusive one for taking.
#include <cassert>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

static std::shared_mutex rw;
static int left = 7;

static bool take()
{
	{
		std::shared_lock<std::shared_mutex> r(rw);
		if (left == 0)	/* @look */
			return false;
	}	/* @release */
	std::unique_lock<std::shared_mutex> w(rw);
	left--;	/* @take */
	assert(left >= 0);	/* @assert */
	return true;
}

int main()
{
	std::vector<std::thread> t;
	for (int i = 0; i < 3; i++)
		t.emplace_back([] { while (take()) ; });
	for (auto &x : t)
		x.join();
	printf("%d\n", left);
}
