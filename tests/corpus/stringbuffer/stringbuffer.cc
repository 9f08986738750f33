/*
 * Stale length. append(other) asks the other buffer for its length and then
 * for that many characters; each call locks, the pair does not, so a character
 * erased in between makes the length stale (java.lang.StringBuffer, JDK 1.4).
 */
#include <cassert>
#include <cstdio>
#include <cstring>
#include <pthread.h>

class StringBuffer {
public:
	explicit StringBuffer(const char *text)
	{
		pthread_mutex_init(&mutex, nullptr);
		count = static_cast<int>(strlen(text));
		capacity = count + 16;
		value = new char[capacity];
		memcpy(value, text, count);
	}

	~StringBuffer()
	{
		delete[] value;
		pthread_mutex_destroy(&mutex);
	}

	StringBuffer(const StringBuffer &) = delete;
	StringBuffer &operator=(const StringBuffer &) = delete;

	int length();
	void getChars(int begin, int end, char *to);
	void append(StringBuffer &other);
	void append(const char *text);
	void erase(int begin, int end);
	void print();

private:
	void expand(int wanted);

	pthread_mutex_t mutex;
	char *value;
	int count;
	int capacity;
};

int StringBuffer::length()
{
	pthread_mutex_lock(&mutex);		/* @lock */
	int n = count;				/* @length */
	pthread_mutex_unlock(&mutex);		/* @unlock */
	return n;
}

void StringBuffer::getChars(int begin, int end, char *to)
{
	pthread_mutex_lock(&mutex);		/* @lock */
	assert(begin >= 0 && end <= count);	/* @use */
	memcpy(to, value + begin, end - begin);
	pthread_mutex_unlock(&mutex);		/* @unlock */
}

void StringBuffer::expand(int wanted)
{
	int bigger = (capacity + 1) * 2;

	if (bigger < wanted)
		bigger = wanted;
	char *fresh = new char[bigger];
	memcpy(fresh, value, count);
	delete[] value;
	value = fresh;
	capacity = bigger;
}

void StringBuffer::append(StringBuffer &other)
{
	pthread_mutex_lock(&mutex);
	int n = other.length();		/* @asks */
	if (count + n > capacity)
		expand(count + n);
	other.getChars(0, n, value + count); /* @gets */
	count += n;
	pthread_mutex_unlock(&mutex);
}

void StringBuffer::append(const char *text)
{
	int n = static_cast<int>(strlen(text));

	pthread_mutex_lock(&mutex);		/* @lock */
	if (count + n > capacity)
		expand(count + n);
	memcpy(value + count, text, n);
	count += n;				/* @grow */
	pthread_mutex_unlock(&mutex);		/* @unlock */
}

void StringBuffer::erase(int begin, int end)
{
	pthread_mutex_lock(&mutex);		/* @lock */
	if (end > count)
		end = count;
	memmove(value + begin, value + end, count - end);
	count -= end - begin;			/* @erase */
	pthread_mutex_unlock(&mutex);		/* @unlock */
}

void StringBuffer::print()
{
	pthread_mutex_lock(&mutex);
	printf("%.*s\n", count, value);
	pthread_mutex_unlock(&mutex);
}

static StringBuffer *shared;

static void *editor(void *)
{
	for (int i = 0; i < 4; i++) {
		shared->erase(0, 6);
		shared->append("abcdef");
	}
	return nullptr;
}

int main()
{
	StringBuffer own("copy: ");
	pthread_t thread;

	shared = new StringBuffer("abcdef");
	pthread_create(&thread, nullptr, editor, nullptr);
	for (int i = 0; i < 4; i++)
		own.append(*shared);
	pthread_join(thread, nullptr);
	own.print();
	delete shared;
	return 0;
}
