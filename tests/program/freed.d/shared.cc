// shared_ptr misuse: a raw pointer is taken out of it and outlives the last owner.
#include <memory>
#include <thread>
#include <cstdlib>
struct Config { int limit = 5; int spare[8] = {}; ~Config() { limit = 0; } };
static std::shared_ptr<Config> current(new Config);
static volatile long spun;
static void reader(Config *raw)
{
	for (int i = 0; i < 300; i++) {
		for (int k = 0; k < 50; k++)
			spun = spun + k;
		if (raw->limit != 5)		// use
			abort();
	}
}
int main()
{
	std::thread t(reader, current.get());
	for (int k = 0; k < 20000; k++)
		spun = spun + k;
	current.reset();			// free
	t.join();
}
