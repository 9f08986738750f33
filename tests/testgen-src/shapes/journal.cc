// A class behind a pointer to its implementation, made by a static function, that throws: its size is asked for before it
// is read.
#include <memory>
#include <mutex>
#include <string>
#include <vector>

class Journal {
public:
	enum class Level { Low, Middle, High = 7 };
	static Journal *open(const char *name);
	~Journal();
	Journal(const Journal &) = delete;
	void write(Level level, const std::string &line);
	std::string last() const;
	void clear();
	unsigned length() const;

private:
	struct Parts;
	explicit Journal(Parts *parts);
	std::unique_ptr<Parts> parts;
};

struct Journal::Parts {
	std::mutex lock;
	std::string name;
	std::vector<std::string> lines;
};

Journal::Journal(Parts *p) : parts(p) {}
Journal::~Journal() = default;

Journal *Journal::open(const char *name)
{
	if (!name)
		return nullptr;
	auto *p = new Parts;
	p->name = name;
	return new Journal(p);
}

void Journal::write(Level level, const std::string &line)
{
	std::lock_guard<std::mutex> hold(parts->lock);
	parts->lines.push_back(std::to_string(static_cast<int>(level)) + " " + line);
}

unsigned Journal::length() const
{
	std::lock_guard<std::mutex> hold(parts->lock);
	return static_cast<unsigned>(parts->lines.size());
}

std::string Journal::last() const
{
#ifdef FIXED
	std::lock_guard<std::mutex> hold(parts->lock);
	return parts->lines.empty() ? std::string() : parts->lines.at(parts->lines.size() - 1);
#else
	unsigned n = length();
	if (!n)
		return std::string();
	std::lock_guard<std::mutex> hold(parts->lock);
	return parts->lines.at(n - 1);
#endif
}

void Journal::clear()
{
	std::lock_guard<std::mutex> hold(parts->lock);
	parts->lines.clear();
}
