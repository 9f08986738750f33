/* The .sym text: what is written is read back exactly; what is wrong is named. */
#include "analyzer/symtrace/symtrace.h"
#include "common/vec.h"
#include "tests/lib/check.h"

#include <stdlib.h>
#include <string.h>

static err_t from_text(const char *s, struct sym_trace **t)
{
	FILE *f = fmemopen((char *)s, strlen(s), "r");
	err_t e = sym_read(f, "x.sym", t);

	fclose(f);
	return e;
}

static char *to_text(const struct sym_trace *t)
{
	char *s;
	size_t n;
	FILE *f = open_memstream(&s, &n);
	err_t e = sym_write(f, t);

	fclose(f);
	err_free(e);
	return s;
}

static const char sample[] =
	"csched-sym 1\n"
	"# a comment\n"
	"program \"a \\\"b\\\" \\x01\"\n"
	"var x 32 init 0\n"
	"var y 8 name \"s->y\" type \"char\" address 0x10\n"
	"var big int\n"
	"object m mutex recursive\n"
	"object s sem count 2 owner T0.1\n"
	"stack k\n"
	"  frame \"main\" file \"a.c\" line 3 pc 0x1234 module \"a\"\n"
	"  frame \"_start\"\n"
	"thread T0 name \"main\"\n"
	"  start\n"
	"  fork T0.1 time 5 9 at 0x400 1 stack k\n"
	"  lock m\n"
	"  write x 7 seen 7 step 3\n"
	"  unlock m operand x\n"
	"  fail\n"
	"thread T0.1\n"
	"  cond true\n"
	"  start\n"
	"  read x r1 fixed 0x7\n"
	"  cond (eq r1 7) stack k\n"
	"  rmw y r2 (add r2 (extract 0 8 (add r1 r1)))\n"
	"  rmw y r3 none\n"
	"  trylock m result 0\n"
	"  write big (ite (slt (sub 3:int 4) 0) -1:int 1)\n"
	"  cond (bor (ult r2 r3) (bnot (eq r2 r3))) after 1\n"
	"  exit\n"
	"failure assert thread T0 text \"n == 2\" if (eq r1 0x7)\n"
	"assumption \"none\"\n";

static void round_trip(void)
{
	struct sym_trace *t, *u;
	char *one, *two;
	err_t e = from_text(sample, &t);

	if (!CHECK(!e, "sample reads%s%s", e ? ": " : "", e ? e->msg : ""))
		return;
	CHECK(t->nthreads == 2 && t->threads[1].nconds == 3 && t->nvars == 3, "sample's counts");
	CHECK(t->threads[0].events[1].peer == 1, "forward name of a thread");
	CHECK(t->objects[1].owner == 1, "owner of an object");
	CHECK(t->threads[1].conds[2].after == 1 && t->threads[1].conds[0].after == SYM_NONE,
	      "place of conditions");
	one = to_text(t);
	e = from_text(one, &u);
	if (CHECK(!e, "written text reads%s%s", e ? ": " : "", e ? e->msg : "")) {
		two = to_text(u);
		CHECK(!strcmp(one, two), "text round-trips exactly");
		free(two);
		sym_trace_free(u);
	}
	free(one);
	sym_trace_free(t);
}

/* Sharing: 60 doublings would be 2^60 characters if written out. */
static void shared_parts(void)
{
	struct sym_trace *t = sym_trace_new(), *u;
	expr_id e = expr_symbol(t->pool, 64, "r");
	struct sym_cond c = { .after = SYM_NONE, .stack = SYM_NONE };
	char *one, *two;
	err_t err;

	for (int i = 0; i < 60; i++)
		e = expr_binary(t->pool, EX_XOR, expr_binary(t->pool, EX_MUL, e, e),
				expr_const(t->pool, 64, i + 1));
	for (int i = 0; i < 3000; i++)
		e = expr_binary(t->pool, EX_MUL, expr_unary(t->pool, EX_NOT, e),
				expr_const(t->pool, 64, i + 2));
	c.cond = expr_binary(t->pool, EX_ULT, e, expr_const(t->pool, 64, 9));
	sym_add_thread(t, "T 0", NULL);
	sym_add_cond(t, 0, &c);
	one = to_text(t);
	CHECK(strlen(one) < 300000, "shared parts are written once (%zu bytes)", strlen(one));
	err = from_text(one, &u);
	if (CHECK(!err, "deep expression reads%s%s", err ? ": " : "", err ? err->msg : "")) {
		uint64_t r = 12345;

		two = to_text(u);
		CHECK(!strcmp(one, two), "deep expression round-trips");
		CHECK(expr_eval(t->pool, c.cond, &r) ==
		      expr_eval(u->pool, u->threads[0].conds[0].cond, &r), "with its value");
		free(two);
		sym_trace_free(u);
	}
	free(one);
	sym_trace_free(t);
}

