/* SPDX-License-Identifier: BSD-3-Clause */
/* A handler that does nothing, for start_bench.c. */
#include "start_handlers.h"

__handler int start_empty(const ptl_payload_t p, void *state)
{
    return SUCCESS;
}
PTL_HANDLER(start_empty);
