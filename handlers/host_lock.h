/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks in host memory, for handlers that run in parallel on several entries: what
 * entries share is the host, HPU memory is each entry's own.
 *
 *      word of 8 bytes, its address a multiple of 8:   0 free, 1 held
 *
 * A handler holds a lock for one packet at most and makes no call meanwhile that may
 * have to wait for a peer. It asks with a bound, so that a lock that is never let go
 * (its holder was ended by a fault) ends messages with FAIL and blocks no HPU for ever.
 */
#ifndef HANDLERS_HOST_LOCK_H
#define HANDLERS_HOST_LOCK_H

#include "spin_handler.h"

enum { HOST_LOCK_TRIES = 1 << 20 };

/* host_lock() takes the lock at `offset`; false: it was held all through `tries`. */
static inline bool host_lock(ptl_size_t offset, unsigned int options, unsigned tries)
{
    for (unsigned i = 0; i < tries; i++) {
        uint64_t found = 0;
        PtlHandlerDMACASB(offset, &found, 1, options);
        if (found == 0) {
            return true;
        }
        PtlHandlerYield();
    }
    return false;
}

static inline void host_unlock(ptl_size_t offset, unsigned int options)
{
    uint64_t held = 1;
    PtlHandlerDMACASB(offset, &held, 0, options);
}

#endif
