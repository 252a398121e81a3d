/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handlers of a replicated log.
 *
 *      client ──record──► leader: append ──record──► follower: follow
 *                         leader: held   ◄──index──┘
 *
 * A follower is sent records in order, from the log, as far as it takes them: by the handler of an
 * append, and where that was refused by those of what it holds, one handler at a time.
 */
#include "replog.h"

static ptl_size_t place_of(uint64_t record)
{
    return offsetof(struct replog, record) + record % REPLOG_KEPT * REPLOG_RECORD;
}

/* Sends records for as long as they have places. */
static uint64_t send_some(const struct replog_state *s, unsigned to, uint64_t from, uint64_t last)
{
    uint8_t record[REPLOG_RECORD];
    for (; from < last; from++) {
        PtlHandlerDMAFromHostB(place_of(from + 1), record, sizeof(record), PTL_HANDLER_HOST_MEM);
        if (PtlHandlerPutFromDevice(record, sizeof(record), (ptl_ack_req_t)s->nowait, s->rank[to],
                                    REPLOG_FOLLOW, 0, NULL, from + 1) != PTL_OK) {
            PtlHandlerDMAFetchAddB(offsetof(struct replog, refused), 1, NULL, PTL_UINT64_T,
                                   PTL_HANDLER_HOST_MEM);
            break;
        }
    }
    return from;
}

/* Who finds another handler sending leaves that one what it has appended, which is looked for again
 * when `sending` is given back. */
static void send_on(struct replog_state *s, unsigned to)
{
    uint64_t last = __atomic_load_n(&s->appended, __ATOMIC_SEQ_CST), reached = 0;
    while (__atomic_load_n(&s->sent[to], __ATOMIC_SEQ_CST) < last &&
           PtlHandlerCAS(&s->sending[to], 0, 1)) {
        reached = send_some(s, to, s->sent[to], last);
        __atomic_store_n(&s->sent[to], reached, __ATOMIC_SEQ_CST);
        __atomic_store_n(&s->sending[to], 0, __ATOMIC_SEQ_CST);
        if (reached < last) {
            return; /* it has some to take, and will say so */
        }
        last = __atomic_load_n(&s->appended, __ATOMIC_SEQ_CST);
    }
}

__handler static int append(const ptl_header_t h, void *state)
{
    struct replog_state *s = state;
    uint64_t record = s->appended + 1;
    PtlHandlerDMAToHostB(h.user_hdr, place_of(record), REPLOG_RECORD, PTL_HANDLER_HOST_MEM);
    __atomic_store_n(&s->appended, record, __ATOMIC_SEQ_CST);
    PtlHandlerDMAToHostB(&record, 0, sizeof(record), PTL_HANDLER_HOST_MEM);
    for (unsigned r = 1; r < REPLOG_RANKS; r++) {
        send_on(s, r);
    }
    return DROP;
}
PTL_HANDLER(append);

__handler static int held(const ptl_header_t h, void *state)
{
    uint64_t record = h.hdr_data >> 8;
    unsigned from = h.hdr_data & 0xff;
    PtlHandlerDMAToHostB(&record, from * sizeof(record), sizeof(record), PTL_HANDLER_HOST_MEM);
    send_on(state, from);
    return DROP;
}
PTL_HANDLER(held);

__handler static int follow(const ptl_header_t h, void *state)
{
    struct replog_state *s = state;
    uint64_t record = h.hdr_data;
    if (record != s->appended + 1) {
        PtlHandlerDMAFetchAddB(offsetof(struct replog, disorder), 1, NULL, PTL_UINT64_T,
                               PTL_HANDLER_HOST_MEM);
        return DROP;
    }
    s->appended = record;
    PtlHandlerDMAToHostB(h.user_hdr, place_of(record), REPLOG_RECORD, PTL_HANDLER_HOST_MEM);
    return PtlHandlerPutFromDevice(NULL, 0, PTL_NO_ACK_REQ, s->rank[0], REPLOG_HELD, 0, NULL,
                                   record << 8 | s->me) == PTL_OK
               ? DROP
               : FAIL;
}
PTL_HANDLER(follow);

const ptl_handlers_t replog_append = {
    .header_handler = append, .hpu_mem = PTL_HPU_MEM_NONE, .user_hdr_length = REPLOG_RECORD};
const ptl_handlers_t replog_held = {.header_handler = held, .hpu_mem = PTL_HPU_MEM_NONE};
const ptl_handlers_t replog_follow = {
    .header_handler = follow, .hpu_mem = PTL_HPU_MEM_NONE, .user_hdr_length = REPLOG_RECORD};
