/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines that the shim reads. */
#include "analyzer/fix/fix.h"

void fix_free(struct fix *f)
{
	strbuf_free(&f->points);
	*f = (struct fix){ 0 };
}

void fix_point(struct fix *f, const char *keyword, unsigned item, const char *module, uint64_t offset)
{
	strbuf_fmt(&f->points, "%s %u %s %llx\n", keyword, item, module, (unsigned long long)offset);
}

unsigned fix_region(struct fix *f, unsigned lock, unsigned up, unsigned count)
{
	strbuf_fmt(&f->points, "region %u %u %u %u\n", f->nitems, lock, up, count);
	return f->nitems++;
}
