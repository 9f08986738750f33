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
	API_STRUCT,  /* a structure by value, all of whose members are known */
	API_OTHER,   /* cannot be given a value: the function is left out */
};

/* testgen.conf: the caller writes this to a member of the structure that a parameter points to, before each call. */
struct api_set {
	char *member, *text; /* text: a buffer that begins with it */
	uint32_t offset;
	uint8_t size;
	bool buffer;
	int64_t number;
};
#define API_SETS 6 /* of one parameter */

struct api_type {
	enum api_kind kind;
	uint8_t size;      /* API_INT, API_FLOAT */
	bool is_signed, is_enum, is_const;
	bool is_smart;     /* API_OBJECT, a result: a std::unique_ptr or std::shared_ptr in memory of the caller's */
	int object;        /* API_OBJECT, API_OUT, API_STRUCT: index in api.objects */
	char *name;        /* of the parameter, or NULL */
	char *spelling;    /* as a C declaration has it */
	char *trouble;     /* API_OTHER: what it is */
	VEC(int64_t) values; /* enumeration constants */
	/* testgen.conf */
	VEC(int64_t) numbers; /* to be tried first */
	VEC(char *) texts;
	VEC(struct api_set) sets;
	unsigned length_of;  /* it is the length of that parameter (from 1); 0: a guess */
	bool takes;          /* the function keeps or ends the object: each call gets one of its own; a result: it is
	                      * not the caller's */
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
	bool is_theirs;  /* of a template or the C++ library */
	char *left_out;  /* why it is not called; NULL: it is */
	char *file;      /* where it is defined, or NULL */
	unsigned line;
};

/* A member of a structure, or of one inside it: a number, a text or an address. */
struct api_field {
	char *name;      /* "inner_member" */
	uint32_t offset;
	uint8_t size;
	enum api_kind kind; /* API_INT, API_FLOAT, API_TEXT, API_FUNCTION or API_BYTES */
	bool is_signed, is_enum;
	int64_t first;   /* enumeration constant */
};

struct api_object {
	VEC(struct api_field) fields;
	bool flat, read; /* the fields are all of it */
	char *name;     /* "queue", without struct */
	VEC(char *) aliases; /* typedefs of it, or of pointers to it */
	char *c_name;   /* a C identifier */
	uint64_t size;  /* 0: incomplete */
	bool cxx;
	bool typedef_only; /* spelled without struct */
};

struct api {
	char *path;     /* absolute */
	char *soname;   /* file name without its directory */
	char *module;   /* the same of what is loaded: of a program a copy */
	bool program;   /* its functions are called by their addresses in the copy */
	int globals;    /* the object that stands for the library's own variables: functions that take no object */
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
/* Can a thread call f on the object under test? */
bool api_is_move(const struct api *a, const struct api_function *f, int object);
/* A copy of a program in dir that can be loaded as a library; *path is malloc'd, also on an error. */
err_t api_copy_program(const struct api *a, const char *dir, char **path);
const struct api_function *api_find_function(const struct api *a, const char *symbol);
/* Can f's result or parameter give us a new object of that kind? */
bool api_makes(const struct api_function *f, int object);
/* Does it return one that it took from an object of another type? */
bool api_hands_out(const struct api_function *f, int object);
bool api_is_made(const struct api *a, int object);
bool api_has_methods(const struct api *a, int object);
/* Index of f's first usable function with this role for the object, at or after `from`; API_NONE. */
int api_next(const struct api *a, int object, enum api_role role, int from);
/* The object with a constructor and the most methods; API_NONE. */
int api_likely_object(const struct api *a);
/* Leaves a function out; the first reason stays. */
void api_leave_out(struct api_function *f, const char *why);
const char *api_role_name(enum api_role r);

/* Demangled, without parameters and a leading return type; malloc'd. */
char *api_demangle_bare(const char *symbol);

/* How many variants of a structure's values there are, and the value of a field in one: a number, or for a pointer not 0. */
#define API_VARIANTS 3
int64_t api_field_value(const struct api_field *f, unsigned variant);

/* testgen.conf: overrides what was guessed. */
struct api_conf {
	VEC(int64_t) numbers;  /* value pool */
	VEC(char *) texts;
	VEC(char *) setup;     /* functions to call first */
	bool only;             /* a function was named with `only' */
};
err_t api_conf_read(const char *path, struct api *a, struct api_conf *out);
void api_conf_free(struct api_conf *c);

/* api_roles.c, for api_dwarf.c */
void api_assign_roles(struct api *a);

#endif
