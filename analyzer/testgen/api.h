/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface of a library as its debug information shows it: object types, the functions
 * around them, and what each parameter can be given.
 */
#ifndef CSCHED_TESTGEN_API_H
#define CSCHED_TESTGEN_API_H

#include "common/err.h"
#include "common/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define API_PARAMS 10 /* a call carries so many; functions with more are left out */
#define API_NONE (-1)

enum api_kind {
	API_VOID,
	API_INT,     /* also characters, booleans and enumerations */
	API_FLOAT,   /* float or double, by size */
	API_TEXT,    /* char *, NUL-terminated */
	API_BYTES,   /* void * and pointers to bytes: a buffer */
	API_SCALAR,  /* pointer to a number: a word to read or fill */
	API_OBJECT,  /* T * (or T & in C++) */
	API_OUT,     /* T **: filled by the function */
	API_FUNCTION, /* a callback */
	API_STRING,  /* std::string, by value or by reference */
	API_OTHER,   /* cannot be given a value: the function is left out */
};

struct api_type {
	enum api_kind kind;
	uint8_t size;      /* API_INT, API_FLOAT */
	bool is_signed, is_enum, is_const;
	int object;        /* API_OBJECT, API_OUT: index in api.objects */
	char *spelling;    /* as a C declaration has it */
	char *trouble;     /* API_OTHER: what it is */
	VEC(int64_t) values; /* enumeration constants */
};

enum api_role {
	API_PLAIN,       /* no part of an object's life */
	API_CONSTRUCTOR, /* returns a new T * */
	API_FILLER,      /* stores a new T * through a T ** */
	API_INITIALISER, /* makes a T in memory it is given: C++ constructors, too */
	API_METHOD,
	API_DESTRUCTOR,
};

struct api_function {
	char *symbol;    /* as exported */
	char *name;      /* for people: demangled */
	uint64_t offset; /* from the load bias */
	uint64_t size;
	struct api_type result;
	struct api_type params[API_PARAMS];
	unsigned nparams;
	enum api_role role;
	int object;      /* of the role; API_NONE */
	unsigned self;   /* which parameter that object is */
	bool cxx, variadic;
	char *left_out;  /* why it is not called; NULL: it is */
	char *file;      /* where it is defined, or NULL */
	unsigned line;
};

struct api_object {
	char *name;     /* "queue", without struct */
	char *c_name;   /* a C identifier */
	uint64_t size;  /* 0: incomplete */
	bool cxx;
	bool typedef_only; /* spelled without struct */
};

struct api {
	char *path;     /* absolute */
	char *soname;   /* file name without its directory */
	VEC(struct api_function) functions;
	VEC(struct api_object) objects;
	VEC(char *) remarks; /* about the library as a whole */
	VEC(int64_t) constants; /* compared against in the code */
	bool has_debug;
};

/* header: NULL, or a C header to take declarations from when the library has no debug information. */
err_t api_read(const char *library, const char *header, struct api **out);
void api_free(struct api *a);

/* Index of the object that 'struct NAME', 'class NAME', 'NAME *' or NAME means; API_NONE. */
int api_find_object(const struct api *a, const char *name);
const struct api_function *api_find_function(const struct api *a, const char *symbol);
/* Can f's result or parameter give us a new object of that kind? */
bool api_makes(const struct api_function *f, int object);
/* Index of f's first usable function with this role for the object, at or after `from`; API_NONE. */
int api_next(const struct api *a, int object, enum api_role role, int from);
/* The object with a constructor and the most methods; API_NONE. */
int api_likely_object(const struct api *a);
/* Leaves a function out; the first reason stays. */
void api_leave_out(struct api_function *f, const char *why);
const char *api_role_name(enum api_role r);

/* Demangled, without parameters and a leading return type; malloc'd. */
char *api_demangle_bare(const char *symbol);

/* testgen.conf: overrides what was guessed. */
struct api_conf {
	VEC(int64_t) numbers;  /* value pool */
	VEC(char *) texts;
	VEC(char *) setup;     /* functions to call first */
};
err_t api_conf_read(const char *path, struct api *a, struct api_conf *out);
void api_conf_free(struct api_conf *c);

/* api_roles.c, for api_dwarf.c */
void api_assign_roles(struct api *a);

#endif
