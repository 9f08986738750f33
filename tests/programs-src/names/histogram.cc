// OpenMP in a namespace and a member function: two bins are counted without a lock.
#include <cassert>
#include <vector>
namespace stats {
struct Histogram {
	std::vector<int> bins = std::vector<int>(2);
	__attribute__((noinline)) void fill(int n)
	{
#pragma omp parallel for num_threads(3)
		for (int i = 0; i < n; i++)
			bins[i & 1]++;
	}
};
}
int main()
{
	stats::Histogram h;
	h.fill(90);
	assert(h.bins[0] + h.bins[1] == 90);
}
