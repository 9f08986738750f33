/*
 * C++ names, and Rust's: those of its old mangling are C++'s, those of the new one are read in rust_names.c. The C++
 * demangler lives in the C++ run-time library, which csched does not depend on: where there are C++ programs to look
 * at it is installed, and elsewhere mangled names do not occur.
 */
#include "analyzer/image/internal.h"

#include <ctype.h>
#include <dlfcn.h>
#include <string.h>

/* Longer names are not written by people; the demangler is recursive. */
enum { LONGEST = 8192 };

typedef char *demangle_fn(const char *, char *, size_t *, int *);

static demangle_fn *demangler(void)
{
	static demangle_fn *fn;
	static bool tried;

	if (!tried) {
		void *lib = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);

		if (!lib)
			lib = dlopen("libc++abi.so.1", RTLD_LAZY | RTLD_LOCAL);
		if (lib)
			fn = (demangle_fn *)dlsym(lib, "__cxa_demangle");
		tried = true;
	}
	return fn;
}

/* " [clone .constprop.0]" says how the compiler works, not where the program is. */
static void drop_clones(char *s)
{
	char *clone = strstr(s, " [clone ");
	size_t n = clone ? strlen(clone) : 0;

	if (!clone)
		return;
	/* But the body of a parallel region is: ".", and what follows it to the bracket, as C has it. */
	if (strstr(clone, "omp") && clone[n - 1] == ']') {
		memmove(clone, clone + 8, n - 9);
		clone[n - 9] = '\0';
	} else {
		*clone = '\0';
	}
}

/* Rust's names are C++'s with a hash behind them, which changes with every build; its signs are spelt out. */
static bool drop_rust_hash(char *s)
{
	size_t n = strlen(s);

	if (n <= 19 || strncmp(s + n - 19, "::h", 3) != 0 || strspn(s + n - 16, "0123456789abcdef") != 16)
		return false;
	s[n - 19] = '\0';
	return true;
}

static void spell_rust(char *s)
{
	static const char *const signs[][2] = {
		{ "$LT$", "<" }, { "$GT$", ">" }, { "$RF$", "&" }, { "$BP$", "*" }, { "$C$", "," }, { "$LP$", "(" },
		{ "$RP$", ")" }, { "$u20$", " " }, { "$u27$", "'" }, { "$u7b$", "{" }, { "$u7d$", "}" },
		{ "$u5b$", "[" }, { "$u5d$", "]" }, { "..", "::" },
	};
	char *out = s;

	for (bool begins = true; *s;) {
		size_t i = 0;

		/* What does not begin with a letter has a line before it. */
		s += begins && s[0] == '_' && s[1] == '$';
		while (i < sizeof signs / sizeof *signs && strncmp(s, signs[i][0], strlen(signs[i][0])))
			i++;
		begins = s[0] == ':';
		if (i == sizeof signs / sizeof *signs) {
			*out++ = *s++;
			continue;
		}
		s += strlen(signs[i][0]);
		out = mempcpy(out, signs[i][1], strlen(signs[i][1]));
	}
	*out = '\0';
}

const char *img_demangle(struct img_set *set, const char *name)
{
	int status;
	uint64_t *known;

	bool rust = !strncmp(name, "_R", 2);

	if ((!rust && (strncmp(name, "_Z", 2) != 0 || !demangler())) || strlen(name) > LONGEST)
		return name;
	known = img_table_find(&set->demangled, (uintptr_t)name);
	if (known)
		return (const char *)(uintptr_t)*known;

	char *s = rust ? img_rust_text(name) : demangler()(name, NULL, NULL, &status);
	const char *text = name;

	if (s) {
		drop_clones(s);
		if (drop_rust_hash(s))
			spell_rust(s);
		text = img_keep(set, s);
	}
	img_table_put(&set->demangled, (uintptr_t)name, (uintptr_t)text);
	return text;
}

