/*
 * What each record type holds, as a table of fields. Text and JSON are made
 * from the same rows, so neither can show what the other does not.
 */
#ifndef CSCHED_ANALYZER_CMD_DUMP_FIELDS_H
#define CSCHED_ANALYZER_CMD_DUMP_FIELDS_H

#include <stdint.h>

enum dump_field_kind {
	U8, U16, U32, I32, U64, I64, /* numbers */
	HEX,     /* uint64_t: an address or a value */
	TIME,    /* uint64_t: tsc */
	THREAD,  /* uint32_t: thread number; UINT32_MAX is left out */
	PLACE,   /* uint64_t: a pc */
	SITE,    /* uint64_t: a return address */
	OBJECT,  /* uint64_t: a sync object, by the operation in the record's flags */
	BLOCKED, /* the same in a TRC_BLOCKED record */
	OP,      /* uint16_t: enum trc_op */
	PROT,    /* uint32_t: PROT_* */
	REGS,    /* uint64_t[TRC_NREGS] */
	ARGS,    /* uint64_t[6] */
	TEXT,    /* bytes; length at `length`, behind the bytes counted at `behind` */
	TEXT16,  /* bytes; 16-bit length at `length` */
	BYTES,   /* memory contents; length at `length` */
	BUILD_ID,
	EFFECTS, /* of a TRC_LEAVE */
	SIDES,   /* of a TRC_FRAGMENT */
	ITEMS,
};

struct dump_field {
	const char *name;
	enum dump_field_kind kind;
	uint16_t at;     /* offset in the record */
	uint16_t length; /* offset of the length */
	uint16_t behind; /* offset of a length to skip first, or 0 */
};

/* The fields of a record type the reader let pass; ends with a NULL name. */
const struct dump_field *dump_fields_of(unsigned type);

#endif
