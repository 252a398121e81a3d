/* SPDX-License-Identifier: BSD-3-Clause */
/* Payload handlers on HPUs that are threads (packets.c). */
#ifndef NIC_SPIN_PACKETS_H
#define NIC_SPIN_PACKETS_H

#include "nic/rx.h"

/* Whether one more call of the message's handlers may be queued. */
bool packets_room(const struct rx *rx);
/* packets_take() has payload handlers called for a wire packet, which is then to be kept, and
 * perhaps for some of the `behind` bytes that lie behind it: run->consumed says how many. */
enum rx_step packets_take(struct rx *rx, uint8_t *data, uint64_t offset, size_t length,
                          size_t behind);
/* packets_drop() takes back what has not begun. */
void packets_drop(struct rx *rx);
/* packets_run() says whether any runs, packets_end() ends those that do. */
bool packets_run(const struct rx *rx);
void packets_end(struct rx *rx);
/* packets_cancel() gives up what has not ended, and counts the calls that run on. */
unsigned packets_cancel(struct rx *rx);
/* packet_ended() notes the end of a payload handler; lock held. */
void packet_ended(struct nic *nic, struct hpu_exec *exec, int code);

#endif
