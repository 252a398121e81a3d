/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that do nothing; see empty.h. */
#include "empty.h"

__handler int empty_header(const ptl_header_t header, void *state)
{
    return PROCEED;
}
PTL_HANDLER(empty_header);

__handler int empty_payload(const ptl_payload_t payload, void *state)
{
    return SUCCESS;
}
PTL_HANDLER(empty_payload);
