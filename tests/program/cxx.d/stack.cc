// empty() and pop() are locked each for itself: both ask vector::empty(), which is one function.
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

class Stack {
public:
	void push(int v)
	{
		std::lock_guard<std::mutex> g(m_);
		v_.push_back(v);
	}
	bool empty() const
	{
		std::lock_guard<std::mutex> g(m_);
		return v_.empty();
	}
	int pop()
	{
		std::lock_guard<std::mutex> g(m_);
		if (v_.empty())
			throw std::out_of_range("pop from an empty stack");
		int r = v_.back();
		v_.pop_back();
		return r;
	}
private:
	mutable std::mutex m_;
	std::vector<int> v_;
};

static long drain(Stack &s)
{
	long t = 0;
	while (!s.empty())
		t += s.pop();         
	return t;
}

int main()
{
	Stack s;
	for (int i = 0; i < 30; i++)
		s.push(i);
	long a = 0, b = 0;
	std::thread t1([&] { a = drain(s); });
	std::thread t2([&] { b = drain(s); });
	t1.join();
	t2.join();
	std::printf("%ld\n", a + b);
}
