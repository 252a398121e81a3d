/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress (progress.c): the lock of a NIC, who looks after it, and the ends of a sleep on its
 * doorbell. Stages know no clock: what is here calls them.
 */
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
/* nic_enter_slot() and nic_leave_slot() are these for a thread that has the lock's bias, as
 * lock_enter_slot(); false if it has not. */
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
/* nic_step_out() lets go of the lock while user code runs or a fabric copies, nic_step_in() takes
 * it again; in between the thread counts as one that comes back. */
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
int progress_start(struct nic *nic);
void progress_stop(struct nic *nic);
/* progress_have_alarm() makes what progress_wake_at(), which is nic->wake_at, needs; 0 or -errno.
 */
int progress_have_alarm(struct nic *nic);
void progress_wake_at(struct nic *nic, int64_t due);
/* nic_quiet() says, without the lock, that nic_advance() would find nothing. */
static inline bool nic_quiet(struct nic *nic)
{
    struct fabric *net = nic->net;
    return !atomic_load_explicit(&nic->attention, memory_order_relaxed) &&
           !nic->ops->peek(nic->fabric) && (likely(net == NULL) || !nic->net_ops->peek(net));
}
/* nic_follow_up() goes on with what the end of a handler has let go on; lock held. For HPUs
 * that are threads: the others need not look after what is with them. */
void nic_follow_up(struct nic *nic);
/* nic_advance() does all that can be done now; lock held. True if anything was. */
bool nic_advance(struct nic *nic);
/* nic_take_over() says that a program thread looks after the NIC for a while. */
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
/* nic_foresee() fetches, without the lock, what the next poll for requests will look at: for a
 * program that has seen all there was, and comes again. */
static inline void nic_foresee(struct nic *nic)
{
    nic->ops->foresee(nic->fabric);
}
/* nic_poll_all() is nic_poll() until all that had come when it was called has been looked at. */
void nic_poll_all(struct nic *nic);
/* nic_poll() is nic_advance() for a program thread, without the lock; it keeps the
 * NIC thread away, and gives the core away now and then when nothing happens. */
void nic_poll(struct nic *nic);
/* nic_note_poll() notes whether a poll found anything to do. With more pollers than cores,
 * somebody else may have the message: give the core away now and then. */
#define EMPTY_POLLS_YIELD 64 /* polls of nothing before a polling program yields */
static inline void nic_note_poll(struct nic *nic, bool found)
{
    unsigned n = found ? 0 : atomic_load_explicit(&nic->empty_polls, memory_order_relaxed) + 1;
    atomic_store_explicit(&nic->empty_polls, n, memory_order_relaxed);
    if (unlikely(!found && n % EMPTY_POLLS_YIELD == 0)) {
        place_yield(nic);
    }
}
/* nic_sleep_on_doorbell() gives the lock up and sleeps until the doorbell rings, a wake-up is due
 * or the time is over (negative: never). */
void nic_sleep_on_doorbell(struct nic *nic, int64_t timeout_ns, struct ct_mark *mark);

#endif
