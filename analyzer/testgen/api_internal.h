/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files that read an interface share. */
#ifndef CSCHED_TESTGEN_API_INTERNAL_H
#define CSCHED_TESTGEN_API_INTERNAL_H

#include "analyzer/testgen/api.h"

#include <elfutils/libdw.h>

/* api_dwarf.c */
int api_object_named(struct api *a, const char *name, bool cxx, bool typedef_only);
void api_read_type(struct api *a, Dwarf_Die *type, struct api_type *out);
bool api_type_of(Dwarf_Die *die, Dwarf_Die *out);
/* Through typedefs and qualifiers; *name: the last typedef's. False: void. */
bool api_strip(Dwarf_Die *t, const char **name, bool *is_const);
bool api_is_aggregate(int tag);
/* api_fields.c: the members of a complete type. */
void api_read_fields(Dwarf_Die *t, struct api_object *o);
/* All functions and types of the debug information. */
void api_read_units(struct api *a, Dwarf *dw);
/* Of a subprogram or a subroutine type. */
void api_read_signature(struct api *a, Dwarf_Die *die, struct api_function *f);
/* api_constants.c: numbers that the code compares with. */
void api_read_constants(struct api *a, Elf *elf);
/* api_header.c: declarations of a header, by way of the compiler. */
err_t api_read_header(struct api *a, const char *header);
/* api_roles.c: malloc'd. */
char *api_demangle(const char *symbol);

#endif
