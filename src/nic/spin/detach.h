/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that leave their channel (detach.c); what the stages call is in nic/spin_calls.h. */
#ifndef NIC_SPIN_DETACH_H
#define NIC_SPIN_DETACH_H

#include "nic/spin/invoke.h"

/* detach_note() notes how long the handlers of an entry took for a message of `length` bytes. */
void detach_note(struct handlers *h, uint64_t length, int64_t took);
/* Whether a message, detached or in a channel, must wait until an earlier detached one of its peer
 * has left the same entry. */
bool detach_behind_entry(const struct rx *rx);
/* detach_end() ends a detached message; detach_left() notes that it has left its entry. */
void detach_end(struct invocation *v);
void detach_left(struct invocation *v, const struct le *le);

#endif
