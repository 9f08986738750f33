// A class with string, vector and map members and templates instantiated behind it: one walk over them is not locked.
#include <map>
#include <mutex>
#include <string>
#include <vector>

template <typename K, typename V> class Index {
public:
	void put(const K &k, const V &v) { values[k].push_back(v); }
	bool drop(const K &k) { return values.erase(k) > 0; }
	std::size_t size(const K &k) const
	{
		auto i = values.find(k);
		return i == values.end() ? 0 : i->second.size();
	}
	std::size_t all() const
	{
		std::size_t n = 0;
		for (const auto &v : values)
			n += v.second.size();
		return n;
	}

private:
	std::map<K, std::vector<V>> values;
};

namespace notify {

class Observers {
public:
	explicit Observers(const std::string &name);
	virtual ~Observers();
	int subscribe(const std::string &topic, int who);
	bool unsubscribe(const std::string &topic);
	std::size_t count(const std::string &topic) const;
	std::size_t everybody() const;
	const std::string &name() const;

private:
	mutable std::mutex lock;
	std::string title;
	Index<std::string, int> index;
};

Observers::Observers(const std::string &name) : title(name) {}
Observers::~Observers() {}

int Observers::subscribe(const std::string &topic, int who)
{
	std::lock_guard<std::mutex> hold(lock);
	index.put(topic, who);
	return who;
}

bool Observers::unsubscribe(const std::string &topic)
{
	std::lock_guard<std::mutex> hold(lock);
	return index.drop(topic);
}

std::size_t Observers::count(const std::string &topic) const
{
	std::lock_guard<std::mutex> hold(lock);
	return index.size(topic);
}

std::size_t Observers::everybody() const
{
#ifdef FIXED
	std::lock_guard<std::mutex> hold(lock);
#endif
	return index.all();
}

const std::string &Observers::name() const { return title; }

}
