/* SPDX-License-Identifier: BSD-3-Clause */
/* In-order completion: parts of a message that must wait for the messages before it (turn.c). */
#ifndef NIC_TURN_H
#define NIC_TURN_H

#include "nic/rx.h"

/* turn_waits_to_begin() says whether a message that was matched must wait, with all that follows,
 * until earlier ones have ended; turn_waits_to_write() whether only its data must, now that the
 * sink is known. */
bool turn_waits_to_begin(const struct rx *rx);
bool turn_waits_to_write(const struct rx *rx);
/* turn_passes() says whether, in virtual time, a message may end before another one of its channel
 * that came before it. */
bool turn_passes(const struct rx *rx, const struct rx *other);
/* turn_keeps() says whether an earlier message of the same peer, which is in its channel, uses an
 * entry. An ask waits for asks and requests, a request for requests only. */
bool turn_keeps(const struct rx *rx, const struct le *le);

#endif
