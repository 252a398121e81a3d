/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion handlers: once, after all others of the message, before the host hears
 * of it by event or counter; and what their return codes do.
 */
#include "handler.h"

#include <limits.h>

static unsigned char source[HANDLER_LONGEST], memory[HANDLER_LONGEST];

static struct notes {
    struct handler_log log;
    uint64_t sum; /* of the payload bytes, written by the completion handler alone */
    uint64_t written;
} notes;

/* HPU memory. */
struct state {
    uint64_t sum;
    int32_t yields; /* of the completion handler before it writes */
    int32_t answer;
    int32_t obey; /* return the message's hdr_data instead, unless that is 0 */
    int32_t said;
};

__handler static int header_handler(const ptl_header_t h, void *state)
{
    struct state *s = state;
    handler_log_header();
    s->sum = 0;
    s->said = s->obey && h.hdr_data != 0 ? (int)h.hdr_data : s->answer;
    return PROCESS_DATA;
}

__handler static int payload_handler(const ptl_payload_t p, void *state)
{
    struct state *s = state;
    uint64_t sum = 0;
    handler_log_payload(&p);
    for (ptl_size_t i = 0; i < p.length; i++) {
        sum += p.base[i];
    }
    PtlHandlerFAdd(&s->sum, NULL, sum);
    return SUCCESS;
}

__handler static int completion_handler(ptl_size_t dropped, bool flow_control, void *state)
{
    struct state *s = state;
    for (int i = 0; i < s->yields; i++) {
        PtlHandlerYield();
    }
    handler_log_completion(dropped, flow_control);
    uint64_t written = 1;
    PtlHandlerDMAToHostB(&s->sum, offsetof(struct notes, sum), sizeof(s->sum),
                         PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAToHostB(&written, offsetof(struct notes, written), sizeof(written),
                         PTL_HANDLER_HOST_MEM);
    return s->said;
}

PTL_HANDLER(header_handler);
PTL_HANDLER(payload_handler);
PTL_HANDLER(completion_handler);

static ptl_handlers_t summing(const struct state *s)
{
    memset(&notes, 0, sizeof(notes));
    return handler_set(header_handler, payload_handler, completion_handler, s, sizeof(*s), &notes,
                       sizeof(notes));
}

static uint64_t sum_of(const unsigned char *bytes, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += bytes[i];
    }
    return sum;
}

/* ---- Before the host hears of the message ---- */

enum hear { BY_EVENT, BY_COUNTER, BY_POLLING_COUNTER };

static void wait_for_message(struct port *p, enum hear hear, ptl_handle_ct_t ct)
{
    ptl_ct_event_t value = {0, 0};
    switch (hear) {
    case BY_EVENT:
        EVENT(p->eq, PTL_EVENT_PUT);
        break;
    case BY_COUNTER:
        port_wait_ct(ct, 1);
        break;
    case BY_POLLING_COUNTER:
        while (value.success == 0) {
            OK(PtlCTGet(ct, &value));
        }
        break;
    }
}

static void hear_round(struct port *p, size_t length, int yields, enum hear hear, bool self)
{
    struct state s = {.yields = yields, .answer = SUCCESS};
    ptl_handle_ct_t ct = port_ct(p);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    ptest_fill(source, length, (unsigned)yields);
    if (p->rank == 1) {
        ptl_handlers_t h = summing(&s);
        entry = handler_target(p, memory, sizeof(memory),
                               hear == BY_EVENT ? 0 : PTL_ME_EVENT_COMM_DISABLE, ct, &h);
    }
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(p, source, length, 0, PTL_CT_NONE);
    if (handler_sends(p, self)) {
        OK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, p->id[1], p->pt, 0, 0, NULL, 0));
    }
    if (p->rank == 1) {
        wait_for_message(p, hear, ct);
        CHECK_EQ(notes.written, 1); /* at once */
        CHECK_EQ(notes.sum, sum_of(source, length));
        handler_check_log(&notes.log, 1, 1, 0);
        CHECK_EQ(notes.log.bytes, length);
        port_unlink(p, entry);
        handler_check_log(&notes.log, 1, 1, 0); /* and not once more */
    }
    port_release(md);
    BARRIER();
    OK(PtlCTFree(ct));
}

PTEST_KINDS(before_event_and_counter, 2)
{
    static const enum hear ways[] = {BY_EVENT, BY_COUNTER, BY_POLLING_COUNTER};
    struct port p;
    port_open(&p, kind, rank, size);
    for (int i = 0; i < HANDLER_SIZES; i++) {
        for (int way = 0; way < 3; way++) {
            hear_round(&p, handler_sizes[i], 0, ways[way], i % 2);
            hear_round(&p, handler_sizes[i], 50, ways[way], !(i % 2));
        }
    }
    port_close(&p);
}

