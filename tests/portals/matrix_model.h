/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of atomics once more, written from the rules of section 3.15 and not from
 * the library: what an element must be afterwards, and values to try it with.
 */
#ifndef MATRIX_MODEL_H
#define MATRIX_MODEL_H

#include "portals4.h"

#include <stdbool.h>
#include <stddef.h>

enum { MODEL_ELEMENT = 32 }; /* bytes of the longest element */

/* model_apply() is one element of an atomic: `target` becomes what it must become. */
void model_apply(ptl_op_t op, ptl_datatype_t type, void *target, const void *data,
                 const void *operand);

/* model_value() writes the i-th value to try an operation on a type with: the edges of the
 * type, zero, values of both signs. Values that have no defined result there are left out. */
void model_value(ptl_op_t op, ptl_datatype_t type, unsigned i, void *element);
unsigned model_values(ptl_op_t op, ptl_datatype_t type);

/* model_padding() tells whether the byte of an element is padding, whose value is open. */
bool model_padding(ptl_datatype_t type, size_t byte);

#endif
