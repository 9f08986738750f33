/* Names as the source has them: what the C++ library calls its parts is left out. */
#include "analyzer/symtrace/extract_internal.h"
#include "tests/lib/check.h"

#include <string.h>

static const struct {
	const char *full, *spoken;
} names[] = {
	{ "fifo->count", "fifo->count" },
	{ "buf[3]", "buf[3]" },
	{ "heap#2@table.c:13[0]", "heap#2@table.c:13[0]" },
	{ "reg.names._M_impl._M_start[10]", "reg.names[10]" },
	{ "reg.names._M_impl._M_start[10].first", "reg.names[10].first" },
	{ "reg.names._M_impl._M_start", "reg.names" },
	{ "reg.names._M_impl._M_finish", "reg.names.size()" },
	{ "cache.m._M_rwlock", "cache.m" },
	{ "hits._M_i", "hits" },
	{ "grid._M_elems[2]", "grid[2]" },
	{ "current._M_ptr", "current" },
	{ "current._M_refcount._M_pi->_M_use_count", "current.use_count()" },
	{ "p->{_M_use_count,_M_weak_count}", "p.use_count()" },
	{ "current._M_refcount._M_pi->{_M_use_count,_M_weak_count}", "current.use_count()" },
	{ "idx.m._M_h._M_before_begin._M_nxt->_M_nxt", "idx.m" },
	{ "idx.m._M_h._M_buckets[5]", "idx.m" },
	{ "b.acc_._M_t._M_impl._M_header._M_parent[2]._M_color", "b.acc_[...]" },
	{ "name._M_dataplus._M_p[4]", "name[4]" },
	{ "_M_impl._M_start[1]", "_M_impl[1]" },
	{ "this->_M_impl._M_start[1]", "this[1]" },
	{ "a.b[", "a.b[" },
	{ "", "" },
};

int main(void)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char *got = ext_spoken(xstrdup(names[i].full));

		CHECK(!strcmp(got, names[i].spoken), "`%s' is `%s' (is `%s')", names[i].full, names[i].spoken, got);
		free(got);
	}
	CHECK(!strcmp(ext_spoken_type("p.use_count()"), "int"), "of two counters the first is shown");
	CHECK(!ext_spoken_type("p.size()") && !ext_spoken_type("use_count()"), "others have their own type");
	CHECK_END();
}
