// A time series: whether it is empty is asked under one lock, its last value taken under the next.
#include <mutex>
#include <vector>

namespace chart {
class Series {
public:
	Series();
	~Series();
	void add(double value);
	void removeLast();
	double last();

private:
	bool isEmpty();
	std::mutex lock;
	std::vector<double> values;
};

Series::Series() {}
Series::~Series() {}

void Series::add(double value)
{
	std::lock_guard<std::mutex> hold(lock);
	values.push_back(value);
}

void Series::removeLast()
{
	std::lock_guard<std::mutex> hold(lock);
	if (!values.empty())
		values.pop_back();
}

bool Series::isEmpty()
{
	std::lock_guard<std::mutex> hold(lock);
	return values.empty();
}

double Series::last()
{
#ifdef FIXED
	std::lock_guard<std::mutex> hold(lock);
	return values.empty() ? 0 : values.at(values.size() - 1);
#else
	if (isEmpty())
		return 0;
	std::lock_guard<std::mutex> hold(lock);
	return values.at(values.size() - 1);
#endif
}
}
