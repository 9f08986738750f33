/* IR operator -> operation. */
#ifndef CSCHED_MACHINE_IROPS_H
#define CSCHED_MACHINE_IROPS_H

#include "analyzer/engine/engine.h"

#include <valgrind/libvex_ir.h>

/* False: the bytecode has no such operation (vector and floating point). */
bool irop_find(IROp op, uint16_t *code, uint8_t *size);

#endif
