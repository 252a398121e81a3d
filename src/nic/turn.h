/* SPDX-License-Identifier: BSD-3-Clause */
/* In-order completion: parts of a message that must wait for the messages before it (turn.c). */
#ifndef NIC_TURN_H
#define NIC_TURN_H

#include "nic/rx.h"

/* Whether a message that was matched waits until one before it has ended: with all that is to be
 * done for it, or only with its data, now that the sink is known. */
bool turn_waits_to_begin(const struct rx *rx);
bool turn_waits_to_write(const struct rx *rx);
/* Whether a message of the same peer that a message waits for, and that is in its channel, has an
 * entry: an ask also waits for asks and requests, a request for requests. */
bool turn_keeps(const struct rx *rx, const struct le *le);

#endif
