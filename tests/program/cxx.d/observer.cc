// A list of observers that is walked without the lock under which others take themselves out of it.
#include <algorithm>
#include <cstdio>
#include <list>
#include <mutex>
#include <thread>
#include <vector>
struct Observer { virtual ~Observer() = default; virtual void changed(int) = 0; };
class Subject {
public:
	void attach(Observer *o) { std::lock_guard g(m_); obs_.push_back(o); }
	void detach(Observer *o) { std::lock_guard g(m_); obs_.remove(o); } // @remove
	void notify(int v)
	{
		for (auto it = obs_.begin(); it != obs_.end(); ++it) // @walk
			(*it)->changed(v);
	}
private:
	std::mutex m_;
	std::list<Observer *> obs_;
};
struct Counter : Observer {
	long sum = 0;
	std::vector<int> seen;
	void changed(int v) override { sum += v; seen.push_back(v); }
};
int main()
{
	Subject s;
	Counter permanent;
	s.attach(&permanent);
	std::thread n([&] { for (int i = 0; i < 20; i++) s.notify(i); });
	std::thread c([&] {
		for (int i = 0; i < 10; i++) {
			auto *o = new Counter;
			s.attach(o);
			s.detach(o);
			delete o;
		}
	});
	n.join(); c.join();
	std::printf("%ld\n", permanent.sum);
}
