/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Design notes; for what it is for, see watchdog.h.
 *
 * - A context that starts writes its guard's turn, and then reads whether the watchdog sleeps; the
 *   watchdog writes that it sleeps, and then reads all turns. By membarrier (or a fence on both
 *   sides) at least one of the two sees what the other has written.
 * - The first handler that wakes the watchdog, and each look, install the library's signal handlers
 *   again: the program may have installed others meanwhile.
 * - The time used by a turn is that of its thread's CPU clock since the watchdog first saw the
 * turn. A thread that has ended has no clock; then its turn is over, too.
 */
#include "hpu/watchdog.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/sys.h"
#include "base/thread.h"
#include "spin_handler.h"

#define LOOKS 4 /* looks within a budget */
#define LOOK_LEAST_NS 1000000
#define LOOK_MOST_NS 250000000
/* Looks in a row that find no running handler, before the watchdog sleeps. */
#define QUIET_LOOKS 2

struct seen {
    uint64_t turn;
    int64_t since; /* reading of the thread's CPU clock then */
};

struct watcher {
    struct hpu_watchdog watchdog; /* first */
    struct hpu_pool *pool;
    int64_t budget, period;
    _Atomic uint32_t stop; /* 1: the watchdog ends */
    pthread_t thread;
    struct seen seen[PTL_NUM_HPUS];
};

void hpu_watchdog_wake(struct hpu_watchdog *watchdog)
{
    if (atomic_exchange(&watchdog->asleep, 0) != 0) {
        fault_refresh(); /* for the handler that is about to run */
        futex_wake(&watchdog->asleep);
    }
}

/* Reads the CPU clock of another thread. Its id is, for the kernel, the thread's number inverted,
 * with 6 for "of a thread, by the scheduler's count". Negative: the thread is gone. */
static int64_t cpu_time(pid_t thread)
{
    return sys_clock_ns((clockid_t)(~(unsigned)thread << 3 | 6));
}

/* Looks at one context; returns whether a handler runs on it. Ends a handler whose budget is used
 * up. */
static bool look_at(struct watcher *w, unsigned i)
{
    struct fault_guard *guard = hpu_pool_guard(w->pool, i);
    struct seen *seen = &w->seen[i];
    uint64_t turn = atomic_load_explicit(&guard->turn, memory_order_acquire);
    if ((turn & 1) == 0) {
        return false;
    }
    int64_t now = cpu_time(__atomic_load_n(&guard->thread, __ATOMIC_RELAXED));
    if (turn != seen->turn) {
        seen->turn = turn;
        seen->since = now;
    } else if (now >= 0 && now - seen->since >= w->budget) {
        fault_end(guard, turn);
    }
    return true;
}

static bool look(struct watcher *w)
{
    bool running = false;
    for (unsigned i = 0; i < hpu_pool_contexts(w->pool); i++) {
        running |= look_at(w, i);
    }
    return running;
}

/* Sleeps until a context starts; if one has started already, it returns at once. */
static void sleep_well(struct watcher *w)
{
    atomic_store(&w->watchdog.asleep, 1);
    if (lock_asymmetric) {
        membarrier_own();
    } else {
        full_fence();
    }
    if (!look(w) && atomic_load(&w->stop) == 0) {
        while (atomic_load(&w->watchdog.asleep) != 0) {
            futex_wait(&w->watchdog.asleep, 1, -1);
        }
    }
    atomic_store(&w->watchdog.asleep, 0);
}

static void *watchdog_thread(void *arg)
{
    struct watcher *w = arg;
    unsigned quiet = 0;
    while (atomic_load(&w->stop) == 0) {
        quiet = look(w) ? 0 : quiet + 1;
        fault_refresh();
        if (quiet >= QUIET_LOOKS) {
            sleep_well(w);
            quiet = 0;
        } else {
            futex_wait(&w->stop, 0, w->period);
        }
    }
    return NULL;
}

struct hpu_watchdog *hpu_watchdog_start(struct hpu_pool *pool, int64_t budget_ns)
{
    struct watcher *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return NULL;
    }
    w->pool = pool;
    w->budget = budget_ns;
    w->period = budget_ns / LOOKS;
    w->period = w->period < LOOK_LEAST_NS ? LOOK_LEAST_NS : w->period;
    w->period = w->period > LOOK_MOST_NS ? LOOK_MOST_NS : w->period;
    int rc = thread_start(&w->thread, NULL, false, watchdog_thread, w);
    if (rc != 0) {
        free(w);
        errno = rc;
        return NULL;
    }
    hpu_pool_set_watchdog(pool, &w->watchdog);
    return &w->watchdog;
}

void hpu_watchdog_stop(struct hpu_watchdog *watchdog)
{
    if (watchdog == NULL) {
        return;
    }
    struct watcher *w = (struct watcher *)watchdog;
    hpu_pool_set_watchdog(w->pool, NULL);
    atomic_store(&w->stop, 1);
    futex_wake(&w->stop);
    hpu_watchdog_wake(watchdog);
    thread_join(w->thread);
    free(w);
}