/* The ack, too, follows the completion handler: what it wrote is there. */
PTEST_KINDS(before_the_ack, 2)
{
    struct port p;
    struct state s = {.yields = 20, .answer = SUCCESS};
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        ptl_handlers_t h = summing(&s);
        handler_target(&p, memory, sizeof(memory), PTL_ME_EVENT_COMM_DISABLE, PTL_CT_NONE, &h);
        ptl_handle_me_t result = PTL_INVALID_HANDLE;
        ptl_pt_index_t pt;
        OK(PtlPTAlloc(p.ni, 0, PTL_EQ_NONE, p.pt + 1, &pt));
        ptl_me_t me =
            port_entry(&p, &notes, sizeof(notes), PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
        OK(port_append_code(&p, pt, &me, NULL, &result));
    }
    BARRIER();
    for (uint64_t i = 1; i <= 20 && rank == 0; i++) {
        static struct notes seen;
        ptl_handle_md_t md = port_md(&p, &seen, sizeof(seen), 0, PTL_CT_NONE);
        ptest_fill(source, 5000, (unsigned)i);
        handler_put(&p, source, 5000, 0, 0, PTL_NI_OK);
        OK(PtlGet(md, 0, sizeof(seen), p.id[1], p.pt + 1, 0, 0, NULL));
        EVENT(p.mdeq, PTL_EVENT_REPLY);
        CHECK_EQ(seen.log.completions, i);
        CHECK_EQ(seen.sum, sum_of(source, 5000));
        port_release(md);
    }
    port_close(&p);
}

/* Many messages, among them empty ones: as many completions as messages. */
PTEST_KINDS(once_for_each, 3)
{
    enum { N = 300 };
    struct port p;
    struct state s = {.answer = SUCCESS};
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    if (rank == 0) {
        ptl_handlers_t h = summing(&s);
        h.header_handler = NULL;
        s.said = SUCCESS;
        handler_target(&p, memory, sizeof(memory), 0, ct, &h);
    }
    BARRIER();
    if (rank != 0) {
        ptl_handle_md_t md = port_quiet_md(&p, source, 10000, 0, PTL_CT_NONE);
        for (unsigned i = 0; i < N; i++) {
            size_t length = i % 3 == 0 ? 0 : i % 3 == 1 ? 100 : 10000;
            OK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0));
        }
    } else {
        for (uint64_t i = 1; i <= 2 * N; i++) {
            EVENT(p.eq, PTL_EVENT_PUT);
            CHECK(notes.log.completions >= i);
        }
        port_wait_ct(ct, 2 * N);
        CHECK_EQ(notes.log.completions, 2 * N);
        CHECK_EQ(notes.log.dropped, 0);
    }
    port_close(&p);
}

/* ---- Return codes ---- */

static void code_put(struct port *p, int code, size_t length, int fail, bool self)
{
    BARRIER();
    if (handler_sends(p, self)) {
        ptl_event_t ack = handler_put(p, source, length, 0, (ptl_hdr_data_t)code, fail);
        CHECK_EQ(ack.mlength, length); /* no payload was dropped */
    }
    BARRIER();
}

/* SUCCESS_PENDING leaves a use-once entry linked: no event, no count. */
PTEST_KINDS(success_pending, 2)
{
    struct port p;
    struct state s = {.answer = SUCCESS, .obey = 1};
    port_open(&p, kind, rank, size);
    for (int i = 0; i < HANDLER_SIZES; i++) {
        ptl_handle_ct_t ct = port_ct(&p);
        if (rank == 1) {
            ptl_handlers_t h = summing(&s);
            handler_target(&p, memory, sizeof(memory), PTL_ME_USE_ONCE, ct, &h);
        }
        code_put(&p, SUCCESS_PENDING, handler_sizes[i], PTL_NI_OK, i % 2);
        code_put(&p, SUCCESS_PENDING, handler_sizes[i], PTL_NI_OK, !(i % 2));
        if (rank == 1) {
            NO_EVENT(p.eq);
            handler_check_ct(ct, 0, 0);
            CHECK_EQ(notes.log.completions, 2);
        }
        code_put(&p, 0, handler_sizes[i], PTL_NI_OK, i % 2);
        if (rank == 1) {
            CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).hdr_data, 0);
            EVENT(p.eq, PTL_EVENT_AUTO_UNLINK);
            handler_check_ct(ct, 1, 0);
            CHECK_EQ(notes.log.completions, 3);
        }
        OK(PtlCTFree(ct));
    }
    port_close(&p);
}

