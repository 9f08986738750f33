/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Coverage files: what was covered, proved impossible or left open, by code place, for one build of a
 * program. They accumulate over runs and over test programs of the same binary; csched-explore(1) describes
 * the format.
 */
#ifndef CSCHED_EXPLORE_COVERAGE_H
#define CSCHED_EXPLORE_COVERAGE_H

#include "analyzer/explore/drive.h"
#include "analyzer/image/image.h"

/*
 * Reads path into the patterns that are known, those covered there being covered. A missing file is none.
 * ERR_INPUT: it is damaged, or of another build.
 */
err_t xpl_coverage_read(struct xpl_drive *d, struct img_set *images, const char *path);
/* All that is known. The file is replaced as a whole. */
err_t xpl_coverage_write(const struct xpl_drive *d, struct img_set *images, const char *path);

#endif
