/*
 * Memory that threads only hand each other, against brute force: random runs in which threads are
 * made, joined and touch a few bytes; what lies before what is worked out from the definition.
 */
#include "analyzer/symtrace/extract_handed.h"
#include "tests/lib/check.h"

#include <stdlib.h>
#include <string.h>

#define STEPS 16
#define THREADS 6
#define RUNS 4000

enum what { CREATE, JOIN, TOUCH };

struct step {
	enum what what;
	unsigned thread, other; /* CREATE, JOIN: the other thread */
	uint8_t bytes;
	bool write;
};

static unsigned draw(unsigned n)
{
	return (unsigned)rand() % n;
}

static unsigned random_run(struct step *s)
{
	bool born[THREADS] = { true }, ended[THREADS] = { false };
	unsigned n = 0, made = 1;

	while (n < STEPS) {
		unsigned t = draw(THREADS), other = draw(THREADS), kind = draw(6);

		if (!born[t] || ended[t])
			continue;
		if (kind == 0 && made < THREADS) {
			s[n++] = (struct step){ .what = CREATE, .thread = t, .other = made };
			born[made++] = true;
		} else if (kind <= 2 && kind && other != t && other && born[other]) {
			ended[other] = true;
			s[n++] = (struct step){ .what = JOIN, .thread = t, .other = other };
		} else if (kind > 2) {
			s[n++] = (struct step){ .what = TOUCH, .thread = t, .write = !draw(3),
						.bytes = (uint8_t)(draw(2) ? 0xff : 0xf << 4 * draw(2)) };
		}
	}
	return n;
}

/* before[i][k]: step i lies before step k, by program order, creation and joining. */
static void work_out(const struct step *s, unsigned n, bool before[STEPS][STEPS])
{
	memset(before, 0, STEPS * sizeof before[0]);
	for (unsigned k = 0; k < n; k++)
		for (unsigned i = k; i-- > 0;) {
			bool direct = s[i].thread == s[k].thread ||
				      (s[i].what == CREATE && s[i].other == s[k].thread) ||
				      (s[k].what == JOIN && (s[k].other == s[i].thread ||
							     (s[i].what == CREATE && s[k].other == s[i].other)));

			for (unsigned m = 0; direct && m <= i; m++)
				before[m][k] |= m == i || before[m][i];
		}
}

struct found {
	bool unordered;  /* two accesses, one of them a write */
	bool side_by_side; /* two reads */
};

static struct found brute_force(const struct step *s, unsigned n, bool before[STEPS][STEPS])
{
	struct found f = { false, false };

	for (unsigned k = 0; k < n; k++)
		for (unsigned i = 0; i < k; i++) {
			if (s[i].what != TOUCH || s[k].what != TOUCH || !(s[i].bytes & s[k].bytes) || before[i][k])
				continue;
			f.unordered |= s[i].write || s[k].write;
			f.side_by_side |= !s[i].write && !s[k].write;
		}
	return f;
}

static bool by_stamps(const struct step *s, unsigned n)
{
	struct handed *h = handed_new();
	uint32_t place = 0;

	for (unsigned i = 0; i < n; i++) {
		if (s[i].what == CREATE)
			handed_created(h, s[i].thread, s[i].other);
		else if (s[i].what == JOIN)
			handed_joined(h, s[i].thread, s[i].other);
		else
			place = handed_touch(h, place, s[i].thread, s[i].bytes, s[i].write);
	}
	bool unordered = handed_unordered(h, place);
	handed_free(h);
	return unordered;
}

static void argument_and_result(void)
{
	struct handed *h = handed_new();
	uint32_t place = handed_touch(h, 0, 0, 0xff, true);

	handed_created(h, 0, 1);
	place = handed_touch(h, place, 1, 0x0f, false);
	place = handed_touch(h, place, 1, 0xff, true);
	handed_joined(h, 0, 1);
	place = handed_touch(h, place, 0, 0xf0, false);
	CHECK(!handed_unordered(h, place), "an argument and a result are only handed on");
	handed_created(h, 0, 2);
	place = handed_touch(h, place, 0, 0x01, true);
	CHECK(!handed_unordered(h, place), "so is what nobody else has touched since");
	place = handed_touch(h, place, 2, 0x02, true);
	CHECK(!handed_unordered(h, place), "the byte beside it is another one");
	place = handed_touch(h, place, 2, 0x01, false);
	CHECK(handed_count(h, place) == 7, "all accesses are counted");
	CHECK(handed_unordered(h, place), "what the creator changes behind the creation is not handed on");
	handed_free(h);
}

int main(void)
{
	bool before[STEPS][STEPS];
	struct step s[STEPS];
	unsigned missed = 0, made_up = 0, unordered = 0, handed = 0;

	argument_and_result();
	srand(1);
	for (unsigned i = 0; i < RUNS; i++) {
		unsigned n = random_run(s);

		work_out(s, n, before);
		struct found f = brute_force(s, n, before);
		bool got = by_stamps(s, n);

		missed += f.unordered && !got;
		made_up += got && !f.unordered && !f.side_by_side;
		unordered += f.unordered;
		handed += !f.unordered;
	}
	CHECK(!missed, "no two unordered accesses are missed (%u of %u)", missed, unordered);
	CHECK(!made_up, "what is ordered is found to be, but for what was read side by side (%u of %u)", made_up, handed);
	CHECK(unordered > RUNS / 10 && handed > RUNS / 10, "both happen (%u, %u)", unordered, handed);
	CHECK_END();
}
