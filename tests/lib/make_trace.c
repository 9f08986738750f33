/* make_trace DIR: a small valid trace, for script tests. */
#include "tests/lib/trace_writer.h"

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	tw_sample(argv[1]);
	return 0;
}
