/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics at entries with handlers: what the header handler sees and decides, and payload handlers
 * in place of the operation.
 */
#include "handler.h"

enum { WORDS = 32, LENGTH = WORDS * 8, OFFSET = 16, SENT = 5 };

static uint64_t source[WORDS], memory[WORDS], before[WORDS];

enum move { ATOMIC, FETCH, SWAP, MOVES };
static const ptl_request_type_t types[] = {PTL_REQUEST_ATOMIC, PTL_REQUEST_FETCH_ATOMIC,
                                           PTL_REQUEST_SWAP};

static struct results {
    struct handler_log log;
    uint64_t type, length, user, operand, offset;
} results;

struct state {
    uint64_t answer, payload_answer;
};

__handler static int header_handler(const ptl_header_t h, void *state)
{
    const struct state *s = state;
    uint64_t seen[] = {h.type, h.length, h.user_hdr_length, 0, h.offset};
    if (h.user_hdr_length == 8) {
        seen[3] = *(const uint64_t *)h.user_hdr;
    }
    handler_log_header();
    PtlHandlerDMAToHostB(seen, offsetof(struct results, type), sizeof(seen), PTL_HANDLER_HOST_MEM);
    return (int)s->answer;
}

/* Multiplies by 10 what has come, which goes to the entry; leaves one more in the packet. */
__handler static int payload_handler(const ptl_payload_t p, void *state)
{
    const struct state *s = state;
    handler_log_payload(&p);
    for (ptl_size_t i = 0; i + 8 <= p.length; i += 8) {
        uint64_t *word = (uint64_t *)(p.base + i), ten = *word * 10;
        PtlHandlerDMAToHostB(&ten, OFFSET + p.offset + i, 8, PTL_ME_HOST_MEM);
        *word += 1;
    }
    return (int)s->payload_answer;
}

__handler static int completion_handler(ptl_size_t dropped, bool flow_control, void *state)
{
    handler_log_completion(dropped, flow_control);
    return SUCCESS;
}
PTL_HANDLER(header_handler);
PTL_HANDLER(payload_handler);
PTL_HANDLER(completion_handler);

static void start(struct port *p, enum move move, ptl_handle_md_t md, ptl_handle_md_t get_md,
                  uint64_t length)
{
    static const uint64_t operand = 3; /* memory[OFFSET / 8] + 1 */
    switch (move) {
    case ATOMIC:
        OK(PtlAtomic(md, 0, length, PTL_ACK_REQ, p->id[1], p->pt, HANDLER_BITS, OFFSET, NULL, 4,
                     PTL_SUM, PTL_UINT64_T));
        break;
    case FETCH:
        OK(PtlFetchAtomic(get_md, 0, md, 0, length, p->id[1], p->pt, HANDLER_BITS, OFFSET, NULL, 4,
                          PTL_SUM, PTL_UINT64_T));
        break;
    default:
        OK(PtlSwap(get_md, 0, md, 0, length, p->id[1], p->pt, HANDLER_BITS, OFFSET, NULL, 4,
                   &operand, PTL_CSWAP_NE, PTL_UINT64_T));
    }
}

/* What is to come of it. */
struct outcome {
    int fail;
    bool done, given; /* the operation was done; the payload handler had its bytes */
    uint64_t mlength;
};

static struct outcome expect(enum move move, uint64_t answer, uint64_t payload_answer,
                             bool has_payload, uint64_t length)
{
    struct outcome o = {.mlength = length};
    bool process = answer == PROCESS_DATA;
    o.done = answer == PROCEED || (process && !has_payload);
    o.given = process && has_payload;
    bool kept = o.done || (o.given && payload_answer == SUCCESS);
    bool failed = answer == FAIL || (o.given && payload_answer == FAIL);
    o.mlength = kept ? length : 0;
    o.fail = failed                                   ? PTL_NI_HANDLER_FAIL
             : move != ATOMIC && !kept && length != 0 ? PTL_NI_DROPPED
                                                      : PTL_NI_OK;
    return o;
}

static void check_target(enum move move, struct outcome o, uint64_t length, bool completes)
{
    uint64_t whole = length + (move == SWAP ? 8 : 0);
    CHECK_EQ(results.type, types[move]);
    CHECK_EQ(results.length, whole);
    CHECK_EQ(results.user, move == SWAP ? 8 : 0);
    CHECK(move != SWAP || results.operand == 3);
    CHECK_EQ(results.offset, OFFSET);
    CHECK_EQ(results.log.headers, 1);
    CHECK_EQ(results.log.payloads, o.given && length != 0);
    CHECK_EQ(results.log.completions, completes);
    CHECK_EQ(results.log.disorder, 0);
    for (uint64_t i = 0; i < WORDS; i++) {
        uint64_t at = i - OFFSET / 8, was = i, sent = 100 + at;
        bool within = at < length / 8;
        uint64_t sum = move == SWAP ? sent : was + sent;
        CHECK_EQ(memory[i], within && o.done ? sum : within && o.given ? sent * 10 : was);
    }
}

