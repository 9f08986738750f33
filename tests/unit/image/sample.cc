/* What image tests look at in C++. */
#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#define STOP() __asm__ volatile("int3" ::: "memory")

namespace shop {

int open_doors = 2;

struct Base {
	long id = 11;
	virtual ~Base() {}
};

class Queue : public Base {
public:
	static int made;
	int count = 0;
	std::atomic<int> pending{ 3 };
	std::mutex lock;
	std::vector<int> items;

	Queue();
	__attribute__((noinline)) void push(int v);
	template <typename T> __attribute__((noinline)) T scale(T v);
};

int Queue::made = 5;

Queue::Queue()
{
	made++;
}

void Queue::push(int v)
{
	count += v;
	STOP();
	items.push_back(v);
}

template <typename T> T Queue::scale(T v)
{
	T r = v * 2;

	STOP();
	return r + count;
}

} // namespace shop

std::atomic<int> hits;
std::atomic<bool> stop_now;
std::mutex global_lock;
shop::Queue *heap_queue;

static void by_reference(shop::Queue &q)
{
	STOP();
	q.count++;
}

int main()
{
	heap_queue = new shop::Queue();
	heap_queue->push(4);
	int v = heap_queue->scale(3);
	auto each = [v](int k) {
		STOP();
		return v + k;
	};
	by_reference(*heap_queue);
	hits = each(2);
	return hits + stop_now + shop::open_doors;
}
