/*
 * A JSON writer: keeps commas, indentation and escaping right.
 *
 *   struct json j = { 0 };
 *   json_object(&j, NULL);
 *   json_str(&j, "name", s);          key NULL inside arrays
 *   json_array(&j, "threads"); ... json_end(&j);
 *   json_end(&j);
 *   json_print(&j, stdout);           prints and frees
 *
 * Bytes that are not valid UTF-8 are written as U+FFFD: a report must stay
 * readable by any parser whatever the traced program had in its strings.
 */
#ifndef CSCHED_COMMON_JSON_H
#define CSCHED_COMMON_JSON_H

#include "common/strbuf.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	struct strbuf out;
	int depth;
	uint64_t array; /* bit d: level d is an array */
	bool some;      /* something stands before us on this level */
	bool one_line;  /* set before the first call: no line breaks */
};

void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j);
void json_str(struct json *j, const char *key, const char *s); /* NULL: null */
void json_strn(struct json *j, const char *key, const char *s, size_t n);
void json_int(struct json *j, const char *key, int64_t v);
void json_uint(struct json *j, const char *key, uint64_t v);
void json_hex(struct json *j, const char *key, uint64_t v); /* "0x..." */
void json_num(struct json *j, const char *key, double v);
/* With so many digits behind the point, however large: times. */
void json_fixed(struct json *j, const char *key, double v, unsigned decimals);
void json_bool(struct json *j, const char *key, bool v);
void json_null(struct json *j, const char *key);
void json_print(struct json *j, FILE *f);

#endif
