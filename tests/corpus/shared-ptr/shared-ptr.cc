/*
 * A shared_ptr is not atomic. One thread copies the current plugin while main
 * replaces it; the copy can take the old pointer with the new (or a dying) count,
 * and the call goes into a deleted object.
 */
#include <cstdio>
#include <memory>
#include <thread>

struct Plugin {
	virtual ~Plugin() = default;
	virtual int run(int x) = 0;
};

struct Doubler : Plugin {
	int factor = 2;
	int run(int x) override { return x * factor; }
};

struct Squarer : Plugin {
	int bias = 0;
	int run(int x) override { return x * x + bias; }
};

static std::shared_ptr<Plugin> current{new Doubler};

static void user(long &sum)
{
	for (int i = 0; i < 100; i++) {
		std::shared_ptr<Plugin> plugin = current;	/* @copy */

		sum += plugin->run(i);				/* @use */
	}
}

/* The next plugin, with what it has to compute beforehand. */
static std::shared_ptr<Plugin> load()
{
	std::shared_ptr<Squarer> next{new Squarer};

	for (int i = 1; i < 600000; i++)
		next->bias = (next->bias * 31 + i) % 1009;
	return next;
}

int main()
{
	long sum = 0;
	std::thread thread(user, std::ref(sum));
	std::shared_ptr<Plugin> next = load();

	current = std::move(next);				/* @replace */
	thread.join();
	std::printf("%s\n", sum >= 9900 ? "ran" : "odd");
	return 0;
}
