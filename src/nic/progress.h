/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress (progress.c): the lock of a NIC, the threads that make progress, and how they sleep on
 * its doorbell. Stages read no clock: the functions of this file call them. */
#ifndef NIC_PROGRESS_H
#define NIC_PROGRESS_H

#include "nic/objects.h"

static inline void nic_lock(struct nic *nic)
{
    lock_take(&nic->lock);
}
/* nic_wake_sleepers() wakes the program threads that sleep on the doorbell. */
void nic_wake_sleepers(struct nic *nic);
/* nic_unlock() wakes sleeping program threads if a wake-up is due. */
static inline void nic_unlock(struct nic *nic)
{
    if (unlikely(nic->wakeup.due && nic->waiters != 0)) {
        nic_wake_sleepers(nic);
    }
    lock_give(&nic->lock);
}
/* nic_enter_slot() and nic_leave_slot() take and release the lock for a thread for which it is
 * biased: lock_enter_slot(). False: it is not. */
static inline bool nic_enter_slot(struct nic *nic, uint32_t slot)
{
    return likely(lock_enter_slot(&nic->lock, slot));
}
static inline void nic_leave_slot(struct nic *nic, uint32_t slot)
{
    if (unlikely(nic->wakeup.due)) {
        nic_unlock(nic);
    } else {
        lock_leave_slot(&nic->lock, slot);
    }
}
/* nic_step_out() releases the lock while user code runs or a fabric copies, and nic_step_in() takes
 * it again; `unlocked` counts the thread meanwhile. */
static inline void nic_step_out(struct nic *nic)
{
    nic->unlocked++;
    nic_unlock(nic);
}
static inline void nic_step_in(struct nic *nic)
{
    nic_lock(nic);
    nic->unlocked--;
}
/* progress_deadline() is the time in ns until somebody must look again without being rung,
 * `most_ns` at the most; negative: there is no need. */
int64_t progress_deadline(struct nic *nic, int64_t most_ns);
int progress_start(struct nic *nic);
void progress_stop(struct nic *nic);
/* progress_have_alarm() opens the timerfd that progress_wake_at(), which is nic->wake_at, sets; 0
 * or -errno. */
int progress_have_alarm(struct nic *nic);
void progress_wake_at(struct nic *nic, int64_t due);
/* nic_quiet() says, without the lock, whether nic_advance() would find nothing to do. It asks the
 * fabric each time, since a look takes time where time is virtual. */
static inline bool nic_quiet(struct nic *nic)
{
    struct fabric *net = nic->net;
    return !nic->ops->peek(nic->fabric) &&
           !atomic_load_explicit(&nic->attention, memory_order_relaxed) &&
           (likely(net == NULL) || !nic->net_ops->peek(net));
}
/* nic_follow_up() makes the progress that the end of a handler allows; lock held. An HPU thread
 * calls it, so that no other thread need watch for that end. */
void nic_follow_up(struct nic *nic);
/* nic_advance() does all that can be done now, and returns whether there was anything; lock
 * held. */
bool nic_advance(struct nic *nic);
/* nic_take_over() notes that a program thread makes progress for a while. */
void nic_take_over_asleep(struct nic *nic);
static inline void nic_take_over(struct nic *nic)
{
    if (unlikely(!atomic_load_explicit(&nic->polled, memory_order_relaxed))) {
        atomic_store_explicit(&nic->polled, true, memory_order_relaxed);
    }
    uint32_t doorbell = atomic_load_explicit(nic->doorbell, memory_order_relaxed);
    if (unlikely((doorbell & DOORBELL_STATE) == DOORBELL_ASLEEP_FD)) {
        nic_take_over_asleep(nic);
    }
}
/* nic_foresee() prefetches, without the lock, the lines that the next poll for requests will read.
 * A program thread calls it that has taken all messages and will poll again. */
static inline void nic_foresee(struct nic *nic)
{
    nic->ops->foresee(nic->fabric);
}
/* nic_poll_all() repeats nic_poll() until each message that had come before the call has been
 * looked at. */
void nic_poll_all(struct nic *nic);
/* nic_poll() is nic_advance() for a program thread that does not hold the lock. It keeps the NIC
 * thread asleep, and yields the core now and then if nothing happens. */
void nic_poll(struct nic *nic);
/* nic_note_poll() notes whether a poll found anything to do. After many that did not it yields:
 * with more polling threads than cores, another one may be the one that can go on. */
#define EMPTY_POLLS_YIELD 64 /* polls of nothing before a polling program yields */
static inline void nic_note_poll(struct nic *nic, bool found)
{
    unsigned n = found ? 0 : atomic_load_explicit(&nic->empty_polls, memory_order_relaxed) + 1;
    atomic_store_explicit(&nic->empty_polls, n, memory_order_relaxed);
    if (unlikely(!found && n % EMPTY_POLLS_YIELD == 0)) {
        place_yield(nic);
    }
}
/* nic_sleep_on_doorbell() releases the lock and sleeps until the doorbell rings, a wake-up is due,
 * or the time is over (negative: never). */
void nic_sleep_on_doorbell(struct nic *nic, int64_t timeout_ns, struct ct_mark *mark);

#endif
