/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of the kill tests. */
#ifndef KILL_HANDLERS_H
#define KILL_HANDLERS_H

#include "spin.h"

extern const ptl_handlers_t kill_handlers;

/* The state of a handler that gets `length` bytes from the peer and leaves them in its host's
 * memory. */
enum { KILL_ASK_MOST = 4096 };
struct kill_ask {
    ptl_process_t from;
    uint64_t pt, at, length, to;
    uint8_t bytes[KILL_ASK_MOST];
};
extern const ptl_handlers_t kill_asking;

#endif
