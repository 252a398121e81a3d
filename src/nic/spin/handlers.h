/* SPDX-License-Identifier: BSD-3-Clause */
/* Of handlers.c, for the files beside it; what the stages call is in nic/spin_calls.h. */
#ifndef NIC_SPIN_HANDLERS_H
#define NIC_SPIN_HANDLERS_H

#include "nic/rx.h"

/* For packets.c: handlers_next_packet() takes from a wire packet what makes the next one for
 * handlers; true when that is complete, in run->packet, which is the bounce buffer or part of
 * the wire packet. handlers_payload_result() notes how a payload handler of `length` bytes
 * at `base` ended. handlers_no_room() says whether a message has found no room for its next call
 * for too long; then it goes no further, and the sink says so. handlers_set_pace(), after each call
 * of payload handlers, has the next one take more packets, or fewer. */
bool handlers_next_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length);
void handlers_payload_result(struct rx *rx, const struct hpu_exec *exec, int code,
                             const uint8_t *base, size_t length);
bool handlers_no_room(struct rx *rx);
void handlers_set_pace(struct handlers *h, const struct hpu_exec *exec);

/* For handler_send.c: handlers_describe() makes the header of a message that none of its handlers
 * was called with; the lock is not held. False: the message is gone. */
bool handlers_describe(struct handler_run *run);

/* handlers_payload() is the packet in progress, as its handler is to see it; handlers_taken_along()
 * how many of the bytes that lie behind it its call takes, too. */
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
    size_t most = rx->at.le->handlers->together * rx->run->nic->packet_size;
    return behind < most ? behind : most;
}

#endif
