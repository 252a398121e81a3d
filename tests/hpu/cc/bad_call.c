/* SPDX-License-Identifier: BSD-3-Clause */
/* A handler that calls what only the host may. */
#include "spin_handler.h"

__handler static int call_payload(const ptl_payload_t p, void *state)
{
    return PtlEQFree((ptl_handle_eq_t)p.length);
}
PTL_HANDLER(call_payload);
