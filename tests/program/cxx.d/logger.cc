// A logging class whose instance is a static variable of a function; it formats into a static buffer, and what
// it returns is compared by memcmp().
#include <cassert>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class Logger {
public:
	static Logger &instance()
	{
		static Logger l;
		return l;
	}
	const char *format(const char *f, ...)
	{
		static char buffer[128];        // @buffer
		va_list ap;
		va_start(ap, f);
		vsnprintf(buffer, sizeof buffer, f, ap);
		va_end(ap);
		return buffer;
	}
	void write(std::string s)
	{
		std::lock_guard<std::mutex> g(m_);
		lines_.push_back(std::move(s));
	}
	std::vector<std::string> take()
	{
		std::lock_guard<std::mutex> g(m_);
		return std::move(lines_);
	}
private:
	std::mutex m_;
	std::vector<std::string> lines_;
};

static void client(const char *who, int n)
{
	for (int i = 0; i < n; i++) {
		std::string line = Logger::instance().format("%s: message %d", who, i);
		assert(line.compare(0, strlen(who), who) == 0);
		Logger::instance().write(line);
	}
}

int main()
{
	std::thread a(client, "alpha", 15), b(client, "omega", 15);
	a.join();
	b.join();
	std::printf("%zu lines\n", Logger::instance().take().size());
}
