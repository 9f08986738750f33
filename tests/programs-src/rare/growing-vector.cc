/* SPDX-License-Identifier: GPL-2.0-or-later */
/* C++: a reader looks up in a vector that a writer lets grow, once in their lives at the same time. */
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

static std::vector<int> *values = new std::vector<int>{ 1, 2, 3, 4 };
static __attribute__((noinline)) uint64_t work(uint64_t x, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull + (x >> 29);
	__asm__ volatile("" : "+r"(x));
	return x;
}

int main()
{
	values->shrink_to_fit();
	uint64_t a = 0;
	bool right = true;
	std::thread writer([&] {
		a = work(2, 500000);
		values->push_back(5); /* elsewhere in memory from now on */
		for (int i = 0; i < 4; i++)
			values->push_back(6 + i);
	});
	std::thread reader([&] {
		a ^= work(3, 900000);
		size_t n = values->size(); /* the end of one, the beginning of another */
		right = values->data()[n - 1] == (int)n;
	});
	writer.join();
	reader.join();
	assert(right); /* the last element is as large as there are elements */
	return a == 1;
}
