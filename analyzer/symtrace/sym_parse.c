/* Tokens, numbers and names of the .sym text. */
#include "analyzer/symtrace/sym_parse.h"
#include "common/vec.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const char *const space_names[] = { "symbol", "let", "variable", "object", "stack",
					   "thread" };

err_t sym_parse_error(const struct sym_parser *p, const char *fmt, ...)
{
	va_list ap;
	char *msg;
	err_t e;

	va_start(ap, fmt);
	if (vasprintf(&msg, fmt, ap) < 0)
		msg = NULL;
	va_end(ap);
	e = err_new(ERR_INPUT, "%s:%u:%u: %s", p->file, p->tok_line, p->tok_column,
		    msg ? msg : "malformed");
	free(msg);
	return e;
}

static void word_char(struct sym_parser *p, size_t *n, char c)
{
	if (*n + 1 >= p->word_cap)
		p->word = vec_grow(p->word, &p->word_cap, 1, *n + 2);
	p->word[(*n)++] = c;
	p->word[*n] = 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static err_t next_string(struct sym_parser *p)
{
	size_t n = 0;

	p->tok = TOK_STRING;
	word_char(p, &n, 0);
	n = 0;
	for (p->at++; p->at < p->end && *p->at != '"' && *p->at != '\n'; p->at++) {
		if (*p->at != '\\') {
			word_char(p, &n, *p->at);
			continue;
		}
		if (++p->at == p->end)
			break;
		if (*p->at == 'x' && p->end - p->at > 2 && hex_digit(p->at[1]) >= 0 &&
		    hex_digit(p->at[2]) >= 0) {
			int c = hex_digit(p->at[1]) * 16 + hex_digit(p->at[2]);

			if (!c)
				return sym_parse_error(p, "a string cannot hold a zero byte");
			word_char(p, &n, c);
			p->at += 2;
		} else if (*p->at == '"' || *p->at == '\\') {
			word_char(p, &n, *p->at);
		} else {
			return sym_parse_error(p, "unknown escape in string");
		}
	}
	if (p->at == p->end || *p->at != '"')
		return sym_parse_error(p, "string without end");
	p->at++;
	return NULL;
}

static bool word_ends(char c)
{
	return isspace((unsigned char)c) || c == '(' || c == ')' || c == '"' || c == '#';
}

err_t sym_next(struct sym_parser *p)
{
	size_t n = 0;

	while (p->at < p->end && *p->at != '\n' && isspace((unsigned char)*p->at))
		p->at++;
	if (p->at < p->end && *p->at == '#')
		while (p->at < p->end && *p->at != '\n')
			p->at++;
	p->tok_line = p->line;
	p->tok_column = p->at - p->line_start + 1;
	if (p->at == p->end) {
		p->tok = TOK_END;
		return NULL;
	}
	switch (*p->at) {
	case '\n':
		p->tok = TOK_LINE;
		p->line_start = ++p->at;
		p->line++;
		return NULL;
	case '(': p->tok = TOK_OPEN; p->at++; return NULL;
	case ')': p->tok = TOK_CLOSE; p->at++; return NULL;
	case '"': return next_string(p);
	case 0: return sym_parse_error(p, "zero byte");
	}
	p->tok = TOK_WORD;
	for (; p->at < p->end && *p->at && !word_ends(*p->at); p->at++)
		word_char(p, &n, *p->at);
	return NULL;
}

bool sym_at_word(const struct sym_parser *p, const char *word)
{
	return p->tok == TOK_WORD && !strcmp(p->word, word);
}

err_t sym_take_text(struct sym_parser *p, const char *what, char **out)
{
	if (p->tok != TOK_WORD && p->tok != TOK_STRING)
		return sym_parse_error(p, "%s expected", what);
	*out = xstrdup(p->word);
	err_t e = sym_next(p);
	if (e) {
		free(*out);
		*out = NULL;
	}
	return e;
}

err_t sym_take_number(struct sym_parser *p, const char *what, uint64_t *out)
{
	char *end;

	if (p->tok != TOK_WORD || (!isdigit((unsigned char)p->word[0]) && p->word[0] != '-'))
		return sym_parse_error(p, "%s expected", what);
	errno = 0;
	*out = strtoull(p->word, &end, 0);
	if (*end || errno)
		return sym_parse_error(p, "%s: bad number '%s'", what, p->word);
	return sym_next(p);
}

err_t sym_take_index(struct sym_parser *p, const char *what, uint32_t *out)
{
	struct sym_parser at = *p;
	uint64_t v;

	TRY(sym_take_number(p, what, &v));
	if (v >= UINT32_MAX)
		return sym_parse_error(&at, "%s: number too large", what);
	*out = v;
	return NULL;
}

err_t sym_take_width(struct sym_parser *p, uint8_t *out)
{
	struct sym_parser at = *p;
	uint64_t v;

	if (sym_at_word(p, "int") || sym_at_word(p, "bool")) {
		*out = p->word[0] == 'i' ? EXPR_INT : EXPR_BOOL;
		return sym_next(p);
	}
	TRY(sym_take_number(p, "width", &v));
	if (v < 1 || v > 64)
		return sym_parse_error(&at, "width must be 1 to 64, int or bool");
	*out = v;
	return NULL;
}

static size_t name_slot(const struct sym_parser *p, enum sym_space space, const char *name)
{
	uint64_t h = 14695981039346656037ull + space;

	for (const char *c = name; *c; c++)
		h = (h ^ (unsigned char)*c) * 1099511628211ull;
	h = (h ^ h >> 32) & (p->cap_names - 1);
	while (p->names[h].name &&
	       (p->names[h].space != space || strcmp(p->names[h].name, name)))
		h = (h + 1) & (p->cap_names - 1);
	return h;
}

bool sym_name_find(const struct sym_parser *p, enum sym_space space, const char *name,
		   uint32_t *out)
{
	size_t h;

	if (!p->cap_names)
		return false;
	h = name_slot(p, space, name);
	*out = p->names[h].value;
	return p->names[h].name != NULL;
}

static void names_grow(struct sym_parser *p)
{
	struct sym_name *old = p->names;
	size_t cap = p->cap_names;

	p->cap_names = cap ? cap * 2 : 256;
	p->names = xcalloc(p->cap_names, sizeof *p->names);
	for (size_t i = 0; i < cap; i++)
		if (old[i].name)
			p->names[name_slot(p, old[i].space, old[i].name)] = old[i];
	free(old);
}

err_t sym_name_define(struct sym_parser *p, enum sym_space space, const char *name,
		      uint32_t value)
{
	size_t h;

	if (p->nnames * 2 >= p->cap_names)
		names_grow(p);
	h = name_slot(p, space, name);
	if (p->names[h].name)
		return sym_parse_error(p, "%s '%s' is defined twice", space_names[space], name);
	p->names[h] = (struct sym_name){ xstrdup(name), space, value };
	p->nnames++;
	return NULL;
}

err_t sym_take_name(struct sym_parser *p, enum sym_space space, uint32_t *out)
{
	if (p->tok != TOK_WORD && p->tok != TOK_STRING)
		return sym_parse_error(p, "name of a %s expected", space_names[space]);
	if (!sym_name_find(p, space, p->word, out))
		return sym_parse_error(p, "unknown %s '%s'", space_names[space], p->word);
	return sym_next(p);
}
