/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog: a thread that ends handlers which run for longer than their budget.
 *
 *      ASLEEP ──a context starts, hpu_watchdog_note()──► looks at all contexts every quarter of
 *         ▲                                              the budget (1 to 250 ms)
 *         └──── two looks in a row found none running ─────┘
 *
 * The budget is processor time of the handler's thread, from a start or resumption of a context to
 * its next suspension: time for which the thread gets no processor does not count. A handler has at
 * least its budget, and at most two looks more. While no handler runs, the watchdog sleeps without
 * a time-out; the start of a handler then costs a load, and no system call unless it wakes the
 * watchdog.
 */
#ifndef HPU_WATCHDOG_H
#define HPU_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/sys.h"
#include "hpu/context.h"

struct hpu_watchdog {
    _Atomic uint32_t asleep;
};

/* hpu_watchdog_start() watches the contexts of a pool, none of which is running; NULL, with errno
 * set, if it cannot. hpu_watchdog_stop() ends it; NULL is legal. */
struct hpu_watchdog *hpu_watchdog_start(struct hpu_pool *pool, int64_t budget_ns);
void hpu_watchdog_stop(struct hpu_watchdog *watchdog);

/* hpu_watchdog_wake() is the slow half of hpu_watchdog_note(). */
void hpu_watchdog_wake(struct hpu_watchdog *watchdog);

/* hpu_watchdog_note() notes that a context has just begun to run, and wakes the watchdog if it
 * sleeps. */
static inline void hpu_watchdog_note(struct hpu_watchdog *watchdog)
{
    if (watchdog == NULL) {
        return;
    }
    if (lock_asymmetric) {
        compiler_fence();
    } else {
        full_fence();
    }
    if (atomic_load_explicit(&watchdog->asleep, memory_order_relaxed) != 0) {
        hpu_watchdog_wake(watchdog);
    }
}

#endif
