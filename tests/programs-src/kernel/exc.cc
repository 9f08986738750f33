#include <csignal>
#include <cstdio>
#include <exception>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <atomic>
#include <mutex>
#include <condition_variable>
#include <shared_mutex>
#include <vector>
#include <pthread.h>
#include <unistd.h>
struct D {
	const char *n;
	~D()
	{
		printf("~%s\n", n);
	}
};
static int *volatile null;
static void h(int s)
{
	throw std::runtime_error("from handler " + std::to_string(s));
}
static void __attribute__((noinline)) crash()
{
	D d{"crash"};
	*null = 1;
}
thread_local D tl{"tls"};
static void *can(void *)
{
	D d{"cancelled"};
	tl.n = "tls cancel";
	try {
		for (;;)
			pause();
	} catch (...) {
		puts("forced unwind");
		throw;
	}
	return nullptr;
}
int main()
{
	struct sigaction a = {};
	a.sa_handler = h;
	a.sa_flags = SA_NODEFER;
	sigaction(SIGSEGV, &a, nullptr);
	sigaction(SIGFPE, &a, nullptr);
	for (int i = 0; i < 2; i++)
		try {
			crash();
		} catch (std::exception &e) {
			puts(e.what());
		}
	volatile int z = 0;
	try {
		D d{"div"};
		printf("%d\n", 1 / z);
	} catch (std::exception &e) {
		puts(e.what());
	}
	auto f = std::async(std::launch::async, [] {
		tl.n = "tls async";
		throw std::logic_error("async");
		return 1;
	});
	try {
		f.get();
	} catch (std::exception &e) {
		puts(e.what());
	}
	pthread_t t;
	pthread_create(&t, nullptr, can, nullptr);
	usleep(2000);
	pthread_cancel(t);
	pthread_join(t, nullptr);
	std::promise<int> p;
	std::thread th([&] { p.set_value(6); });
	printf("%d\n", p.get_future().get());
	th.join();
	std::atomic<int> c{0};
	std::vector<std::thread> v;
	std::mutex m;
	long total = 0;
	for (int i = 0; i < 4; i++)
		v.emplace_back([&, i] {
			for (int k = 0; k < 100; k++) {
				std::lock_guard<std::mutex> g(m);
				total += i;
				c++;
			}
		});
	for (auto &x : v)
		x.join();
	printf("%d %ld\n", c.load(), total);
	std::exception_ptr ep;
	try {
		throw 5;
	} catch (...) {
		ep = std::current_exception();
	}
	try {
		std::rethrow_exception(ep);
	} catch (int x) {
		printf("%d\n", x);
	}
	std::shared_mutex sm;
	sm.lock_shared();
	printf("%d %d\n", sm.try_lock(), sm.try_lock_shared());
	std::set_terminate([] {
		puts("terminate");
		fflush(stdout);
		_exit(9);
	});
	throw 1;
}
