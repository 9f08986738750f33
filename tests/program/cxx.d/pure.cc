// A base class starts a thread that calls a virtual function, and joins it in its own destructor: the object is
// none of the derived class any more by then, and the function is pure.
#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

class Worker {
public:
	void start() { thread_ = std::thread([this] { loop(); }); }
	virtual ~Worker()
	{
		quit_ = true;
		if (thread_.joinable())
			thread_.join();
	}
	int steps() const { return steps_; }
protected:
	virtual void step() = 0;
private:
	void loop()
	{
		while (!quit_ && steps_ < 50) {
			step();
			steps_++;
		}
	}
	std::thread thread_;
	std::atomic<bool> quit_{false};
	std::atomic<int> steps_{0};
};

class Counter : public Worker {
public:
	explicit Counter(std::string n) : name_(std::move(n)) {}
	~Counter() override { total += count_; }
	static long total;
protected:
	void step() override { count_ += name_.size(); }
private:
	std::string name_;
	long count_ = 0;
};
long Counter::total;

int main()
{
	for (int i = 0; i < 5; i++) {
		auto c = std::make_unique<Counter>("counter" + std::to_string(i));
		c->start();
		while (c->steps() < 3)
			std::this_thread::yield();
	}
	std::cout << "total " << (Counter::total > 0) << "\n";
}
