/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads JSON that another program printed (ctest, meson) into a tree. The text may be anything: depth and size are limited. */
#ifndef CSCHED_COMMON_JSON_READ_H
#define CSCHED_COMMON_JSON_READ_H

#include "common/err.h"

#include <stddef.h>

enum jv_kind { JV_NULL, JV_BOOL, JV_NUMBER, JV_STRING, JV_ARRAY, JV_OBJECT };

struct jv {
	enum jv_kind kind;
	double number;   /* BOOL: 0 or 1 */
	char *string;    /* STRING: UTF-8, ends at the first NUL in it */
	char **keys;     /* OBJECT: of items */
	struct jv *items; /* ARRAY, OBJECT */
	size_t n;
};

/* ERR_INPUT names the place by its offset. Free *out in any case. */
err_t jv_read(const char *text, size_t n, struct jv *out);
void jv_free(struct jv *v);

/* The member of an object, or NULL (also when v is NULL or no object). */
const struct jv *jv_get(const struct jv *v, const char *key);
/* A string, or "" */
const char *jv_text(const struct jv *v);

#endif
