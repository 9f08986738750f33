// Ends with an uncaught exception in a thread; the argument says of which type.
#include <stdexcept>
#include <string>
#include <thread>

namespace db {
struct Error {};
}
struct Plain {};
template <class T> struct Box { T value; };

int main(int argc, char **argv)
{
	std::string which = argc > 1 ? argv[1] : "";

	std::thread([which] {
		if (which == "own")
			throw db::Error();
		if (which == "plain")
			throw Plain();
		if (which == "template")
			throw Box<int>();
		if (which == "int")
			throw 1;
		throw std::out_of_range("too far");
	}).join();
}
