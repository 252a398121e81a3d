/* SPDX-License-Identifier: BSD-3-Clause */
/* In-order completion: parts of a message that must wait for the messages before it (turn.c). */
#ifndef NIC_TURN_H
#define NIC_TURN_H

#include "nic/rx.h"

/* Whether a message that was matched waits until one before it has ended: with all that is to be
 * done for it, or only with its data, now that the sink is known. */
bool turn_waits_to_begin(const struct rx *rx);
bool turn_waits_to_write(const struct rx *rx);
/* Whether a message of the peer that is in its channel has an entry. */
bool turn_keeps(const struct nic_peer *peer, const struct le *le);

#endif
