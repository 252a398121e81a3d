/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics of section 3.15 as the programs of this folder know them: written from the rules and
 * not from the library. */
#ifndef ATOMICS_H
#define ATOMICS_H

#include "portals4.h"

#include <stdbool.h>
#include <stddef.h>

enum act { ACT_PUT, ACT_GET, ACT_ATOMIC, ACT_FETCH, ACT_SWAP };
enum { TYPES = PTL_DATATYPE_LAST, ELEMENT_MAX = 32 };

size_t type_size(unsigned type);
bool op_is_legal(unsigned act, unsigned op, unsigned type);
bool op_has_operand(unsigned op);
/* model_apply() does an atomic on one element, as the standard says. */
void model_apply(void *target, const void *put, const void *operand, unsigned op, unsigned type);
bool model_equal(const void *a, const void *b, unsigned type);
/* model_value() makes a small number; `careful`: one whose powers stay small, too. */
void model_value(void *to, unsigned type, int number, bool careful);

#endif
