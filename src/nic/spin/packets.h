/* SPDX-License-Identifier: BSD-3-Clause */
/* Payload handlers on HPUs that are threads (packets.c). */
#ifndef NIC_SPIN_PACKETS_H
#define NIC_SPIN_PACKETS_H

#include "nic/rx.h"

/* Whether the execution context of the message may have one more call in its queue. */
bool packets_room(const struct rx *rx);
/* packets_take() queues payload handlers for a wire packet, which the fabric must keep then, and
 * perhaps for some of the `behind` bytes that follow it: run->consumed says how far it has come. */
enum rx_step packets_take(struct rx *rx, uint8_t *data, uint64_t offset, size_t length,
                          size_t behind);
/* packets_drop() takes back the calls of a message that have not begun. */
void packets_drop(struct rx *rx);
/* packets_run() says whether an HPU runs a call of the message; packets_end() ends these calls. */
bool packets_run(const struct rx *rx);
void packets_end(struct rx *rx);
/* packets_cancel() gives up the calls that have not ended, and returns how many of them HPUs run
 * on. */
unsigned packets_cancel(struct rx *rx);
/* packet_ended() notes the end of a payload handler's call; lock held. */
void packet_ended(struct nic *nic, struct hpu_exec *exec, int code);

#endif
