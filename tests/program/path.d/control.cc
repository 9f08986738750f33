// Control flow that jumps: exceptions, longjmp, contexts, dlopen and dlclose, code that goes away.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

static int depth(int n)
{
	struct guard {
		int &c;
		~guard() { c++; }
	};
	static int unwound;
	guard g{unwound};

	if (n == 0)
		throw std::runtime_error("bottom " + std::to_string(unwound));
	return depth(n - 1) + unwound;
}

static ucontext_t back, coroutine;
static std::vector<int> order;

static void body()
{
	for (int i = 0; i < 3; i++) {
		order.push_back(10 + i);
		swapcontext(&coroutine, &back);
	}
}

static jmp_buf again;

__attribute__((noinline)) static int jump(int n)
{
	char pad[200];

	memset(pad, n, sizeof pad);
	if (n > 5)
		longjmp(again, pad[3]);
	return jump(n + 1) + pad[n];
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++) {
		try {
			depth(20);
		} catch (const std::exception &e) {
			printf("caught %s\n", e.what());
		}
	}
	static char stack[65536];

	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = sizeof stack;
	coroutine.uc_link = &back;
	makecontext(&coroutine, body, 0);
	for (int i = 0; i < 3; i++) {
		order.push_back(i);
		swapcontext(&back, &coroutine);
	}
	for (int v : order)
		printf("%d ", v);
	volatile int rounds = 0;
	int v = setjmp(again);
	if (rounds++ < 3)
		jump(rounds);
	printf("jumped %d %d\n", rounds, v);
	// the same addresses hold different code every time
	for (int i = 0; i < 6 && argc > 2; i++) {
		void *lib = dlopen(argv[1 + i % 2], RTLD_NOW);
		auto f = lib ? (int (*)(int))dlsym(lib, "answer") : nullptr;

		printf("%s answers %d\n", i % 2 ? "second" : "first", f ? f(i) : -1);
		if (lib)
			dlclose(lib);
	}
	return 0;
}
