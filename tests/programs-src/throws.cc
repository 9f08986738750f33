// Ends with an uncaught exception in a thread.
#include <stdexcept>
#include <thread>

int main()
{
	std::thread([] { throw std::out_of_range("too far"); }).join();
}
