/*
 * Memory that threads hand each other by making and joining threads.
 *
 * Main fills in a struct, makes a thread that works on it, joins it and reads the result: two
 * threads touch it, both write it, and yet no order of the threads could be another one. As
 * events such accesses would bury the few that matter, and make a symbol of every value that is
 * computed from the struct. So, of the places that look shared, those stay in which two accesses,
 * one of them a write, are not ordered by creation and joining alone. What locks,
 * barriers or waiting order is another matter: there another order exists.
 *
 * As in FastTrack: of each place the last write and the last read are known by their stamps; a
 * stamp is a thread and the stretch between two threads that it made. What several threads
 * read side by side is remembered only as that: a write behind it counts as unordered,
 * although they may all have been joined.
 */
#ifndef CSCHED_SYMTRACE_EXTRACT_HANDED_H
#define CSCHED_SYMTRACE_EXTRACT_HANDED_H

#include <stdbool.h>
#include <stdint.h>

struct handed;

struct handed *handed_new(void);
void handed_free(struct handed *h);

void handed_created(struct handed *h, uint32_t parent, uint32_t child);
void handed_joined(struct handed *h, uint32_t joiner, uint32_t joined);

/*
 * thread touches these of 8 bytes, a bit each. place is what an earlier call returned for them, 0
 * at first; returns what the next one is to be given.
 */
uint32_t handed_touch(struct handed *h, uint32_t place, uint32_t thread, uint8_t bytes, bool write);
/* Two accesses of this place were ordered by nothing. */
bool handed_unordered(const struct handed *h, uint32_t place);
uint32_t handed_count(const struct handed *h, uint32_t place); /* of its accesses */

#endif