static const struct {
	const char *text, *place, *what;
} wrong[] = {
	{ "", "x.sym:1:1:", "not a symbolic trace" },
	{ "csched-sym 2\n", "x.sym:1:", "version" },
	{ "csched-sym 1\nvar x 65\n", "x.sym:2:7:", "width" },
	{ "csched-sym 1\nvar x 32\nvar x 32\n", "x.sym:3:", "twice" },
	{ "csched-sym 1\nread x r\n", "x.sym:2:", "no thread" },
	{ "csched-sym 1\nthread T0\nread x r\n", "x.sym:3:6:", "unknown variable" },
	{ "csched-sym 1\nvar x 8\nthread T0\n write x (add 1:8 2:9)\n", "x.sym:4:19:", "width" },
	{ "csched-sym 1\nvar x 8\nthread T0\n write x (add 1:8 2:8\n", "x.sym:4:22:", "')'" },
	{ "csched-sym 1\nvar x 8\nthread T0\n write x true\n", "x.sym:4:10:", "width" },
	{ "csched-sym 1\nthread T0\n cond (frob 1 2)\n", "x.sym:3:8:", "operator" },
	{ "csched-sym 1\nthread T0\n cond (eq 1 2)\n", "x.sym:3:11:", "unknown width" },
	{ "csched-sym 1\nthread T0\n fork T9\n", "x.sym:3:7:", "unknown thread" },
	{ "csched-sym 1\nprogram \"abc\n", "x.sym:2:9:", "without end" },
	{ "csched-sym 1\nobject m mutex\nthread T0\n semwait m\n", "x.sym:", "wrong kind" },
	{ "csched-sym 1\nobject c cond\nthread T0\n wait c link 7\n", "x.sym:", "link" },
	{ "csched-sym 1\nframe \"x\"\n", "x.sym:2:", "outside" },
	{ "csched-sym 1\nstack k\n frame \"x\" lime 2\n", "x.sym:3:12:", "attribute" },
	{ "csched-sym 1\nvar x 8\nthread A\n read x r\nthread B\n read x r\n", "x.sym:", "another read" },
	{ "csched-sym 1\nfailure assert thread T0\nblocked T0 3\n", "x.sym:2:23:", "unknown thread" },
};

static void errors(void)
{
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct sym_trace *t;
		err_t e = from_text(wrong[i].text, &t);

		CHECK(e && e->code == ERR_INPUT && !strncmp(e->msg, wrong[i].place,
							    strlen(wrong[i].place)) &&
		      strstr(e->msg, wrong[i].what), "named: %s", e ? e->msg : "(nothing)");
		err_free(e);
		if (!e)
			sym_trace_free(t);
	}
}

/* Every mutation of the sample either reads or is refused; none may crash. */
static void mutations(void)
{
	static const char bytes[] = "\n \"()#:-0x9\\kT\xff";
	unsigned refused = 0, total = 0;
	char *s = xstrdup(sample);

	for (size_t i = 0; i < sizeof sample - 1; i++) {
		for (size_t k = 0; k < sizeof bytes; k++) {
			char was = s[i];
			struct sym_trace *t;
			err_t e;

			s[i] = bytes[k];
			FILE *f = fmemopen(s, sizeof sample - 1, "r");
			e = sym_read(f, "x.sym", &t);
			fclose(f);
			refused += e != NULL;
			total++;
			err_free(e);
			if (!e)
				sym_trace_free(t);
			s[i] = was;
		}
	}
	CHECK(refused > total / 4 && refused < total, "%u of %u mutated texts refused", refused,
	      total);
	free(s);
}

int main(void)
{
	round_trip();
	shared_parts();
	errors();
	mutations();
	CHECK_END();
}
