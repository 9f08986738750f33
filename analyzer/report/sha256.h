/* SHA-256, for one use: the page names the hash of its only script. */
#ifndef CSCHED_REPORT_SHA256_H
#define CSCHED_REPORT_SHA256_H

#include <stddef.h>

/* Base64 of the digest, with its final '='; 44 characters and a NUL. */
void sha256_base64(const void *data, size_t n, char out[45]);

#endif
