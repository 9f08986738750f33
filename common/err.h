/*
 * Errors as values.
 *
 * Every fallible function of the analyzer returns err_t: NULL is success,
 * anything else carries a message a person can act on and the exit status the
 * command should end with. Whoever receives an error either handles it and
 * calls err_free(), or returns it, adding what it was doing with err_wrap().
 * The shim does not use this file: it allocates nothing and degrades instead.
 */
#ifndef CSCHED_COMMON_ERR_H
#define CSCHED_COMMON_ERR_H

/* The values are the exit statuses promised in csched(1). */
enum err_code {
	ERR_NOANSWER = 1, /* the question has no answer; the message says why */
	ERR_USAGE = 2,    /* wrong command line */
	ERR_INPUT = 3,    /* unreadable, corrupt or foreign input */
	ERR_INTERNAL = 4, /* our fault, or the machine's (out of memory) */
};

struct error {
	enum err_code code;
	char *msg;
};

typedef struct error *err_t;

err_t err_new(enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "WHAT: MESSAGE". Takes ownership of e; NULL stays NULL. */
err_t err_wrap(err_t e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ERR_INPUT with strerror(errno) appended. */
err_t err_errno(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void err_free(err_t e);

/* Return early with an error: the one control-flow macro of the house. */
#define TRY(call)                       \
	do {                            \
		err_t try_e_ = (call);  \
		if (try_e_)             \
			return try_e_;  \
	} while (0)

#endif
