/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Header handlers: when they run, what they are told, and what each of their
 * return codes does to the message. A round is one message to rank 1, from rank 0
 * or from rank 1 itself.
 */
#include "handler.h"

#include <limits.h>

enum { GAP = 5, MEMORY = HANDLER_LONGEST + 2 * GAP };

static unsigned char source[MEMORY], memory[MEMORY];

/* handler_host_mem of these tests. */
static struct notes {
    struct handler_log log;
    ptl_header_t header;
    unsigned char user_header[1024];
} notes;

/* HPU memory: what the header handler is to return. */
struct state {
    int32_t answer;
    int32_t obey; /* return the message's hdr_data instead, unless that is 0 */
};

__handler static int header_handler(const ptl_header_t h, void *state)
{
    struct state *s = state;
    handler_log_header();
    PtlHandlerDMAToHostB(&h, offsetof(struct notes, header), sizeof(h), PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAToHostB(h.user_hdr, offsetof(struct notes, user_header), h.user_hdr_length,
                         PTL_HANDLER_HOST_MEM);
    return s->obey && h.hdr_data != 0 ? (int)h.hdr_data : s->answer;
}

__handler static int payload_handler(const ptl_payload_t p, void *state)
{
    handler_log_payload(&p);
    return SUCCESS;
}

__handler static int completion_handler(ptl_size_t dropped, bool flow_control, void *state)
{
    handler_log_completion(dropped, flow_control);
    return SUCCESS;
}

PTL_HANDLER(header_handler);
PTL_HANDLER(payload_handler);
PTL_HANDLER(completion_handler);

enum { WITHOUT_PAYLOAD, WITH_PAYLOAD };

static ptl_handlers_t handlers_answering(struct state *state, int with_payload, size_t user_length)
{
    memset(&notes, 0, sizeof(notes));
    ptl_handlers_t h =
        handler_set(header_handler, with_payload == WITH_PAYLOAD ? payload_handler : NULL,
                    completion_handler, state, sizeof(*state), &notes, sizeof(notes));
    h.user_hdr_length = user_length;
    return h;
}

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The memory of the entry is `length` bytes of source + skip, at `offset`. */
static void check_memory(size_t offset, size_t skip, size_t length)
{
    CHECK_BYTES(memory, offset, 0xaa);
    CHECK(memcmp(memory + offset, source + skip, length) == 0);
    CHECK_BYTES(memory + offset + length, GAP, 0xaa);
}

/* ---- When, and with what ---- */

static void order_round(struct port *p, size_t length, bool self)
{
    struct state s = {.answer = PROCESS_DATA};
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (p->rank == 1) {
        ptl_handlers_t h = handlers_answering(&s, WITH_PAYLOAD, 0);
        entry = handler_target(p, memory, sizeof(memory), 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    if (handler_sends(p, self)) {
        CHECK_EQ(handler_put(p, source, length, 0, 0, PTL_NI_OK).mlength, length);
    }
    if (p->rank == 1) {
        CHECK_EQ(EVENT(p->eq, PTL_EVENT_PUT).mlength, length);
        handler_check_log(&notes.log, 1, 1, 0);
        CHECK_EQ(notes.log.bytes, length);
        CHECK_EQ(notes.log.payloads != 0, length != 0);
        port_unlink(p, entry);
    }
    BARRIER();
}

/* Once for each message, before its first payload handler. */
PTEST_KINDS(once_and_first, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    for (int self = 0; self < 2; self++) {
        for (int i = 0; i < HANDLER_SIZES; i++) {
            order_round(&p, handler_sizes[i], self);
        }
    }
    port_close(&p);
}

static void check_header(struct port *p, size_t length, size_t user_length, int source_rank)
{
    const ptl_header_t *h = &notes.header;
    size_t user = at_most(length, user_length);
    CHECK_EQ(h->type, PTL_REQUEST_PUT);
    CHECK_EQ(h->length, length);
    CHECK_EQ(h->hdr_data, length * 7 + 1);
    CHECK_EQ(h->offset, GAP);
    CHECK_EQ(h->user_hdr_length, user);
    CHECK_FILL(notes.user_header, user, (unsigned)length);
    if (port_matching(p)) {
        CHECK_EQ(h->match_bits, HANDLER_BITS);
    }
    if (port_logical(p)) {
        CHECK_EQ(h->target_id.rank, 1);
        CHECK_EQ(h->source_id.rank, source_rank);
    } else {
        CHECK_EQ(h->target_id.phys.nid, p->phys[1].phys.nid);
        CHECK_EQ(h->target_id.phys.pid, p->phys[1].phys.pid);
        CHECK_EQ(h->source_id.phys.nid, p->phys[source_rank].phys.nid);
        CHECK_EQ(h->source_id.phys.pid, p->phys[source_rank].phys.pid);
    }
}

static void fields_round(struct port *p, size_t user_length, bool self)
{
    static const size_t lengths[] = {0, 1, 7, 8, 9, 63, 64, 99, 100, 1000, 1024, 1025, 5000, 70000};
    struct state s = {.answer = PROCESS_DATA};
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (p->rank == 1) {
        ptl_handlers_t h = handlers_answering(&s, WITH_PAYLOAD, user_length);
        entry = handler_target(p, memory, sizeof(memory), 0, PTL_CT_NONE, &h);
    }
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t length = lengths[i];
        memset(&notes, 0, sizeof(notes));
        BARRIER();
        if (handler_sends(p, self)) {
            ptest_fill(source, length, (unsigned)length);
            handler_put(p, source, length, GAP, length * 7 + 1, PTL_NI_OK);
        }
        if (p->rank == 1) {
            EVENT(p->eq, PTL_EVENT_PUT);
            check_header(p, length, user_length, self ? 1 : 0);
            CHECK_EQ(notes.log.bytes, length - at_most(length, user_length));
        }
        BARRIER();
    }
    if (p->rank == 1) {
        port_unlink(p, entry);
    }
}

PTEST_KINDS(fields, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    for (int self = 0; self < 2; self++) {
        for (int i = 0; i < HANDLER_USER_LENGTHS; i++) {
            fields_round(&p, handler_user_lengths[i], self);
        }
    }
    port_close(&p);
}

/* ---- Return codes that are no error ---- */

/* What a round is to leave behind. */
struct outcome {
    size_t skip;       /* bytes of the message that are not in memory */
    size_t mlength;    /* those that are, at offset GAP */
    uint64_t complete; /* calls of the completion handler */
    uint64_t dropped;
};

static void code_round(struct port *p, ptl_handlers_t *h, size_t room, size_t length,
                       const struct outcome *want, bool self)
{
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    ptest_fill(source, length, 3);
    memset(memory, 0xaa, GAP + want->mlength + GAP);
    memset(&notes, 0, sizeof(notes));
    ptl_handle_ct_t ct = port_ct(p);
    if (p->rank == 1) {
        entry = handler_target(p, memory, GAP + room, 0, ct, h);
    }
    BARRIER();
    if (handler_sends(p, self)) {
        ptl_event_t ack = handler_put(p, source, length, GAP, 0, PTL_NI_OK);
        CHECK_EQ(ack.mlength, want->mlength);
        CHECK_EQ(ack.remote_offset, GAP);
    }
    if (p->rank == 1) {
        ptl_event_t event = EVENT(p->eq, PTL_EVENT_PUT);
        CHECK_EQ(event.rlength, length);
        CHECK_EQ(event.mlength, want->mlength);
        CHECK_EQ(event.start, memory + GAP);
        CHECK_EQ(event.remote_offset, GAP);
        CHECK(port_is_from(p, &event, self ? 1 : 0));
        handler_check_log(&notes.log, h->header_handler != NULL, want->complete, want->dropped);
        CHECK_EQ(notes.log.payloads, 0);
        check_memory(GAP, want->skip, want->mlength);
        handler_check_ct(ct, 1, 0);
        port_unlink(p, entry);
    }
    OK(PtlCTFree(ct));
    BARRIER();
}

/* Without a payload handler the payload is deposited, without the user header; with or
 * without a header handler. */
PTEST_KINDS(process_data_deposits, 2)
{
    struct port p;
    struct state s = {.answer = PROCESS_DATA};
    port_open(&p, kind, rank, size);
    for (int u = 0; u < HANDLER_USER_LENGTHS; u++) {
        for (int i = 0; i < HANDLER_SIZES; i++) {
            size_t length = handler_sizes[i], user = at_most(length, handler_user_lengths[u]);
            ptl_handlers_t h = handlers_answering(&s, WITHOUT_PAYLOAD, handler_user_lengths[u]);
            struct outcome o = {.skip = user, .mlength = length - user, .complete = 1};
            code_round(&p, &h, length, length, &o, i % 2);
            h.header_handler = NULL;
            code_round(&p, &h, length, length, &o, !(i % 2));
        }
    }
    port_close(&p);
}

/* What does not fit into the entry is cut off, wherever the packets end. */
PTEST_KINDS(process_data_truncates, 2)
{
    static const size_t rooms[] = {0, 1, 50, 4095, 4096, 4097, 9000};
    struct port p;
    struct state s = {.answer = PROCESS_DATA};
    port_open(&p, kind, rank, size);
    for (int u = 0; u < HANDLER_USER_LENGTHS; u++) {
        for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
            size_t user = handler_user_lengths[u];
            ptl_handlers_t h = handlers_answering(&s, WITHOUT_PAYLOAD, user);
            struct outcome o = {
                .skip = user, .mlength = at_most(rooms[i], 10000 - user), .complete = 1};
            code_round(&p, &h, rooms[i], 10000, &o, i % 2);
        }
    }
    port_close(&p);
}

/* The whole message is deposited, user header included, and no handler follows. */
PTEST_KINDS(proceed, 2)
{
    struct port p;
    struct state s = {.answer = PROCEED};
    port_open(&p, kind, rank, size);
    for (int u = 0; u < HANDLER_USER_LENGTHS; u++) {
        for (int i = 0; i < HANDLER_SIZES; i++) {
            size_t length = handler_sizes[i];
            ptl_handlers_t h = handlers_answering(&s, i % 2 ? WITH_PAYLOAD : WITHOUT_PAYLOAD,
                                                  handler_user_lengths[u]);
            struct outcome o = {.mlength = length};
            code_round(&p, &h, length, length, &o, u % 2);
            o.mlength = length / 2;
            code_round(&p, &h, length / 2, length, &o, !(u % 2));
        }
    }
    port_close(&p);
}

/* Nothing is kept; the completion handler hears of it. */
PTEST_KINDS(drop, 2)
{
    struct port p;
    struct state s = {.answer = DROP};
    port_open(&p, kind, rank, size);
    for (int u = 0; u < HANDLER_USER_LENGTHS; u++) {
        for (int i = 0; i < HANDLER_SIZES; i++) {
            size_t length = handler_sizes[i], user = at_most(length, handler_user_lengths[u]);
            ptl_handlers_t h = handlers_answering(&s, i % 2 ? WITH_PAYLOAD : WITHOUT_PAYLOAD,
                                                  handler_user_lengths[u]);
            struct outcome o = {.complete = 1, .dropped = length - user};
            code_round(&p, &h, length, length, &o, u % 2);
        }
    }
    port_close(&p);
}

/* An entry whose handlers are all NULL only leaves out the user header. */
PTEST_KINDS(no_handler_at_all, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    for (int i = 0; i < HANDLER_SIZES; i++) {
        ptl_handlers_t h = handler_set(NULL, NULL, NULL, NULL, 0, NULL, 0);
        h.user_hdr_length = i % 2 ? 8 : 0;
        size_t length = handler_sizes[i], user = at_most(length, h.user_hdr_length);
        struct outcome o = {.skip = user, .mlength = length - user};
        code_round(&p, &h, length, length, &o, false);
    }
    port_close(&p);
}

/* ---- PENDING ---- */

static void pending_put(struct port *p, int code, size_t length, bool self)
{
    BARRIER();
    if (handler_sends(p, self)) {
        handler_put(p, source, length, GAP, (ptl_hdr_data_t)code, PTL_NI_OK);
    }
    BARRIER();
}

/* Three messages to one entry: two of them leave it pending, the third ends it. */
static void pending_round(struct port *p, int code, size_t length, unsigned options, bool self)
{
    enum { USER = 8 };
    struct state s = {.answer = PROCESS_DATA, .obey = 1};
    ptl_handle_ct_t ct = port_ct(p);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    ptest_fill(source, length, 4);
    memset(memory, 0xaa, length + 2 * GAP);
    if (p->rank == 1) {
        ptl_handlers_t h = handlers_answering(&s, WITHOUT_PAYLOAD, USER);
        entry = handler_target(p, memory, GAP + length, options, ct, &h);
    }
    pending_put(p, code, length, self);
    pending_put(p, code, length, self);
    if (p->rank == 1) {
        NO_EVENT(p->eq);
        handler_check_ct(ct, 0, 0);
        CHECK_EQ(notes.log.headers, 2);
        CHECK_EQ(notes.log.completions, code == PROCEED_PENDING ? 0 : 2);
        CHECK_EQ(notes.log.dropped, code == DROP_PENDING ? 2 * (length - USER) : 0);
        size_t skip = code == PROCESS_DATA_PENDING ? USER : 0;
        check_memory(GAP, skip, code == DROP_PENDING ? 0 : length - skip);
        memset(memory, 0xaa, length + 2 * GAP);
    }
    pending_put(p, 0, length, self);
    if (p->rank == 1) {
        EVENT(p->eq, PTL_EVENT_PUT);
        check_memory(GAP, USER, length - USER);
        handler_check_ct(ct, 1, 0);
        if (options & PTL_ME_USE_ONCE) {
            EVENT(p->eq, PTL_EVENT_AUTO_UNLINK);
            INVALID(port_unlink_code(p, entry));
        } else {
            port_unlink(p, entry);
        }
    }
    OK(PtlCTFree(ct));
}

PTEST_KINDS(pending, 2)
{
    static const int codes[] = {DROP_PENDING, PROCESS_DATA_PENDING, PROCEED_PENDING};
    static const size_t lengths[] = {8, 100, 5000, 70000};
    struct port p;
    port_open(&p, kind, rank, size);
    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < 4; i++) {
            pending_round(&p, codes[c], lengths[i], 0, i % 2);
            pending_round(&p, codes[c], lengths[i], PTL_ME_USE_ONCE, i % 2);
            pending_round(&p, codes[c], lengths[i], PTL_ME_USE_ONCE, !(i % 2));
        }
    }
    port_close(&p);
}

