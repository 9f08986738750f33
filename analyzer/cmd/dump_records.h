/* One record of a trace as a line of text or as a JSON object. */
#ifndef CSCHED_ANALYZER_CMD_DUMP_RECORDS_H
#define CSCHED_ANALYZER_CMD_DUMP_RECORDS_H

#include "analyzer/cmd/show.h"

struct dump {
	struct show show;
	struct json *json; /* NULL: text */
	uint64_t max_bytes; /* of memory contents shown per record */
};

/* where: "process", "T0.1", ...; pos: of the record in its stream. */
void dump_record(struct dump *d, const char *where, uint64_t pos, const struct trc_rec *rec);

/* Begin and end of one line or object, for others that print alike. */
void dump_begin(struct dump *d, const char *where, const char *type);
void dump_end(struct dump *d);
void dump_word(struct dump *d, const char *name, const char *text);
void dump_uint(struct dump *d, const char *name, uint64_t v);
void dump_place(struct dump *d, const char *name, uint64_t pc, bool is_site);

#endif
