/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ping-pong that the NIC of the server answers: its handlers send each put back to the sender,
 * with the same bytes at the same offsets.
 *
 *      STORED     client ──ping──► host memory ──one put, when all of it is there──► client
 *                 (a ping of one packet goes back from the packet buffer)
 *      STREAMED   client ──packet──► its handler ──put of that packet──► client
 *                                    nothing is written to the server's memory
 *
 * A STREAMED entry serves any number of clients at a time, since each handler asks for the sender
 * of its ping. A STORED entry has memory for one ping at a time.
 */
#ifndef HANDLERS_PINGPONG_H
#define HANDLERS_PINGPONG_H

#include "portals4.h"
#include "spin.h"

enum pingpong_way { PINGPONG_STORED, PINGPONG_STREAMED };

/* HPU memory of the entry. */
struct pingpong_state {
    uint64_t answer_bits; /* match bits of the answer; the host sets them */
};

/* pingpong_handlers() fills in the handlers of an entry for pings of `length` bytes. Answers go
 * to `answer_bits` at the entry's portal table index. `packet` is max_payload_size of
 * PtlSpinLimits(); *state must last until the entry is appended. A STORED entry must have memory
 * for a ping, from which the answer is sent; a STREAMED entry needs none. */
void pingpong_handlers(enum pingpong_way way, ptl_size_t length, ptl_size_t packet,
                       ptl_match_bits_t answer_bits, struct pingpong_state *state,
                       ptl_handlers_t *handlers);

#endif
