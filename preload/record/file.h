/*
 * Below streams: their files, which only ever grow by whole chunks. All are opened for one
 * call at a time. Errors are negative errno.
 */
#ifndef CSCHED_PRELOAD_RECORD_FILE_H
#define CSCHED_PRELOAD_RECORD_FILE_H

#include "preload/record/stream.h"

/* The stream's file, if it may grow by len bytes, which then count. */
int file_open_to_grow(const struct rec_stream *s, size_t len);
/* Closes it; err is how growing went. */
void file_grown(struct rec_stream *s, int fd, size_t len, long err);
long file_allocate(int fd, uint64_t offset, size_t len);
void *file_map(int fd, uint64_t offset, size_t len);
void file_reserve(struct rec_stream *s, int fd, size_t len);
/* A sealed chunk: the header, and as many bytes as it says. */
long file_append(int fd, uint64_t offset, const struct trc_chunk *head, const void *payload);
/* The same where there is no original: killed in the middle, it leaves an open chunk. */
long file_append_whole(int fd, uint64_t offset, const struct trc_chunk *head, const void *payload);
long file_may_grow(uint64_t size); /* 0 yes */
long file_write(int fd, uint64_t offset, const void *from, size_t n);
void file_truncate(struct rec_stream *s, uint64_t end);
void file_give_back(size_t len);
const char *file_refused(long err); /* for people */

#endif
