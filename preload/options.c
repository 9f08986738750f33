/* CSCHED_OPTIONS: parsed by the table both halves share. */
#include "preload/options.h"

#include "common/options_table.h"
#include "preload/raw.h"
#include "preload/shim.h"

struct shim_options shim_opt;

enum opt_type { OPT_CHOICE, OPT_NUMBER, OPT_SECONDS, OPT_STRING, OPT_STATUSES, OPT_BOOL };

enum opt_key {
#define OPT(key, type, dflt, values, help) KEY_##key,
	OPTIONS_TABLE(OPT)
#undef OPT
	NKEYS
};

static const struct {
	const char *name;
	enum opt_type type;
	const char *dflt;
	const char *values;
} table[NKEYS] = {
#define OPT(key, type, dflt, values, help) { #key, OPT_##type, dflt, values },
	OPTIONS_TABLE(OPT)
#undef OPT
};

/* Values live here: options may outlast the environment they came from. */
static char store[4096];
static size_t store_used;

static const char *keep_string(const char *s, size_t n)
{
	char *at = store + store_used;

	if (n + 1 > sizeof store - store_used)
		return NULL;
	memcpy(at, s, n);
	at[n] = 0;
	store_used += n + 1;
	return at;
}

static bool parse_number(const char *s, uint64_t *out)
{
	uint64_t v = 0;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return false;
	int shift = *s == 'k' || *s == 'K' ? 10 : *s == 'm' || *s == 'M' ? 20 :
		    *s == 'g' || *s == 'G' ? 30 : 0;

	if (shift && (s++, v >> (64 - shift)))
		return false;
	*out = v << shift;
	return !*s;
}

/* Milliseconds from "2", "0.25", "250ms". */
static bool parse_seconds(const char *s, uint64_t *out)
{
	uint64_t ms = 0, unit = 1000;
	bool any = false;

	for (; *s >= '0' && *s <= '9'; s++, any = true) {
		ms = ms * 10 + (uint64_t)(*s - '0');
		if (ms > 1000000000)
			return false;
	}
	ms *= 1000;
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9'; s++, any = true)
			ms += (uint64_t)(*s - '0') * (unit /= 10);
	*out = ms;
	if (s[0] == 'm' && s[1] == 's' && !s[2]) {
		*out = ms / 1000;
		return any;
	}
	return any && !*s;
}

static bool parse_statuses(const char *s)
{
	shim_opt.nfail_exit = 0;
	for (;;) {
		unsigned v = 0, digits = 0;

		for (; *s >= '0' && *s <= '9' && digits < 4; s++, digits++)
			v = v * 10 + (unsigned)(*s - '0');
		if (!digits || v > 255 || shim_opt.nfail_exit == SHIM_MAX_STATUSES)
			return false;
		shim_opt.fail_exit[shim_opt.nfail_exit++] = (uint8_t)v;
		if (!*s)
			return true;
		if (*s++ != ',')
			return false;
	}
}

static void assign(enum opt_key key, uint64_t num, const char *str)
{
	struct shim_options *o = &shim_opt;

	switch (key) {
	case KEY_mode: o->mode = (enum shim_mode)num; break;
	case KEY_dir: o->dir = str; break;
	case KEY_keep: o->keep = (enum shim_keep)num; break;
	case KEY_max_size: o->max_size = num; break;
	case KEY_ring: o->ring = num; break;
	case KEY_last: o->last_ms = num; break;
	case KEY_epoch: o->epoch_ms = num; break;
	case KEY_on_signal: o->on_signal = num < 65 && num != 9 && num != 19 ? (unsigned)num : 0; break;
	case KEY_hang: o->hang_ms = num; break;
	case KEY_fail_exit: break;
	case KEY_follow: o->follow = num; break;
	case KEY_quiet: o->quiet = num; break;
	case KEY_verbosity: o->verbosity = (unsigned)num; break;
	case KEY_deadlock: o->deadlock = (enum shim_on_deadlock)num; break;
	case KEY_check: o->check = num; break;
	case KEY_final: o->final = num; break;
	case KEY_sites: o->sites = str; break;
	case KEY_schedule: o->schedule = str; break;
	case KEY_fix: o->fix = str; break;
	case KEY_hunt: o->hunt = str; break;
	case KEY_seed: o->seed = num; break;
	case NKEYS: break;
	}
}

static bool set(enum opt_key key, const char *value)
{
	uint64_t num = 0;
	int at;

	switch (table[key].type) {
	case OPT_CHOICE:
		if ((at = options_choice(table[key].values, value)) < 0)
			return false;
		num = (uint64_t)at;
		break;
	case OPT_BOOL:
		if ((at = options_choice("0|1", value)) < 0)
			return false;
		num = (uint64_t)at;
		break;
	case OPT_NUMBER:
		if (!parse_number(value, &num))
			return false;
		break;
	case OPT_SECONDS:
		if (!parse_seconds(value, &num))
			return false;
		break;
	case OPT_STATUSES:
		if (!parse_statuses(value)) {
			shim_opt.nfail_exit = 0;
			return false;
		}
		break;
	case OPT_STRING:
		break;
	}
	assign(key, num, value);
	return true;
}

/* Copies one key=value up to an unescaped ':' into buf; returns what follows it. */
static const char *next_pair(const char *s, char *buf, size_t size)
{
	size_t n = 0;

	while (*s && *s != ':') {
		if (*s == '\\' && s[1])
			s++;
		if (n + 1 < size)
			buf[n++] = *s;
		s++;
	}
	buf[n] = 0;
	return *s ? s + 1 : s;
}

static void one_pair(char *pair, struct raw_text *wrong)
{
	char *value = pair;

	while (*value && *value != '=')
		value++;
	size_t klen = (size_t)(value - pair);
	const char *v = *value ? value + 1 : "1";

	for (int key = 0; key < NKEYS; key++) {
		if (strlen(table[key].name) != klen || memcmp(table[key].name, pair, klen))
			continue;
		const char *kept = keep_string(v, strlen(v));

		if (!kept || !set((enum opt_key)key, kept)) {
			text_str(wrong, wrong->n ? ", " : "");
			text_str(wrong, "bad value ");
			text_str(wrong, pair);
			text_str(wrong, " (want ");
			text_str(wrong, table[key].values);
			text_str(wrong, ")");
		}
		return;
	}
	text_str(wrong, wrong->n ? ", " : "");
	text_str(wrong, "unknown option ");
	text_strn(wrong, pair, klen);
}

void shim_options_parse(const char *text)
{
	char pair[1024];
	TEXT(wrong, 1024);

	shim_opt.dir = shim_opt.sites = shim_opt.schedule = shim_opt.fix = shim_opt.hunt = "";
	for (int key = 0; key < NKEYS; key++)
		if (table[key].dflt)
			set((enum opt_key)key, table[key].dflt);
	while (text && *text) {
		text = next_pair(text, pair, sizeof pair);
		if (pair[0])
			one_pair(pair, &wrong);
	}
	if (wrong.n) {
		TEXT(line, 1100);

		text_str(&line, "CSCHED_OPTIONS: ");
		text_strn(&line, wrong.s, wrong.n);
		shim_say(0, line.s);
	}
}

bool shim_options_fails(int status)
{
	for (unsigned i = 0; i < shim_opt.nfail_exit; i++)
		if (shim_opt.fail_exit[i] == (status & 255))
			return true;
	return false;
}
