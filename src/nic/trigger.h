/* SPDX-License-Identifier: BSD-3-Clause */
/* Triggered operations (trigger.c). */
#ifndef NIC_TRIGGER_H
#define NIC_TRIGGER_H

#include "nic/objects.h"

/* trigger_new() allocates a triggered operation of an NI and sets its `ni`; the caller sets all
 * other fields. It returns NULL if max_triggered_ops are in use or memory is short. */
struct triggered *trigger_new(struct ni *ni);
/* trigger_arm() queues `t` on a counter, or fires it when that is reached. */
void trigger_arm(struct ct *ct, struct triggered *t);
/* trigger_check() moves what a counter has reached to the fired list. */
void trigger_check(struct ct *ct);
/* trigger_run() carries out what has fired; true if anything had. */
void trigger_run_fired(struct nic *nic);
static inline bool trigger_run(struct nic *nic)
{
    if (likely(list_empty(&nic->fired))) {
        return false;
    }
    trigger_run_fired(nic);
    return true;
}
/* ct_cancel() forgets the triggered operations that wait for a counter. */
void ct_cancel(struct ct *ct);
void ct_drop(struct ct *ct);

#endif
