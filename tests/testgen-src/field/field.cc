// Programs "from the field": two threads use one object of a library of tests/testgen-src until it fails. -DSUBJECT_name
// chooses which. With FIELD_BACKTRACE set they print their own stack when they crash; a deadlock aborts after a while.
#include <execinfo.h>
#include <map>
#include <mutex>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string>
#include <time.h>
#include <unistd.h>
#include <vector>

static volatile unsigned long beats;

#if defined SUBJECT_logger
extern "C" { struct logger; logger *logger_new(); void logger_set_filter(logger *, int); void logger_info(logger *, const char *); }
static logger *l = logger_new();
static void one() { logger_info(l, "hello"); }
static void two() { logger_set_filter(l, 1); logger_set_filter(l, 0); }
#elif defined SUBJECT_vector
extern "C" { struct vector; vector *vector_create(unsigned); void vector_add(vector *, int); void vector_clear(vector *);
int vector_last_index_of(vector *, int); }
static struct vector *v = vector_create(8);
static void one() { vector_last_index_of(v, 3); }
static void two() { vector_add(v, 1); vector_clear(v); }
#elif defined SUBJECT_axis
extern "C" { struct axis; axis *axis_new(); void axis_set_range(axis *, double, double); double axis_tick(axis *); }
static axis *a = axis_new();
static void one() { axis_tick(a); }
static void two() { axis_set_range(a, 5, 1); axis_set_range(a, 0, 1); }
#elif defined SUBJECT_range
extern "C" { struct range; int range_init(range *, int, int); int range_first_char(range *); void range_move(range *, int); }
static long place[64];
static range *r = (range_init((range *)place, 1, 5), (range *)place);
static void one() { range_first_char(r); }
static void two() { range_move(r, 1); }
#elif defined SUBJECT_stream
extern "C" { struct stream; stream *stream_open(const char *); int stream_read(stream *); void stream_rewind(stream *);
void stream_shut(stream *); }
static stream *volatile s = stream_open("a longer text that takes a while to be read to its end");
static void one() { stream *now = s; for (int i = 0; i < 40; i++) stream_read(now); stream_rewind(now); }
static void two() { s = stream_open("another text that takes a while to be read to its end"); stream_shut(s); }
#elif defined SUBJECT_sbuf
extern "C" { struct sbuf; int sbuf_create(sbuf **); void sbuf_append(sbuf *, const char *); void sbuf_delete_char(sbuf *);
void sbuf_append_buffer(sbuf *, sbuf *); }
static sbuf *make() { sbuf *b; sbuf_create(&b); return b; }
static sbuf *b = make();
static void one() { sbuf_append_buffer(b, b); }
static void two() { sbuf_append(b, "x"); sbuf_delete_char(b); sbuf_delete_char(b); }
#elif defined SUBJECT_config
extern "C" { struct config; config *config_new(); int config_first_letter(config *); int config_level(config *); }
static config *volatile c = config_new();
static void one() { config_first_letter(c); }
static void two() { c = config_new(); config_first_letter(c); }
#elif defined SUBJECT_registry
class Registry {
public:
	Registry() : names(new std::map<std::string, int>) {}
	void add(const std::string &name, int id);
	int find(const std::string &name);
	void reset();
private:
	std::mutex lock;
	std::map<std::string, int> *names;
};
static Registry r;
static void one() { r.find("name"); }
static void two() { r.reset(); }
#elif defined SUBJECT_series
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
}
static chart::Series s;
static void one() { s.last(); }
static void two() { s.add(1); s.removeLast(); }
#elif defined SUBJECT_pool
extern "C" { struct pool; pool *pool_open(); void pool_add(pool *); void pool_shutdown(pool *); }
static pool *p = pool_open();
static void one() { pool_add(p); }
static void two() { pool_shutdown(p); }
#endif

static void crashed(int sig)
{
	void *frames[64];

	backtrace_symbols_fd(frames, backtrace(frames, 64), 2);
	signal(sig, SIG_DFL);
	raise(sig);
}

template <void (*call)()> static void *run(void *)
{
	for (;;) {
		call();
		beats = beats + 1;
	}
}

int main()
{
	pthread_t a, b;
	void *warm[1];

	backtrace(warm, 1);
	if (getenv("FIELD_BACKTRACE"))
		for (int sig : { SIGSEGV, SIGABRT })
			signal(sig, crashed);
	pthread_create(&a, nullptr, run<one>, nullptr);
	pthread_create(&b, nullptr, run<two>, nullptr);
	for (int still = 0, rounds = 0; rounds < 600; rounds++) {
		unsigned long before = beats;

		usleep(100000);
		still = beats == before ? still + 1 : 0;
		if (still == 10)
			kill(getpid(), SIGQUIT); /* a deadlock: the debugger takes over */
	}
}
