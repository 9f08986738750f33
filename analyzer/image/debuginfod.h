/* Fetching files by build-id from debuginfod servers. */
#ifndef CSCHED_ANALYZER_IMAGE_DEBUGINFOD_H
#define CSCHED_ANALYZER_IMAGE_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

enum img_fetch { IMG_FETCH_EXECUTABLE, IMG_FETCH_DEBUGINFO };

/*
 * An open descriptor and the malloc'd path of the client's cached copy, or a negative errno.
 * Asks nobody unless DEBUGINFOD_URLS is set: analysing a trace must not reveal
 * the network about it by surprise. Servers that did not answer in time
 * (-ETIME, returned once) are not asked again: a trace has many modules, and
 * each would take as long.
 */
int img_debuginfod(enum img_fetch what, const uint8_t *id, size_t n, char **path);

#endif
