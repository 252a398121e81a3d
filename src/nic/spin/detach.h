/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that leave their channel (detach.c); what the stages call is in nic/spin_calls.h. */
#ifndef NIC_SPIN_DETACH_H
#define NIC_SPIN_DETACH_H

#include "nic/spin/invoke.h"

/* detach_note() learns how long the handlers of an entry took for a message. */
void detach_note(struct handlers *h, uint64_t length, int64_t took);
/* Whether a message, in a channel or not, must wait for one that has left the channel before it to
 * leave its entry. */
bool detach_behind_entry(const struct rx *rx);
/* detach_end() says that one that has left its channel is at its end; detach_left() that it has
 * left its entry. */
void detach_end(struct invocation *v);
void detach_left(struct invocation *v, const struct le *le);

#endif
