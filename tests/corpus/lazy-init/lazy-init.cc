/*
 * Made when it is first wanted, by whoever comes first: two find that there is none, and each makes one. What was kept in
 * the first is gone.
 */
#include <atomic>
#include <cassert>
#include <cstdio>
#include <memory>
#include <thread>

namespace {

struct journal {
	std::atomic<int> lines{0};
};

std::atomic<journal *> current;
std::atomic<int> written;

journal *get_journal()
{
	journal *j = current.load();	/* @look */

	if (!j) {
		j = new journal;
		current.store(j);	/* @make */
	}
	return j;
}

void write_lines()
{
	for (int i = 0; i < 4; i++) {
		get_journal()->lines++;	/* @write */
		written++;
	}
}

} // namespace

int main()
{
	std::thread a(write_lines), b(write_lines);

	a.join();
	b.join();
	assert(current.load()->lines == written);	/* @audit */
	std::printf("%d lines\n", written.load());
}
