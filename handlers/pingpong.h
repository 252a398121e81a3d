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
 * An entry serves one ping at a time, as it is with ping-pong: the header handler
 * notes in the entry's HPU memory to whom the answer goes.
 */
#ifndef HANDLERS_PINGPONG_H
#define HANDLERS_PINGPONG_H

#include "portals4.h"
#include "spin.h"

enum pingpong_way { PINGPONG_STORED, PINGPONG_STREAMED };

/* HPU memory of the entry. */
struct pingpong_state {
    uint64_t answer_bits; /* match bits of the answer; set by the host */
    ptl_process_t client; /* by the header handler, from here on */
    uint64_t length;
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