/* ---- Errors ---- */

/* The code of the first message is an error, the second finds the entry well. */
static void fail_round(struct port *p, int code, size_t length, int with_payload, bool self)
{
    struct state s = {.answer = PROCESS_DATA, .obey = 1};
    ptl_handle_ct_t ct = port_ct(p);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    ptest_fill(source, length, 5);
    memset(memory, 0xaa, length + GAP);
    if (p->rank == 1) {
        s.answer = code;
        s.obey = 0;
        ptl_handlers_t h = handlers_answering(&s, with_payload, 0);
        entry = handler_target(p, memory, length, 0, ct, &h);
    }
    BARRIER();
    if (handler_sends(p, self)) {
        CHECK_EQ(handler_put(p, source, length, 0, 0, PTL_NI_HANDLER_FAIL).mlength, 0);
    }
    if (p->rank == 1) {
        ptl_event_t event = EVENT_FAIL(p->eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        CHECK_EQ(event.mlength, 0);
        CHECK_EQ(event.rlength, length);
        CHECK_EQ(notes.log.headers, 1);
        CHECK_EQ(notes.log.payloads, 0);
        check_memory(0, 0, 0);
        CHECK_BYTES(memory, length, 0xaa);
        handler_check_ct(ct, 0, 1);
        NO_EVENT(p->eq);
        port_unlink(p, entry);
    }
    OK(PtlCTFree(ct));
    BARRIER();
}

PTEST_KINDS(fail_and_rubbish, 2)
{
    static const int codes[] = {FAIL, SUCCESS, SUCCESS_PENDING, SEGV, 10,      31,
                                32,   33,      64 + DROP,       -1,   INT_MAX, INT_MIN};
    struct port p;
    port_open(&p, kind, rank, size);
    for (size_t c = 0; c < sizeof(codes) / sizeof(codes[0]); c++) {
        fail_round(&p, codes[c], 8, WITHOUT_PAYLOAD, false);
        fail_round(&p, codes[c], 100000, WITH_PAYLOAD, c % 2);
    }
    port_close(&p);
}

/* A failed message does no harm to those before and behind it. */
PTEST_KINDS(fail_between_others, 2)
{
    enum { N = 30, BYTES = 3000 };
    struct port p;
    struct state s = {.answer = PROCESS_DATA, .obey = 1};
    port_open(&p, kind, rank, size);
    ptest_fill(source, BYTES, 6);
    if (rank == 1) {
        ptl_handlers_t h = handlers_answering(&s, WITHOUT_PAYLOAD, 0);
        handler_target(&p, memory, N * BYTES, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_md(&p, source, BYTES, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        for (ptl_size_t i = 0; i < N; i++) {
            OK(PtlPut(md, 0, BYTES, PTL_ACK_REQ, p.id[1], p.pt, 0, i * BYTES, NULL,
                      i % 3 == 1 ? FAIL : 0));
        }
        for (int i = 0; i < N; i++) {
            EVENT_FAIL(p.mdeq, PTL_EVENT_ACK, i % 3 == 1 ? PTL_NI_HANDLER_FAIL : PTL_NI_OK);
        }
        port_release(md);
    } else {
        for (int i = 0; i < N; i++) {
            EVENT_FAIL(p.eq, PTL_EVENT_PUT, i % 3 == 1 ? PTL_NI_HANDLER_FAIL : PTL_NI_OK);
            if (i % 3 == 1) {
                CHECK_BYTES(memory + (size_t)i * BYTES, BYTES, 0);
            } else {
                CHECK_FILL(memory + (size_t)i * BYTES, BYTES, 6);
            }
        }
    }
    port_close(&p);
}

/* ---- Gets ---- */

static void get_round(struct port *p, int code, size_t length, int fail, uint64_t complete,
                      bool self)
{
    struct state s = {.answer = code};
    ptl_handle_ct_t ct = port_ct(p);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (p->rank == 1) {
        ptest_fill(memory, GAP + length, 7);
        ptl_handlers_t h = handlers_answering(&s, WITH_PAYLOAD, 8);
        entry = handler_target(p, memory, GAP + length, 0, ct, &h);
    }
    BARRIER();
    if (handler_sends(p, self)) {
        memset(source, 0xbb, length + GAP);
        ptl_event_t reply = handler_get(p, source, length, GAP, fail);
        CHECK_EQ(reply.mlength, fail == PTL_NI_OK ? length : 0);
        if (fail == PTL_NI_OK) {
            ptest_fill(memory, GAP + length, 7);
            CHECK(memcmp(source, memory + GAP, length) == 0);
        } else {
            CHECK_BYTES(source, length, 0xbb);
        }
        CHECK_BYTES(source + length, GAP, 0xbb);
    }
    if (p->rank == 1) {
        ptl_event_t event = EVENT_FAIL(p->eq, PTL_EVENT_GET, fail);
        CHECK_EQ(event.rlength, length);
        CHECK_EQ(event.mlength, fail == PTL_NI_OK ? length : 0);
        handler_check_log(&notes.log, 1, complete, code == DROP ? length : 0);
        CHECK_EQ(notes.log.payloads, 0);
        CHECK_EQ(notes.header.type, PTL_REQUEST_GET);
        CHECK_EQ(notes.header.length, length);
        CHECK_EQ(notes.header.offset, GAP);
        CHECK_EQ(notes.header.user_hdr_length, 0);
        handler_check_ct(ct, fail == PTL_NI_OK, fail != PTL_NI_OK);
        port_unlink(p, entry);
    }
    OK(PtlCTFree(ct));
    BARRIER();
}

PTEST_KINDS(gets, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    for (int i = 0; i < HANDLER_SIZES; i++) {
        size_t length = handler_sizes[i];
        get_round(&p, PROCESS_DATA, length, PTL_NI_OK, 1, i % 2);
        get_round(&p, PROCEED, length, PTL_NI_OK, 0, !(i % 2));
        get_round(&p, FAIL, length, PTL_NI_HANDLER_FAIL, 0, i % 2);
        if (length != 0) {
            get_round(&p, DROP, length, PTL_NI_DROPPED, 1, i % 2);
        }
    }
    port_close(&p);
}

/* What a header handler writes is what its get reads. */
__handler static int stamp_header(const ptl_header_t h, void *state)
{
    uint64_t *count = state;
    ++*count;
    PtlHandlerDMAToHostB(count, h.offset, sizeof(*count), PTL_ME_HOST_MEM);
    return PROCEED;
}
PTL_HANDLER(stamp_header);

PTEST_KINDS(get_of_a_fresh_value, 2)
{
    struct port p;
    uint64_t value = 0;
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        ptl_handlers_t h = handler_set(stamp_header, NULL, NULL, NULL, sizeof(uint64_t), NULL, 0);
        handler_target(&p, memory, 64, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    for (uint64_t i = 1; i <= 20 && rank == 0; i++) {
        handler_get(&p, &value, sizeof(value), i, PTL_NI_OK);
        CHECK_EQ(value, i);
    }
    port_close(&p);
}
