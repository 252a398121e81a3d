/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues: rings in the program's memory. A full one overwrites its oldest
 * event and says so at the next get.
 */
#include "nic/nic.h"

void eq_post(struct eq_ref ref, const ptl_event_t *event)
{
    if (!eq_ref_alive(ref)) {
        return;
    }
    struct eq *eq = ref.eq;
    uint64_t tail = atomic_load_explicit(&eq->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&eq->head, memory_order_relaxed);
    if (tail - head == eq->size) {
        atomic_store_explicit(&eq->head, head + 1, memory_order_relaxed);
        eq->dropped = true;
    }
    eq->ring[tail % eq->size] = *event;
    atomic_store_explicit(&eq->tail, tail + 1, memory_order_release);
    eq->ni->nic->news = true;
}

int eq_take(struct eq *eq, ptl_event_t *event)
{
    uint64_t head = atomic_load_explicit(&eq->head, memory_order_relaxed);
    if (head == atomic_load_explicit(&eq->tail, memory_order_relaxed)) {
        return PTL_EQ_EMPTY;
    }
    *event = eq->ring[head % eq->size];
    atomic_store_explicit(&eq->head, head + 1, memory_order_relaxed);
    if (eq->dropped) {
        eq->dropped = false;
        return PTL_EQ_DROPPED;
    }
    return PTL_OK;
}
