// C++ threads, exceptions through once, and what the standard library builds on pthreads.
#include <condition_variable>
#include <future>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

int main()
{
	std::mutex m;
	std::condition_variable cv;
	int ready = 0;
	std::vector<std::thread> threads;

	for (int i = 0; i < 4; i++)
		threads.emplace_back([&] {
			std::lock_guard<std::mutex> l(m);
			ready++;
			cv.notify_one();
		});
	{
		std::unique_lock<std::mutex> l(m);
		cv.wait(l, [&] { return ready == 4; });
	}
	for (auto &t : threads)
		t.join();
	std::cout << "ready " << ready << '\n';

	std::once_flag once;
	int tries = 0;
	for (int i = 0; i < 3; i++) {
		try {
			std::call_once(once, [&] {
				if (++tries < 2)
					throw std::runtime_error("not yet");
			});
		} catch (const std::exception &e) {
			std::cout << "caught " << e.what() << '\n';
		}
	}
	std::cout << "tries " << tries << '\n';

	std::shared_mutex sm;
	{
		std::shared_lock<std::shared_mutex> a(sm), b;
		std::cout << "shared " << sm.try_lock() << '\n';
	}
	auto f = std::async(std::launch::async, [] { return 42; });
	std::cout << "future " << f.get() << '\n';
	thread_local std::vector<int> tl;
	std::thread([] { tl.assign(10, 1); }).join();
	return 3;
}
