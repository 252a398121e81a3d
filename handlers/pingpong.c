/* SPDX-License-Identifier: BSD-3-Clause */
/* Ping-pong answered by the NIC; see pingpong.h. */
#include "pingpong.h"

#include "spin_handler.h"

/* ---- Handlers ---- */

/* Sends a packet back from the packet buffer, to the same offset in the client's entry. */
__handler static int pingpong_packet(const ptl_payload_t p, void *state)
{
    const struct pingpong_state *s = state;
    ptl_header_t h;
    if (PtlHandlerHeader(&h) != PTL_OK) {
        return FAIL;
    }
    int rc = PtlHandlerPutFromDevice(p.base, p.length, PTL_NO_ACK_REQ, h.source_id, s->answer_bits,
                                     p.offset, NULL, 0);
    return rc == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(pingpong_packet);

/* Sends the whole ping back, which is in the entry's memory now. */
__handler static int pingpong_stored(ptl_size_t dropped_bytes, bool flow_control_triggered,
                                     void *state)
{
    const struct pingpong_state *s = state;
    ptl_header_t h;
    if (dropped_bytes != 0 || flow_control_triggered || PtlHandlerHeader(&h) != PTL_OK) {
        return FAIL;
    }
    int rc =
        PtlHandlerPutFromHost(0, h.length, PTL_NO_ACK_REQ, h.source_id, s->answer_bits, 0, NULL, 0);
    return rc == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(pingpong_stored);

/* ---- Host ---- */

void pingpong_handlers(enum pingpong_way way, ptl_size_t length, ptl_size_t packet,
                       ptl_match_bits_t answer_bits, struct pingpong_state *state,
                       ptl_handlers_t *handlers)
{
    bool by_packet = way == PINGPONG_STREAMED || length <= packet;
    *state = (struct pingpong_state){.answer_bits = answer_bits};
    *handlers = (ptl_handlers_t){
        .payload_handler = by_packet ? pingpong_packet : NULL,
        .completion_handler = by_packet ? NULL : pingpong_stored,
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_initial_state = state,
        .hpu_initial_length = sizeof(*state),
    };
}
