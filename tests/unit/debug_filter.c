/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the confined stub may send to gdb, and what ends the connection. */
#include "analyzer/debug/filter.h"
#include "analyzer/debug/packet.h"
#include "tests/lib/check.h"

#include <stdlib.h>
#include <string.h>

/* Sent in pieces of `step` bytes; what passed, or NULL when it was refused. */
static char *passes(const char *data, size_t n, size_t step)
{
	struct filter f = { { 0 } };
	struct strbuf out = { 0 };
	bool good = true;

	for (size_t at = 0; at < n && good; at += step)
		good = filter_add(&f, data + at, n - at < step ? n - at : step, &out);
	filter_free(&f);
	if (!good)
		strbuf_free(&out);
	return good ? strbuf_take(&out) : NULL;
}

static bool same(const char *data)
{
	bool good = true;

	for (size_t step = 1; step < 9; step += 3) {
		char *out = passes(data, strlen(data), step);

		good = good && out && !strcmp(out, data);
		free(out);
	}
	return good;
}

static bool refused(const char *data, size_t n)
{
	bool good = true;

	for (size_t step = 1; step < 9; step += 3) {
		char *out = passes(data, n, step);

		good = good && !out;
		free(out);
	}
	return good;
}

#define REFUSED(s) refused(s, sizeof(s) - 1)

int main(void)
{
	char *part, *large = malloc(3 * PACKET_MAX);

	CHECK(same("+$OK#9a+$T05thread:1;06:0*!;#00-$#00$l<xml name=\"T0 main\"/>#0f"), "a stub's answers pass");
	CHECK(same("$O68690a#00$O#00$OK#9a$E.not here#00$m1,2#00"), "and console output that is text");
	CHECK(REFUSED("$Fopen,1/2,0,0#00") && REFUSED("+$F#00"), "a target that wants files on gdb's machine is refused");
	CHECK(REFUSED("$T05;$Fopen,1#00"), "also when it begins in the middle of a packet");
	CHECK(REFUSED("$OK#$Fopen,1#00") && REFUSED("$OK#9$Fsystem,1#00"), "or of a checksum");
	CHECK(REFUSED("$}\x66open,1/2,0,0#00") && REFUSED("$*Fx#00"), "or is written in another way");
	CHECK(REFUSED("%Stop:T05#00") && REFUSED("x") && REFUSED("$a\0Fopen#00") && REFUSED("\0$OK#9a"), "nothing stands between packets");
	CHECK(REFUSED("$E.\x1b[31mred#00") && REFUSED("$l<a b=\"\xc2\x9b\"/>#00"), "escapes in an answer are refused");
	CHECK(REFUSED("$O1b5b33316d#00") && REFUSED("$Oc29b33316d#00") && REFUSED("$O07#00") && REFUSED("$O4x#00"), "and in console output");
	CHECK(same("$Oc3bc0a#00"), "where letters may be letters");
	part = passes("$T05thread:1;", 13, 1);
	CHECK(part && !*part, "half a packet waits");
	free(part);
	memset(large, 'a', 3 * PACKET_MAX);
	large[0] = '$';
	CHECK(refused(large, 3 * PACKET_MAX), "a packet has an end");
	free(large);
	CHECK_END();
}
