/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ping-pong that the NIC of the server answers: each put that arrives goes
 * back to its sender, same bytes, same offsets.
 *
 *      STORED     client ──ping──► host memory ──one put, when all of it is there──► client
 *                 (a ping of one packet goes back from the packet buffer)
 *      STREAMED   client ──packet──► its handler ──put of that packet──► client
 *                                    nothing is written to the server's memory
 *
 * An entry that is STREAMED serves any number of clients at a time: each handler asks whose
 * ping it sees. One that is STORED has memory for one ping, as it is with ping-pong.
 */
#ifndef HANDLERS_PINGPONG_H
#define HANDLERS_PINGPONG_H

#include "portals4.h"
#include "spin.h"

enum pingpong_way { PINGPONG_STORED, PINGPONG_STREAMED };

/* HPU memory of the entry. */
struct pingpong_state {
    uint64_t answer_bits; /* match bits of the answer; set by the host */
};

/* pingpong_handlers() fills in the handlers of an entry for pings of `length`
 * bytes. Answers go to `answer_bits` at the entry's portal table index.
 * `packet` is max_payload_size of PtlSpinLimits(); *state must last until the
 * entry is appended. A STORED entry needs memory for a ping (its answer is sent
 * from there), a STREAMED one none. */
void pingpong_handlers(enum pingpong_way way, ptl_size_t length, ptl_size_t packet,
                       ptl_match_bits_t answer_bits, struct pingpong_state *state,
                       ptl_handlers_t *handlers);

#endif
