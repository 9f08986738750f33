/*
 * Memory for generated code: nothing in it is ever writable and executable at the same address.
 *
 * The same pages are mapped twice, at two random addresses: `write` may be written and not
 * executed, `run` executed and not written. Where one lies says nothing about the other, the frame
 * or the engine's state: an access that went astray would not know where code is.
 */
#ifndef CSCHED_MACHINE_EXEC_SPACE_H
#define CSCHED_MACHINE_EXEC_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exec_space {
	uint8_t *write, *run; /* NULL: none */
	size_t size;
	struct exec_space *next; /* of all there are */
};

/* It must stay where it is until it is freed. */
bool exec_space_new(struct exec_space *s, size_t size);
void exec_space_free(struct exec_space *s);

/* Where what is written at `at` is executed. */
static inline uint8_t *exec_space_run(const struct exec_space *s, const uint8_t *at)
{
	return s->run + (at - s->write);
}

/*
 * A fork has none of them, unless it is made between exec_spaces_fork(true) and exec_spaces_fork(false); it must call
 * exec_spaces_own() before that, while its parent stands still: then it has the same code in pages of its own.
 */
void exec_spaces_fork(bool begin);
bool exec_spaces_own(void);

/* As mmap() of private memory that may be read and written, anywhere at random; NULL: none. */
void *exec_random_map(size_t size);

#endif
