/* SPDX-License-Identifier: BSD-3-Clause */
/* The handler that sends what it is told, until it is refused (share.c). */
#include "share_handlers.h"

static int send_one(struct share_state *s, enum share_what what, unsigned to, ptl_ack_req_t ack)
{
    ptl_hdr_data_t number = s->mark + s->sent[to];
    switch (what) {
    case SHARE_ATOMIC:
        return PtlHandlerAtomicFromDevice(s->data, 8, ack, s->rank[to], s->landing, 0, NULL, number,
                                          PTL_SUM, PTL_UINT64_T);
    case SHARE_HOST_PUT:
        return PtlHandlerPutFromHost(0, 8, ack, s->rank[to], s->landing, 0, NULL, number);
    default:
        return PtlHandlerPutFromDevice(s->data, SHARE_BYTES, ack, s->rank[to], s->landing, 0, NULL,
                                       number);
    }
}

__handler static int share_header(const ptl_header_t h, void *state)
{
    struct share_state *s = state;
    enum share_what what = (enum share_what)(h.hdr_data & 0xff);
    unsigned to = h.hdr_data >> 8 & 0xff, times = (unsigned)(h.hdr_data >> 32);
    struct share_notes notes = {.code = PTL_OK};
    enum { RESULTS = offsetof(struct share_notes, sent) };
    while (times-- > 0 && notes.code == PTL_OK) {
        notes.code = send_one(s, what, to, (ptl_ack_req_t)(h.hdr_data >> 16));
        s->sent[to] += notes.code == PTL_OK;
    }
    notes.sent = s->sent[to];
    PtlHandlerDMAToHostB(&notes.sent, RESULTS, sizeof(notes) - RESULTS, PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAFetchAddB(offsetof(struct share_notes, ended), 1, NULL, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    return DROP;
}
PTL_HANDLER(share_header);

__handler static int share_payload(const ptl_payload_t p, void *state)
{
    const struct share_state *s = state;
    PtlHandlerDMAFetchAddB(offsetof(struct share_notes, begun), 1, NULL, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    return PtlHandlerPutFromDevice(p.base, 64, PTL_NO_ACK_REQ, s->rank[SHARE_STOPPED], s->landing,
                                   0, NULL, 0) == PTL_OK
               ? SUCCESS
               : FAIL;
}
PTL_HANDLER(share_payload);

const ptl_handlers_t share_flood = {
    .payload_handler = share_payload,
    .hpu_mem = PTL_HPU_MEM_NONE,
};

const ptl_handlers_t share_handlers = {
    .header_handler = share_header,
    .hpu_mem = PTL_HPU_MEM_NONE,
};
