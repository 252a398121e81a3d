/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks in host memory, for handlers of several entries that run in parallel: entries share host
 * memory, while each has its own HPU memory.
 *
 *      word of 8 bytes, its address a multiple of 8:   0 free, 1 held
 *
 * A handler holds a lock for one packet at most, and meanwhile makes no call that may have to wait
 * for a peer. It tries to take a lock a bounded number of times: so if a lock is never released,
 * because a fault has ended its holder, messages end with FAIL, and no HPU is blocked for ever.
 */
#ifndef HANDLERS_HOST_LOCK_H
#define HANDLERS_HOST_LOCK_H

#include "spin_handler.h"

enum { HOST_LOCK_TRIES = 1 << 20 };

/* host_lock() takes the lock at `offset`; false if other handlers held it at each of `tries`
 * tries. */
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
