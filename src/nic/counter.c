/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters. Only a thread that holds the NIC's lock changes one. The program may read one without
 * the lock, and then sees all that the counted operations have written. */
#include "nic/counter.h"

void ct_tell(struct ct *ct)
{
    struct nic *nic = ct->ni->nic;
    bool due = nic->wakeup.any_change != 0;
    LIST_EACH(struct ct_mark, mark, &nic->counting, link) {
        due |= mark->ct == ct &&
               (atomic_load_explicit(&ct->success, memory_order_relaxed) >= mark->success ||
                atomic_load_explicit(&ct->failure, memory_order_relaxed) != 0);
    }
    nic->wakeup.due |= due;
}

void ct_add(struct ct_ref ref, uint64_t success, uint64_t failure)
{
    if (ct_ref_alive(ref)) {
        ct_step(&ref.ct->success, success);
        ct_step(&ref.ct->failure, failure);
        ct_changed(ref.ct);
    }
}

void ct_count(struct ct_ref ref, ptl_ni_fail_t fail, bool count_bytes, uint64_t bytes)
{
    if (fail != PTL_NI_OK) {
        ct_add(ref, 0, 1);
    } else {
        ct_add(ref, count_bytes ? bytes : 1, 0);
    }
}

void ct_set(struct ct *ct, ptl_ct_event_t value)
{
    atomic_store_explicit(&ct->success, value.success, memory_order_release);
    atomic_store_explicit(&ct->failure, value.failure, memory_order_release);
    ct_changed(ct);
}
