/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of handlers.c for the other files of this folder; those for the stages are in
 * nic/spin_calls.h. */
#ifndef NIC_SPIN_HANDLERS_H
#define NIC_SPIN_HANDLERS_H

#include "nic/rx.h"

/* For handler_run.c and packets.c. handlers_next_packet() takes bytes of a wire packet for the
 * handlers' next packet; true: that is complete, and run->packet is in the bounce buffer or in the
 * wire packet. handlers_payload_result() notes how a payload handler, which had `length` bytes at
 * `base`, has ended. handlers_no_room() says whether a message has found no room for its next call
 * for too long; then it discards the rest of the message. handlers_set_pace(), after each call of a
 * payload handler, sets how many packets the next one takes. */
bool handlers_next_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length);
void handlers_payload_result(struct rx *rx, const struct hpu_exec *exec, int code,
                             const uint8_t *base, size_t length);
bool handlers_no_room(struct rx *rx);
void handlers_set_pace(struct handlers *h, const struct hpu_exec *exec);

/* For handler_send.c: handlers_describe() fills in the header of a message, if no handler was
 * called with it yet; the caller does not hold the lock. False: the message is gone. */
bool handlers_describe(struct handler_run *run);

/* handlers_payload() returns the packet in progress as its handler is to see it.
 * handlers_taken_along() returns how many of the bytes that follow it in memory its call takes,
 * too. */
static inline ptl_payload_t handlers_payload(const struct handler_run *run)
{
    return (ptl_payload_t){
        .length = run->packet_length,
        .offset = run->emitted,
        .base = (uint8_t *)run->packet,
    };
}
static inline size_t handlers_taken_along(const struct rx *rx, size_t behind)
{
    const struct nic *nic = rx->run->nic;
    size_t most = nic->time == NULL ? rx->at.le->handlers->together * nic->packet_size : 0;
    return behind < most ? behind : most;
}

#endif
