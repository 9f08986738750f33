// A subject calls its observers with its lock held; one of them wants to hear of one event only and takes itself off the
// list when it has. Fails in every order: whoever publishes first locks twice.
#include <cstdio>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

class Subject {
	std::mutex m;
	std::list<std::pair<int, std::function<void(const std::string &)>>> observers;
	int last = 0;

public:
	int subscribe(std::function<void(const std::string &)> f)
	{
		std::lock_guard<std::mutex> g(m);
		observers.emplace_back(++last, std::move(f));
		return last;
	}

	void unsubscribe(int id)
	{
		std::lock_guard<std::mutex> g(m);	/* @again */
		observers.remove_if([id](auto &o) { return o.first == id; });
	}

	void publish(const std::string &what)
	{
		std::lock_guard<std::mutex> g(m);	/* @first */
		for (auto &o : observers)
			o.second(what);	/* @call */
	}
};

class Once {
	Subject &subject;
	int id;

public:
	explicit Once(Subject &s) : subject(s)
	{
		id = s.subscribe([this](const std::string &what) { heard(what); });	/* @lambda */
	}

	void heard(const std::string &what)
	{
		printf("first of all: %s\n", what.c_str());
		subject.unsubscribe(id);	/* @off */
	}
};

int main()
{
	Subject subject;
	size_t letters = 0;

	subject.subscribe([&letters](const std::string &what) { letters += what.size(); });
	Once once(subject);
	std::thread a([&subject] {
		for (int i = 0; i < 3; i++)
			subject.publish("temperature " + std::to_string(20 + i));	/* @publish */
	});
	std::thread b([&subject] {
		for (int i = 0; i < 3; i++)
			subject.publish("pressure " + std::to_string(1000 + i));	/* @publish */
	});
	a.join();
	b.join();
	printf("%zu letters\n", letters);
}
