/* Allocations whose type shows in what happens to the result; each stops once. */
#include <cstdlib>
#include <new>
#include <vector>

#define STOP() __asm__ volatile("int3" ::: "memory")

struct item {
	struct item *next;
	int key;
};

struct table {
	int size;
	struct item **slot;
	struct item *spare;
};

struct item *global_item;
void *untyped;
struct table tab;
volatile long sink;

struct widget {
	int a, b;
	explicit widget(int v);
};

__attribute__((noinline)) widget::widget(int v) : a(v), b(sink) {}

extern "C" __attribute__((noinline)) void *raw_alloc(size_t n)
{
	void *p = malloc(n);

	STOP();
	return p;
}

extern "C" __attribute__((noinline)) void *checked_alloc(size_t n)
{
	void *p = raw_alloc(n);

	if (!p)
		abort();
	return p;
}

void *operator new(size_t n)
{
	return raw_alloc(n);
}

void operator delete(void *p) noexcept
{
	free(p);
}

void operator delete(void *p, size_t) noexcept
{
	free(p);
}

__attribute__((noinline)) void use(void *p)
{
	sink += (long)p;
}

__attribute__((noinline)) void local_variable()
{
	struct item *i = (struct item *)raw_alloc(sizeof *i);

	i->key = 1;
	use(i);
}

__attribute__((noinline)) void through_wrapper()
{
	struct item *i = (struct item *)checked_alloc(sizeof *i);

	i->key = 1;
	use(i);
}

__attribute__((noinline)) void global_variable()
{
	global_item = (struct item *)raw_alloc(sizeof *global_item);
}

__attribute__((noinline)) void member(struct table *t)
{
	t->size = 4;
	t->slot = (struct item **)raw_alloc(4 * sizeof *t->slot);
	use(t);
}

__attribute__((noinline)) void global_member()
{
	tab.spare = (struct item *)raw_alloc(sizeof *tab.spare);
}

__attribute__((noinline)) struct item *returned()
{
	return (struct item *)raw_alloc(sizeof(struct item));
}

__attribute__((noinline)) void nothing_known()
{
	untyped = raw_alloc(24);
}

__attribute__((noinline)) void constructed()
{
	use(new widget(3));
}

__attribute__((noinline)) void numbers()
{
	int *n = new int[10];

	n[3] = 1;
	use(n);
}

int main()
{
	struct table t;

	local_variable();
	through_wrapper();
	global_variable();
	member(&t);
	global_member();
	use(returned());
	nothing_known();
	constructed();
	numbers();
}
