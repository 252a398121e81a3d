/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters (counter.c), and what follows from a change: triggered operations start, sleepers
 * wake. */
#ifndef NIC_COUNTER_H
#define NIC_COUNTER_H

#include "nic/trigger.h"

void ct_add(struct ct_ref ref, uint64_t success, uint64_t failure);
/* ct_count() counts one operation: if it succeeded `bytes`, or 1 without `count_bytes`, as success,
 * else 1 as failure. */
void ct_count(struct ct_ref ref, ptl_ni_fail_t fail, bool count_bytes, uint64_t bytes);
void ct_set(struct ct *ct, ptl_ct_event_t value);
static inline bool ct_ref_alive(struct ct_ref ref)
{
    return ref.ct != NULL && ref.ct->slot.handle == ref.handle;
}
/* ct_changed() has follow what a change is to set off: ct_tell() tells who sleeps. */
void ct_tell(struct ct *ct);
static inline void ct_changed(struct ct *ct)
{
    if (unlikely(ct->ni->nic->waiters != 0)) {
        ct_tell(ct);
    }
    if (!list_empty(&ct->triggers)) {
        trigger_check(ct);
    }
}
static inline void ct_step(_Atomic uint64_t *value, uint64_t increment)
{
    uint64_t before = atomic_load_explicit(value, memory_order_relaxed);
    atomic_store_explicit(value, before + increment, memory_order_release);
}
/* ct_add_success() is ct_add() without failures, inline. */
static inline void ct_add_success(struct ct_ref ref, uint64_t increment)
{
    if (ct_ref_alive(ref)) {
        ct_step(&ref.ct->success, increment);
        ct_changed(ref.ct);
    }
}

#endif
