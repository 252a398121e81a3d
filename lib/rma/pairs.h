/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What origins tell the handlers of pairs, in the header data of an atomic message:
 *
 *      | version 16 | 0 32 | type 8 | operation 8 |
 */
#ifndef RMA_PAIRS_H
#define RMA_PAIRS_H

#include "spin.h"

#include <stdbool.h>
#include <stdint.h>

enum { PAIRS_VERSION = 1 };

static inline ptl_hdr_data_t pairs_call(unsigned op, unsigned type)
{
    return (uint64_t)PAIRS_VERSION << 48 | type << 8 | op;
}

/* pairs_do() does at once what the handlers do: on `n` bytes at `target`, whose old values take the
 * place of `data`; false: there is no such call. */
bool pairs_do(ptl_hdr_data_t call, uint8_t *data, uint8_t *target, uint64_t n);

/* pairs_handlers() fills in the handlers of an entry, which one HPU runs; `number` chooses it. */
int pairs_handlers(ptl_handle_ni_t ni, uint32_t number, ptl_handlers_t *handlers);

#endif
