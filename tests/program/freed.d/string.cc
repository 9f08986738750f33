// string: c_str() of a string that is assigned anew.
#include <string>
#include <thread>
#include <cstring>
#include <cstdlib>
static std::string name(60, 'a');
static volatile long spun;
static void logger()
{
	const char *text = name.c_str();
	for (int i = 0; i < 300; i++) {
		for (int k = 0; k < 50; k++)
			spun = spun + k;
		if (strlen(text) != 60)		// use
			abort();
	}
}
int main()
{
	std::thread t(logger);
	for (int k = 0; k < 20000; k++)
		spun = spun + k;
	name.assign(400, 'b');			// free
	t.join();
}
