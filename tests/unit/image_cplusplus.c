/* C++: demangled frames, class and namespace names, what the library hides. */
#include "analyzer/image/internal.h"
#include "tests/unit/image_live.h"

static const char *what;

static bool in_function(struct live *l, const char *part)
{
	struct img_frame f[16];
	size_t n = img_frames(l->set, l->regs.r[IMG_RIP] - 1, f, 16);

	if (n && same(f[0].function, part) && f[0].line)
		return true;
	printf("in %s\n", n ? f[0].function : "nothing");
	return false;
}

static void check_statics(struct live *l)
{
	CHECK_NAME(l, address(l, "shop::open_doors"), 4, NULL, "shop::open_doors");
	CHECK_NAME(l, address(l, "shop::Queue::made"), 4, NULL, "shop::Queue::made");
	CHECK_NAME(l, address(l, "hits"), 4, NULL, "hits");
	CHECK_NAME(l, address(l, "stop_now"), 1, NULL, "stop_now");
	CHECK_NAME(l, address(l, "global_lock"), 4, NULL, "global_lock");
}

/* Offsets as the Itanium ABI lays Queue out: vptr, id, count, pending, lock, items. */
static void check_object(struct live *l, const char *pointer)
{
	uint64_t q = word_at(l, address(l, "heap_queue"));
	char want[64];
	static const struct {
		unsigned offset, size;
		const char *member;
	} part[] = {
		{ 8, 8, "id" }, { 16, 4, "count" }, { 20, 4, "pending" }, { 24, 4, "lock" },
		{ 72, 8, "items._M_finish" },
	};

	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		/* With push_back inlined, the vector is the innermost `this`. */
		if (strstr(what, "-O2") && strstr(part[i].member, "items"))
			continue;
		snprintf(want, sizeof want, "%s%s", pointer, part[i].member);
		CHECK_NAME(l, q + part[i].offset, part[i].size, NULL, want);
	}
}

static void check_program(const char *compiler, const char *flags)
{
	char title[128];
	struct live l;

	snprintf(title, sizeof title, "%s %s", compiler, flags);
	what = title;
	if (!CHECK(live_build(compiler, flags, "sample.cc", "prog"), "%s: builds", what))
		return;
	if (!CHECK(live_start(&l, "./prog"), "%s: runs", what))
		return;
	CHECK(in_function(&l, "shop::Queue::push"), "%s: method", what);
	check_statics(&l);
	check_object(&l, "heap_queue->"); /* a method's `this` says less than the global that leads there */
	live_go(&l);
	CHECK(in_function(&l, "shop::Queue::scale<int>"), "%s: template", what);
	live_go(&l);
	CHECK(in_function(&l, "by_reference"), "%s: file-local function", what);
	check_object(&l, "q.");
	live_go(&l);
	CHECK(in_function(&l, "lambda at sample.cc:71"), "%s: lambda", what);
	live_end(&l);
}

static void check_rust(void)
{
	static const char *const name[][2] = {
		{ "_ZN10static_mut5COUNT17h710489931efe12a6E", "static_mut::COUNT" },
		{ "_ZN4core3ptr34drop_in_place$LT$std..fs..File$GT$17h10c18bdef1c8b375E",
		  "core::ptr::drop_in_place<std::fs::File>" },
		{ "_ZN50_$LT$app..Row$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE",
		  "<app::Row as core::ops::drop::Drop>::drop" },
		{ "_ZN3app4hashE", "app::hash" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
		{ "_RNvNtC7mycrate3mod3foo.llvm.12345", "mycrate::mod::foo" },
		{ "_RNCNvC7mycrate3foo0B3_", "mycrate::foo::{{closure}}" },
		{ "_RNvMs_C3appNtB4_6Office4sell", "app::Office::sell" },
		{ "_RNvXCs_3appNtB2_3RowNtNtC4core3ops4Drop4drop", "<app::Row as core::ops::Drop>::drop" },
		{ "_RINvC3app4swaplRNtB2_3RowE", "app::swap<i32, &app::Row>" },
		{ "_RINvC3app4mainFjEuTjSmEE", "app::main<fn(usize), (usize, [u32])>" },
		{ "_RNvB_3foo", "_RNvB_3foo" },           /* a path that is itself */
		{ "_RNvC99999999999999999999a3b", "_RNvC99999999999999999999a3b" },
		{ "_RNvC7mycrate3fo", "_RNvC7mycrate3fo" },
		{ "_Reset", "_Reset" },
	};
	struct img_set *set = img_set_new();

	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		const char *got = img_demangle(set, name[i][0]);

		CHECK(!strcmp(got, name[i][1]), "%s (is %s)", name[i][1], got);
	}
	img_set_free(set);
}

/* Signatures of every shape, and what frames call them. */
static void check_brief(void)
{
	static const char *const name[][2] = {
		{ "plain", "plain" },
		{ "shop::Queue::push(int)", "shop::Queue::push" },
		{ "int shop::Queue::scale<int>(int)", "shop::Queue::scale<int>" },
		{ "Queue::size() const", "Queue::size" },
		{ "Queue::take() &&", "Queue::take" },
		{ "(anonymous namespace)::f", "(anonymous namespace)::f" },
		{ "(anonymous namespace)::f(int)", "(anonymous namespace)::f" },
		{ "main::{lambda(int)#1}::operator()(int) const",
		  "main::{lambda(int)#1}::operator()" },
		{ "operator()", "operator()" },
		{ "main._omp_fn.0", "parallel region in main" },
		{ "solver::run(int)._omp_fn.1", "parallel region in solver::run" },
		{ "panic::main::{{closure}}::{{closure}}", "closure in panic::main" },
		{ "operator new(unsigned long)", "operator new" },
		{ "bool std::operator< <char>(X<char> const&, X<char> const&)",
		  "std::operator< <char>" },
		{ "P::operator->() const", "P::operator->" },
		{ "P::operator bool() const", "P::operator bool" },
		{ "operators::run(int (*)(int))", "operators::run" },
		{ "std::vector<std::pair<int, long>, std::allocator<std::pair<int, long> > >"
		  "::push_back(std::pair<int, long>&&)", "std::vector<...>::push_back" },
		{ "A<1>::B<std::map<int, std::vector<std::vector<std::vector<long> > > >, 12345678>"
		  "::operator<<(int)", "A<...>::B<...>::operator<<" },
		{ "qsort@plt", "qsort@plt" },
		{ "", "" },
		{ ")", ")" },
		{ "f)(", "f)(" },
	};
	struct img_set *set = img_set_new();

	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		CHECK(same(img_brief(set, name[i][0]), name[i][1]), "brief name %s (got %s)",
		      name[i][1], img_brief(set, name[i][0]));
	img_set_free(set);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	check_brief();
	check_rust();
	check_program("g++", "-g -O0");
	check_program("g++", "-g -O2");
	check_program("g++", "-gdwarf-4 -O0 -no-pie");
	check_program("clang++", "-g -O0");
	CHECK_END();
}