static void one_round(struct port *p, enum move move, struct state s, bool has_payload,
                      uint64_t length)
{
    struct outcome o = expect(move, s.answer, s.payload_answer, has_payload, length);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    ptl_handle_ct_t ct = port_ct(p);
    memset(&results, 0, sizeof(results));
    for (uint64_t i = 0; i < WORDS; i++) {
        source[i] = 100 + i;
        memory[i] = i;
        before[i] = 7777;
    }
    if (p->rank == 1) {
        ptl_handlers_t h =
            handler_set(header_handler, has_payload ? payload_handler : NULL, completion_handler,
                        &s, sizeof(s), &results, sizeof(results));
        h.user_hdr_length = 16; /* of puts */
        entry = handler_target(p, memory, LENGTH, 0, ct, &h);
    }
    BARRIER();
    if (p->rank == 0) {
        ptl_handle_md_t md = port_md(p, source, LENGTH, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        ptl_handle_md_t get = port_md(p, before, LENGTH, 0, PTL_CT_NONE);
        start(p, move, md, get, length);
        ptl_event_t event =
            EVENT_FAIL(p->mdeq, move == ATOMIC ? PTL_EVENT_ACK : PTL_EVENT_REPLY, o.fail);
        CHECK_EQ(event.mlength, o.fail == PTL_NI_OK ? o.mlength : 0);
        for (uint64_t i = 0; i < WORDS && move != ATOMIC; i++) {
            bool within = i < length / 8 && o.fail == PTL_NI_OK;
            CHECK_EQ(before[i], !within ? 7777 : o.given ? 101 + i : i + OFFSET / 8);
        }
        port_release(md);
        port_release(get);
    } else {
        int kind = move == ATOMIC ? PTL_EVENT_ATOMIC : PTL_EVENT_FETCH_ATOMIC;
        ptl_event_t event = EVENT_FAIL(p->eq, kind, o.fail);
        CHECK_EQ(event.hdr_data, 4);
        CHECK_EQ(event.rlength, length);
        CHECK_EQ(event.mlength, o.fail == PTL_NI_OK || move == ATOMIC ? o.mlength : 0);
        check_target(move, o, length, s.answer != PROCEED && s.answer != FAIL);
        handler_check_ct(ct, o.fail == PTL_NI_OK, o.fail != PTL_NI_OK);
        port_unlink(p, entry);
    }
    BARRIER();
    OK(PtlCTFree(ct));
}

PTEST_KINDS(answers, 2)
{
    static const uint64_t headers[] = {PROCESS_DATA, PROCEED, DROP, FAIL};
    static const uint64_t payloads[] = {SUCCESS, DROP, FAIL};
    struct port p;
    port_open(&p, kind, rank, size);
    for (enum move move = 0; move < MOVES; move++) {
        for (int h = 0; h < 4; h++) {
            for (int a = 0; a < 3; a++) {
                struct state s = {headers[h], payloads[a]};
                one_round(&p, move, s, true, move == SWAP ? 8 : SENT * 8);
            }
            one_round(&p, move, (struct state){headers[h], SUCCESS}, false,
                      move == SWAP ? 8 : SENT * 8);
        }
    }
    port_close(&p);
}

/* Nothing is sent: there is nothing for a payload handler. */
PTEST_KINDS(empty, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    for (enum move move = ATOMIC; move <= FETCH; move++) {
        one_round(&p, move, (struct state){PROCESS_DATA, SUCCESS}, true, 0);
        one_round(&p, move, (struct state){PROCEED, SUCCESS}, false, 0);
    }
    port_close(&p);
}

/* Without a header handler the payload handler has it all the same. */
PTEST_KINDS(no_header_handler, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    struct state s = {PROCESS_DATA, SUCCESS};
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    memset(memory, 0, LENGTH);
    source[0] = 6;
    if (rank == 1) {
        ptl_handlers_t h =
            handler_set(NULL, payload_handler, NULL, &s, sizeof(s), &results, sizeof(results));
        entry = handler_target(&p, memory, LENGTH, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_md(&p, source, 8, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        start(&p, ATOMIC, md, md, 8);
        EVENT(p.mdeq, PTL_EVENT_ACK);
        port_release(md);
    } else {
        EVENT(p.eq, PTL_EVENT_ATOMIC);
        CHECK_EQ(memory[OFFSET / 8], 60);
        port_unlink(&p, entry);
    }
    port_close(&p);
}
