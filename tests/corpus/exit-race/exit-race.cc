/*
 * A detached thread outlives main: it reads what the destructors of static objects
 * take away.
 */
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Registry {
	std::vector<std::string *> names;

	Registry()
	{
		for (int i = 0; i < 64; i++)
			names.push_back(new std::string("service number " + std::to_string(i)));
	}
	~Registry()
	{
		for (auto &n : names) {
			delete n;			/* @delete */
			n = nullptr;			/* @clear */
		}
	}						/* @gone */
};

Registry registry;

void monitor()
{
	std::size_t total = 0;

	for (int r = 0; r < 200; r++)
		for (auto *n : registry.names)		/* @walk */
			total += n->size();		/* @use */
	std::printf("%zu\n", total / 200);
}

} // namespace

int main()
{
	std::thread(monitor).detach();			/* @detach */
	std::vector<int> squares(3000);
	for (std::size_t i = 0; i < squares.size(); i++)
		squares[i] = static_cast<int>(i * i);
	return squares[7] == 49 ? 0 : 1;
}
