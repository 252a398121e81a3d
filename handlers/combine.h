/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of Portals (section 3.15) on arrays of any of its types, for handlers that
 * accumulate or reduce. Results are those of PtlAtomic() and PtlSwap(), bit by bit.
 */
#ifndef HANDLERS_COMBINE_H
#define HANDLERS_COMBINE_H

#include <stdbool.h>
#include <stdint.h>

#include "portals4.h"

enum { COMBINE_LARGEST = 32 }; /* bytes of the largest type */

/* combine_size() returns the bytes of a type; 0 if there is no such type. */
uint32_t combine_size(ptl_datatype_t type);

/* combine_defined() is true if Portals defines the operation for the type. */
bool combine_defined(ptl_op_t op, ptl_datatype_t type);

/* combine() computes target[i] = target[i] op data[i] for `count` elements. `operand` is one
 * element, for PTL_CSWAP to PTL_MSWAP; other operations ignore it. All must be naturally aligned,
 * and the operation must be defined for the type. */
void combine(ptl_op_t op, ptl_datatype_t type, void *target, const void *data, const void *operand,
             uint64_t count);

#endif
