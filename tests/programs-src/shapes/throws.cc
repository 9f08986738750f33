/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exceptions under a lock; with BUG they leave it locked */
#include <mutex>
#include <stdexcept>
#include <thread>
#include <cstdio>
static std::mutex m;
static int level;
static void take(int n)
{
#ifdef BUG
	m.lock();
	if (level < n)
		throw std::runtime_error("empty");
	level -= n;
	m.unlock();
#else
	std::lock_guard<std::mutex> g(m);
	if (level < n)
		throw std::runtime_error("empty");
	level -= n;
#endif
}
static void fill(int n)
{
	std::lock_guard<std::mutex> g(m);
	level += n;
}
int main()
{
	std::thread f([] { fill(5); }), t([] {
		try {
			take(3);
		} catch (std::exception &e) {
		}
		try {
			take(1);
		} catch (std::exception &e) {
		}
	});
	f.join();
	t.join();
	return 0;
}
