/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of torn.c, and what they note for their host. */
#ifndef TORN_HANDLERS_H
#define TORN_HANDLERS_H

#include "spin_handler.h"

#include "spin.h"

struct torn_state {
    uint64_t headers, completions;
    uint64_t bytes;   /* that payload handlers were given */
    uint64_t dropped; /* that the completion handler was told of */
};

/* With and without a payload handler: without one the NIC deposits the payload. */
extern const ptl_handlers_t torn_by_packet, torn_deposited;

#endif
