/* The path of a thread, fragment by fragment. */
#ifndef CSCHED_ANALYZER_CMD_DUMP_PATH_H
#define CSCHED_ANALYZER_CMD_DUMP_PATH_H

#include "analyzer/cmd/dump_records.h"
#include "common/path.h"

err_t dump_path(struct dump *d, const struct path_frags *frags,
		const struct trc_thread_info *thread);

#endif