PTEST_KINDS(fail_and_rubbish, 2)
{
    static const int codes[] = {
        FAIL, DROP, DROP_PENDING,         PROCESS_DATA, PROCEED, PROCEED_PENDING, SEGV,
        10,   32,   32 + SUCCESS_PENDING, -1,           INT_MAX, INT_MIN};
    struct port p;
    struct state s = {.answer = SUCCESS, .obey = 1};
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    if (rank == 1) {
        ptl_handlers_t h = summing(&s);
        handler_target(&p, memory, sizeof(memory), 0, ct, &h);
    }
    for (uint64_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        size_t length = i % 3 == 0 ? 0 : i % 3 == 1 ? 100 : 10000;
        code_put(&p, codes[i], length, PTL_NI_HANDLER_FAIL, i % 2);
        if (rank == 1) {
            ptl_event_t event = EVENT_FAIL(p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
            CHECK_EQ(event.mlength, length);
            handler_check_ct(ct, i, i + 1);
        }
        code_put(&p, 0, length, PTL_NI_OK, !(i % 2));
        if (rank == 1) {
            EVENT(p.eq, PTL_EVENT_PUT);
            NO_EVENT(p.eq);
            handler_check_ct(ct, i + 1, i + 1);
        }
    }
    port_close(&p);
}

/* Events that are switched off: the handler runs all the same, and failures are told
 * unless all events are off. */
PTEST_KINDS(without_events, 2)
{
    struct port p;
    struct state s = {.answer = SUCCESS, .obey = 1};
    port_open(&p, kind, rank, size);
    for (unsigned off = 0; off < 2; off++) {
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_handle_me_t entry = PTL_INVALID_HANDLE;
        if (rank == 1) {
            ptl_handlers_t h = summing(&s);
            unsigned option = off ? PTL_ME_EVENT_COMM_DISABLE : PTL_ME_EVENT_SUCCESS_DISABLE;
            entry = handler_target(&p, memory, sizeof(memory), option, ct, &h);
        }
        code_put(&p, 0, 100, PTL_NI_OK, false);
        code_put(&p, FAIL, 100, PTL_NI_HANDLER_FAIL, false);
        if (rank == 1) {
            if (!off) {
                EVENT_FAIL(p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
            }
            NO_EVENT(p.eq);
            CHECK_EQ(notes.log.completions, 2);
            handler_check_ct(ct, 1, 1);
            port_unlink(&p, entry);
        }
        OK(PtlCTFree(ct));
    }
    port_close(&p);
}

/* No ack where the entry wants none, whatever the handlers say. */
PTEST_KINDS(ack_disabled, 2)
{
    struct port p;
    struct state s = {.answer = SUCCESS, .obey = 1};
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        ptl_handlers_t h = summing(&s);
        handler_target(&p, memory, sizeof(memory), PTL_ME_ACK_DISABLE, PTL_CT_NONE, &h);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_md(&p, source, 100, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        OK(PtlPut(md, 0, 100, PTL_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        OK(PtlPut(md, 0, 100, PTL_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, FAIL));
        port_release(md);
        NO_EVENT(p.mdeq);
    } else {
        EVENT(p.eq, PTL_EVENT_PUT);
        EVENT_FAIL(p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
    }
    port_close(&p);
}

/* ---- Gets ---- */

PTEST_KINDS(of_gets, 2)
{
    static const struct {
        int code, fail;
    } answers[] = {{SUCCESS, PTL_NI_OK}, {SUCCESS_PENDING, PTL_NI_OK}, {FAIL, PTL_NI_HANDLER_FAIL}};
    struct port p;
    port_open(&p, kind, rank, size);
    for (int i = 0; i < 3 * HANDLER_SIZES; i++) {
        struct state s = {.answer = answers[i % 3].code};
        size_t length = handler_sizes[i / 3];
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_handle_me_t entry = PTL_INVALID_HANDLE;
        ptest_fill(memory, length, (unsigned)i);
        if (rank == 1) {
            ptl_handlers_t h = summing(&s);
            entry = handler_target(&p, memory, sizeof(memory), 0, ct, &h);
        }
        BARRIER();
        if (handler_sends(&p, i % 2)) {
            handler_get(&p, source, length, 0, answers[i % 3].fail);
            if (answers[i % 3].fail == PTL_NI_OK) {
                CHECK_FILL(source, length, (unsigned)i);
            }
        }
        BARRIER();
        if (rank == 1) {
            bool pending = s.answer == SUCCESS_PENDING;
            bool failed = answers[i % 3].fail != PTL_NI_OK;
            if (!pending) {
                EVENT_FAIL(p.eq, PTL_EVENT_GET, answers[i % 3].fail);
            }
            port_unlink(&p, entry); /* so the message has ended */
            NO_EVENT(p.eq);
            handler_check_ct(ct, !pending && !failed, failed);
            handler_check_log(&notes.log, 1, 1, 0);
            CHECK_EQ(notes.log.payloads, 0);
        }
        OK(PtlCTFree(ct));
    }
    port_close(&p);
}
