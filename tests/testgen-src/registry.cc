// A registry of names that is emptied without the lock under which it is searched.
#include <map>
#include <mutex>
#include <string>

class Registry {
public:
	Registry() : names(new std::map<std::string, int>) {}
	~Registry() { delete names; }
	void add(const std::string &name, int id);
	int find(const std::string &name);
	void reset();

private:
	std::mutex lock;
	std::map<std::string, int> *names;
};

void Registry::add(const std::string &name, int id)
{
	std::lock_guard<std::mutex> hold(lock);
	(*names)[name] = id;
}

int Registry::find(const std::string &name)
{
	std::lock_guard<std::mutex> hold(lock);
	auto it = names->find(name);
	return it == names->end() ? -1 : it->second;
}

void Registry::reset()
{
#ifdef FIXED
	std::lock_guard<std::mutex> hold(lock);
#endif
	auto *old = names;
	names = nullptr;
	delete old;
	names = new std::map<std::string, int>;
}

Registry *make_registry()
{
	return new Registry;
}
