/* Fetching files by build-id from debuginfod servers. */
#ifndef CSCHED_ANALYZER_IMAGE_DEBUGINFOD_H
#define CSCHED_ANALYZER_IMAGE_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

enum img_fetch { IMG_FETCH_EXECUTABLE, IMG_FETCH_DEBUGINFO };

/*
 * An open descriptor and the malloc'd path of the client's cached copy, or -1.
 * Asks nobody unless DEBUGINFOD_URLS is set: analysing a trace must not tell
 * the network about it by surprise.
 */
int img_debuginfod(enum img_fetch what, const uint8_t *id, size_t n, char **path);

#endif
