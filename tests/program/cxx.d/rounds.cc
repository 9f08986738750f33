// Rounds with a barrier of the C++ library, and one too few of them.
#include <barrier>
#include <cassert>
#include <cstdio>
#include <thread>
#include <vector>
static constexpr int N = 3, PHASES = 4;
static int cell[N];
static std::barrier sync_point(N);
static void worker(int id)
{
	for (int ph = 1; ph <= PHASES; ph++) {
		cell[id] = ph; // @next
		sync_point.arrive_and_wait();
		int left = cell[(id + N - 1) % N]; // @look
		assert(left == ph);
	}
}
int main()
{
	std::vector<std::thread> ts;
	for (int i = 0; i < N; i++) ts.emplace_back(worker, i);
	for (auto &t : ts) t.join();
	std::puts("ok");
}
