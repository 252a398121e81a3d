/* SPDX-License-Identifier: BSD-3-Clause */
/* No handler is registered. */
#include "spin_handler.h"

int table_payload(const ptl_payload_t p, void *state);

__handler int table_payload(const ptl_payload_t p, void *state)
{
    return SUCCESS;
}
