/* SPDX-License-Identifier: BSD-3-Clause */
/* Static data that handlers could write, which they may not have. */
#include "spin_handler.h"

static uint32_t seen;
static _Thread_local uint32_t mine;

__handler static int static_payload(const ptl_payload_t p, void *state)
{
    static uint64_t bytes;
    bytes += p.length;
    seen++;
    mine++;
    return bytes > seen ? SUCCESS : DROP;
}
PTL_HANDLER(static_payload);
