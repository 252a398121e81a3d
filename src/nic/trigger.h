/* SPDX-License-Identifier: BSD-3-Clause */
/* Triggered operations (trigger.c). */
#ifndef NIC_TRIGGER_H
#define NIC_TRIGGER_H

#include "nic/objects.h"

/* trigger_new() allocates a triggered operation of an NI and sets its `ni`; the caller sets all
 * other fields. It returns NULL if max_triggered_ops are in use or memory is short. */
struct triggered *trigger_new(struct ni *ni);
/* trigger_arm() queues `t` at a counter, or fires it if the counter has reached its threshold. */
void trigger_arm(struct ct *ct, struct triggered *t);
/* trigger_check() moves the operations whose threshold is reached to the fired list. */
void trigger_check(struct ct *ct);
/* trigger_run() carries out the operations that have fired; true if there were any. */
void trigger_run_fired(struct nic *nic);
static inline bool trigger_run(struct nic *nic)
{
    if (likely(list_empty(&nic->fired))) {
        return false;
    }
    trigger_run_fired(nic);
    return true;
}
/* ct_cancel() frees the triggered operations that wait for a counter. */
void ct_cancel(struct ct *ct);
void ct_drop(struct ct *ct);

#endif