char *img_type_text(const char *mangled)
{
	int status;
	char *s = strlen(mangled) <= LONGEST && demangler() ? demangler()(mangled, NULL, NULL, &status) :
							      NULL;

	return s ? s : xstrdup(mangled);
}

/*
 * What compilers make of a piece of a function: the body of a parallel region ("main._omp_fn.0", "main.omp_outlined"), a Rust closure
 * ("run::{{closure}}"). *n: the length of the function's name; NULL: it is none of these.
 */
static const char *piece_of(const char *name, size_t *n)
{
	static const struct {
		const char *sign, *words;
	} kinds[] = {
		{ "._omp_fn.", "parallel region in " }, { ".omp_outlined", "parallel region in " },
		{ ".omp._omp_", "parallel region in " }, { "::{{closure}}", "closure in " },
	};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const char *at = strstr(name, kinds[i].sign);

		if (at && at != name) {
			*n = (size_t)(at - name);
			return kinds[i].words;
		}
	}
	return NULL;
}

/* ---- names for people --------------------------------------------------- */

enum { LONG_NAME = 72 };

/* Where the name of an operator begins, whose signs are no brackets; or the end. */
static size_t operator_at(const char *s, size_t n)
{
	for (size_t i = 0; i + 8 < n; i++)
		if (!strncmp(s + i, "operator", 8) && (i == 0 || s[i - 1] == ':' || s[i - 1] == ' ') &&
		    !isalnum((unsigned char)s[i + 8]) && s[i + 8] != '_')
			return i;
	return n;
}

/* Length without the parameter list and what follows it. */
static size_t without_parameters(const char *s)
{
	const char *close = strrchr(s, ')');
	size_t n = strlen(s), i;
	int depth = 0;

	/* "(anonymous namespace)::f" and "{lambda()#1}" end in other things. */
	if (!close || close[1 + strspn(close + 1, " &constvaliefrp")])
		return n;
	for (i = (size_t)(close - s) + 1; i-- > 0;) {
		depth += (s[i] == ')') - (s[i] == '(');
		if (!depth)
			break;
	}
	return depth || !i || (i >= 8 && !strncmp(s + i - 8, "operator", 8)) ? n : i;
}

/* Where the return type, which only templates carry, ends. */
static size_t after_return_type(const char *s, size_t n)
{
	size_t end = operator_at(s, n), start = 0;
	int depth = 0;

	for (size_t i = 0; i < end; i++) {
		depth += (s[i] == '<' || s[i] == '(' || s[i] == '{') -
			 (s[i] == '>' || s[i] == ')' || s[i] == '}');
		if (!depth && s[i] == ' ')
			start = i + 1;
	}
	return start;
}

/* vector<int, std::allocator<int> >::f -> vector<...>::f */
static void write_folded(struct strbuf *b, const char *s, size_t n)
{
	size_t end = operator_at(s, n);
	int depth = 0;

	for (size_t i = 0; i < n; i++) {
		bool plain = i >= end;

		if (!plain && s[i] == '>' && --depth == 0)
			strbuf_str(b, "...");
		if (plain || depth == 0)
			strbuf_char(b, s[i]);
		if (!plain && s[i] == '<')
			depth++;
	}
}

const char *img_brief(struct img_set *set, const char *name)
{
	uint64_t *known = img_table_find(&set->brief, (uintptr_t)name);
	struct strbuf b = { 0 };

	if (known)
		return (const char *)(uintptr_t)*known;
	size_t piece = 0;
	const char *words = piece_of(name, &piece);
	char *whole = words ? xasprintf("%.*s", (int)piece, name) : NULL;
	const char *from = whole ? whole : name;
	size_t n = without_parameters(from), start = after_return_type(from, n);

	strbuf_str(&b, words ? words : "");
	if (n - start > LONG_NAME)
		write_folded(&b, from + start, n - start);
	else
		strbuf_add(&b, from + start, n - start);
	free(whole);
	const char *text = img_keep(set, strbuf_take(&b));

	img_table_put(&set->brief, (uintptr_t)name, (uintptr_t)text);
	return text;
}
