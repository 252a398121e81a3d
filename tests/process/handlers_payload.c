/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload handlers: how a message is cut into packets for them, and what their
 * return codes do. The entry's memory is where handlers put the payload; behind the
 * log, handler_host_mem counts how often each 64 bytes of it came.
 */
#include "handler.h"

#include <limits.h>

enum { BLOCK = 64, BLOCKS = HANDLER_LONGEST / BLOCK + 1 };

static unsigned char source[HANDLER_LONGEST], copy[HANDLER_LONGEST], memory[HANDLER_LONGEST];

static struct notes {
    struct handler_log log;
    uint64_t misaligned, misplaced, odd_length, too_long;
    uint8_t block[BLOCKS];
} notes;

/* HPU memory. */
struct state {
    uint64_t max_payload;
    uint64_t total;             /* payload of the message; set by the header handler */
    uint64_t drop_mod, drop_is; /* packets whose number mod drop_mod is drop_is get `answer` */
    uint64_t packets;           /* seen so far */
    int32_t answer;
    int32_t header_answer;
    int32_t completion_answer;
};

__handler static int header_handler(const ptl_header_t h, void *state)
{
    struct state *s = state;
    handler_log_header();
    s->total = h.length - h.user_hdr_length;
    s->packets = 0;
    return s->header_answer;
}

static void note(size_t field, bool wrong)
{
    handler_log_add(field, wrong);
}

static void check_packet(const ptl_payload_t *p, const struct state *s)
{
    bool last = p->offset + p->length == s->total;
    handler_log_payload(p);
    note(offsetof(struct notes, misaligned), (uintptr_t)p->base % BLOCK != 0);
    note(offsetof(struct notes, misplaced),
         p->offset % BLOCK != 0 || p->length == 0 || p->offset + p->length > s->total);
    note(offsetof(struct notes, odd_length), p->length % BLOCK != 0 && !last);
    note(offsetof(struct notes, too_long), p->length > s->max_payload);
}

static void count_blocks(const ptl_payload_t *p)
{
    for (ptl_size_t at = p->offset; at < p->offset + p->length; at += BLOCK) {
        PtlHandlerDMAFetchAddB(offsetof(struct notes, block) + at / BLOCK, 1, NULL, PTL_UINT8_T,
                               PTL_HANDLER_HOST_MEM);
    }
}

__handler static int payload_handler(const ptl_payload_t p, void *state)
{
    struct state *s = state;
    uint64_t number;
    check_packet(&p, s);
    PtlHandlerFAdd(&s->packets, &number, 1);
    if (s->drop_mod != 0 && number % s->drop_mod == s->drop_is) {
        return s->answer;
    }
    count_blocks(&p);
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}

__handler static int completion_handler(ptl_size_t dropped, bool flow_control, void *state)
{
    struct state *s = state;
    handler_log_completion(dropped, flow_control);
    return s->completion_answer;
}

PTL_HANDLER(header_handler);
PTL_HANDLER(payload_handler);
PTL_HANDLER(completion_handler);

static struct state new_state(struct port *p)
{
    ptl_spin_limits_t limits;
    OK(PtlSpinLimits(p->ni, &limits));
    return (struct state){.max_payload = limits.max_payload_size, .header_answer = PROCESS_DATA};
}

/* Packets have an order only on one HPU. */
enum pace { ONE_BY_ONE, SIDE_BY_SIDE };

static ptl_handle_me_t append(struct port *p, struct state *s, size_t user_length, unsigned options,
                              ptl_handle_ct_t ct, enum pace pace)
{
    ptl_handlers_t h = handler_set(header_handler, payload_handler, completion_handler, s,
                                   sizeof(*s), &notes, sizeof(notes));
    h.user_hdr_length = user_length;
    h.hpu_mask = pace == ONE_BY_ONE ? 1 : 0;
    memset(&notes, 0, sizeof(notes));
    return handler_target(p, memory, sizeof(memory), options, ct, &h);
}

static void check_cut(void)
{
    CHECK_EQ(notes.misaligned, 0);
    CHECK_EQ(notes.misplaced, 0);
    CHECK_EQ(notes.odd_length, 0);
    CHECK_EQ(notes.too_long, 0);
    CHECK_EQ(notes.log.disorder, 0);
}

/* ---- Every byte once ---- */

static void whole_round(struct port *p, size_t length, size_t user_length, bool self)
{
    struct state s = new_state(p);
    size_t user = length < user_length ? length : user_length, payload = length - user;
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    ptest_fill(source, length, 1);
    if (p->rank == 1) {
        entry = append(p, &s, user_length, 0, PTL_CT_NONE, SIDE_BY_SIDE);
        memset(memory, 0, payload);
    }
    BARRIER();
    if (handler_sends(p, self)) {
        CHECK_EQ(handler_put(p, source, length, 0, 0, PTL_NI_OK).mlength, payload);
    }
    if (p->rank == 1) {
        ptl_event_t event = EVENT(p->eq, PTL_EVENT_PUT);
        CHECK_EQ(event.rlength, length);
        CHECK_EQ(event.mlength, payload);
        check_cut();
        handler_check_log(&notes.log, 1, 1, 0);
        CHECK_EQ(notes.log.bytes, payload);
        CHECK(notes.log.payloads >= (payload + s.max_payload - 1) / s.max_payload);
        CHECK_BYTES(notes.block, (payload + BLOCK - 1) / BLOCK, 1);
        CHECK(memcmp(memory, source + user, payload) == 0);
        port_unlink(p, entry);
    }
    BARRIER();
}

static void whole_rounds(struct port *p)
{
    for (int u = 0; u < HANDLER_USER_LENGTHS; u++) {
        for (int i = 0; i < HANDLER_SIZES; i++) {
            /* the longest to itself and to another is the same path */
            whole_round(p, handler_sizes[i], handler_user_lengths[u], i % 2);
            if (handler_sizes[i] < 10000) {
                whole_round(p, handler_sizes[i], handler_user_lengths[u], !(i % 2));
            }
        }
    }
}

PTEST_KINDS(every_byte_once, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    whole_rounds(&p);
    port_close(&p);
}

/* Packets of other sizes, among them the smallest and the largest. */
static void with_packets(const char *bytes, int rank, int size)
{
    static const size_t lengths[] = {1, 63, 64, 65, 127, 128, 1000, 4097, 65536, 65537, 200000};
    static const size_t user_lengths[] = {0, 1, 63, 64};
    struct port p;
    setenv("PINWHEEL_PACKET_SIZE", bytes, 1);
    port_open(&p, KIND_ML, rank, size);
    CHECK_EQ(new_state(&p).max_payload, strtoull(bytes, NULL, 10));
    for (size_t u = 0; u < sizeof(user_lengths) / sizeof(user_lengths[0]); u++) {
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            whole_round(&p, lengths[i], user_lengths[u], i % 2);
        }
    }
    port_close(&p);
}

PTEST(packets_of_64, 2)
{
    with_packets("64", rank, size);
}

PTEST(packets_of_192, 2)
{
    with_packets("192", rank, size);
}

PTEST(packets_of_65536, 2)
{
    with_packets("65536", rank, size);
}

/* Messages one behind the other are kept apart, whatever their lengths. */
PTEST_KINDS(stream_of_messages, 2)
{
    enum { N = 200, ROOM = 5000 };
    struct port p;
    uint64_t random = 1;
    port_open(&p, kind, rank, size);
    struct state s = new_state(&p);
    ptest_fill(source, ROOM, 2);
    if (rank == 1) {
        append(&p, &s, 8, 0, PTL_CT_NONE, SIDE_BY_SIDE);
    }
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(&p, source, ROOM, 0, PTL_CT_NONE);
    for (int i = 0; i < N && rank == 0; i++) {
        OK(PtlPut(md, 0, splitmix(&random) % ROOM, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
    }
    uint64_t bytes = 0;
    for (int i = 0; i < N && rank == 1; i++) {
        size_t length = splitmix(&random) % ROOM;
        size_t payload = length < 8 ? 0 : length - 8;
        CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).mlength, payload);
        bytes += payload;
    }
    if (rank == 1) {
        CHECK_EQ(notes.log.headers, N);
        CHECK_EQ(notes.log.completions, N);
        CHECK_EQ(notes.log.bytes, bytes);
        CHECK(memcmp(memory, source + 8, 1000) == 0);
        CHECK_EQ(notes.misaligned + notes.misplaced + notes.odd_length + notes.too_long, 0);
    }
    port_close(&p);
}

/* ---- A payload handler without the others ---- */

__handler static int lone_payload(const ptl_payload_t p, void *state)
{
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(lone_payload);

PTEST_KINDS(alone, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    for (int i = 0; i < HANDLER_SIZES; i++) {
        size_t length = handler_sizes[i];
        ptl_handle_me_t entry = PTL_INVALID_HANDLE;
        ptest_fill(source, length, (unsigned)i);
        if (rank == 1) {
            ptl_handlers_t h = handler_set(NULL, lone_payload, NULL, NULL, 0, NULL, 0);
            entry = handler_target(&p, memory, sizeof(memory), 0, PTL_CT_NONE, &h);
        }
        BARRIER();
        if (handler_sends(&p, i % 2)) {
            CHECK_EQ(handler_put(&p, source, length, 0, 0, PTL_NI_OK).mlength, length);
        }
        if (rank == 1) {
            CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).mlength, length);
            CHECK_FILL(memory, length, (unsigned)i);
            port_unlink(&p, entry);
        }
        BARRIER();
    }
    port_close(&p);
}

/* ---- Return codes ---- */

struct verdict {
    int fail;
    uint64_t kept, dropped;
    uint64_t events; /* 0: PENDING */
};

/* One message, told by the handlers' log, the events and the counters. */
static void code_round(struct port *p, struct state *s, size_t length, size_t user,
                       const struct verdict *want, bool self)
{
    ptl_handle_ct_t ct = port_ct(p);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (p->rank == 1) {
        entry = append(p, s, user, PTL_ME_USE_ONCE, ct, ONE_BY_ONE);
    }
    BARRIER();
    if (handler_sends(p, self)) {
        CHECK_EQ(handler_put(p, source, length, 0, 0, want->fail).mlength, want->kept);
    }
    BARRIER();
    if (p->rank == 1) {
        if (want->events != 0) {
            ptl_event_t event = EVENT_FAIL(p->eq, PTL_EVENT_PUT, want->fail);
            CHECK_EQ(event.rlength, length);
            CHECK_EQ(event.mlength, want->kept);
        }
        check_cut();
        handler_check_log(&notes.log, 1, 1, want->dropped);
        uint64_t counted = want->events;
        handler_check_ct(ct, want->fail == PTL_NI_OK ? counted : 0,
                         want->fail == PTL_NI_OK ? 0 : counted);
        bool pending = s->header_answer == PROCESS_DATA_PENDING;
        if (pending) {
            port_unlink(p, entry);
        } else {
            EVENT(p->eq, PTL_EVENT_AUTO_UNLINK);
        }
        NO_EVENT(p->eq);
    }
    OK(PtlCTFree(ct));
    BARRIER();
}

/* Bytes of the packets whose number leaves that rest; the cut is by max_payload, but
 * for the first packet, which the user header shortens. */
static uint64_t bytes_of(const struct state *s, size_t length, size_t user, uint64_t from,
                         uint64_t step)
{
    uint64_t bytes = 0, number = 0;
    /* an aligned user header leaves a short first packet, others are packed anew */
    uint64_t first = user % BLOCK == 0 ? s->max_payload - user : s->max_payload;
    for (uint64_t at = 0, n; at < length - user; at += n, number++) {
        n = at == 0 ? first : s->max_payload;
        n = n < length - user - at ? n : length - user - at;
        bytes += number >= from && (number - from) % step == 0 ? n : 0;
    }
    return bytes;
}

/* A dropped packet leaves mlength, and is told to the completion handler. The cut of
 * the packets follows from those that were kept. */
PTEST_KINDS(drop, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    for (int i = 1; i < HANDLER_SIZES; i++) {
        size_t length = handler_sizes[i];
        struct state s = new_state(&p);
        s.answer = DROP;
        s.drop_mod = 1;
        struct verdict all = {.dropped = length, .events = 1};
        code_round(&p, &s, length, 0, &all, i % 2);
        all.dropped = length > 8 ? length - 8 : 0;
        code_round(&p, &s, length, 8, &all, i % 2);
    }
    port_close(&p);
}

static void drop_some(struct port *p, size_t length, bool self)
{
    struct state s = new_state(p);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    s.answer = DROP;
    s.drop_mod = 3;
    s.drop_is = 1;
    ptest_fill(source, length, 3);
    memset(memory, 0, length);
    if (p->rank == 1) {
        entry = append(p, &s, 0, 0, PTL_CT_NONE, ONE_BY_ONE);
    }
    BARRIER();
    if (handler_sends(p, self)) {
        CHECK_EQ(handler_put(p, source, length, 0, 0, PTL_NI_OK).mlength,
                 length - bytes_of(&s, length, 0, 1, 3));
    }
    if (p->rank == 1) {
        uint64_t kept = 0;
        ptl_event_t event = EVENT(p->eq, PTL_EVENT_PUT);
        for (size_t at = 0; at < length; at += BLOCK) {
            size_t n = length - at < BLOCK ? length - at : BLOCK;
            if (notes.block[at / BLOCK] == 1) {
                CHECK(memcmp(memory + at, source + at, n) == 0);
                kept += n;
            } else {
                CHECK_BYTES(memory + at, n, 0);
            }
        }
        CHECK_EQ(event.mlength, kept);
        handler_check_log(&notes.log, 1, 1, length - kept);
        port_unlink(p, entry);
    }
    BARRIER();
}

PTEST_KINDS(drop_every_third_packet, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    for (int i = 1; i < HANDLER_SIZES; i++) {
        drop_some(&p, handler_sizes[i], i % 2);
    }
    port_close(&p);
}

/* After the first error no packet is handled, and the rest is dropped. A later error of
 * the completion handler is not told. */
PTEST_KINDS(fail_in_the_middle, 2)
{
    static const int codes[] = {FAIL, PROCESS_DATA, DROP_PENDING, SUCCESS_PENDING,
                                SEGV, 10,           -1,           INT_MIN};
    struct port p;
    port_open(&p, kind, rank, size);
    ptest_fill(source, sizeof(source), 4);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        struct state s = new_state(&p);
        size_t user = i % 3 == 0 ? 0 : i % 3 == 1 ? 100 : 64;
        uint64_t length = s.max_payload * 8 + 100;
        s.answer = codes[i];
        s.drop_mod = UINT64_MAX;
        s.drop_is = i % 4;
        s.completion_answer = i % 2 ? FAIL : SUCCESS;
        uint64_t dropped = bytes_of(&s, length, user, s.drop_is, 1);
        struct verdict v = {.fail = PTL_NI_HANDLER_FAIL,
                            .kept = length - user - dropped,
                            .dropped = dropped,
                            .events = 1};
        code_round(&p, &s, length, user, &v, i % 2);
        CHECK_EQ(notes.log.payloads, rank == 1 ? s.drop_is + 1 : 0);
    }
    port_close(&p);
}

/* PENDING keeps an entry from completing, but an error is told. */
PTEST_KINDS(pending_and_errors, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    struct state s = new_state(&p);
    s.header_answer = PROCESS_DATA_PENDING;
    struct verdict fine = {.kept = 10000};
    code_round(&p, &s, 10000, 0, &fine, false);
    s.drop_mod = UINT64_MAX;
    s.answer = FAIL;
    struct verdict failed = {.fail = PTL_NI_HANDLER_FAIL, .dropped = 10000, .events = 1};
    code_round(&p, &s, 10000, 0, &failed, false);
    code_round(&p, &s, 10000, 0, &failed, true);
    port_close(&p);
}

/* ---- The packet is the handler's ---- */

__handler static int invert_payload(const ptl_payload_t p, void *state)
{
    for (ptl_size_t i = 0; i < p.length; i++) {
        p.base[i] = (uint8_t)~p.base[i];
    }
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    memset(p.base, 0xee, p.length);
    return SUCCESS;
}
PTL_HANDLER(invert_payload);

/* It may be overwritten; the sender's memory, and the next message, are not. */
PTEST_KINDS(overwrites_the_packet, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    for (int i = 0; i < HANDLER_SIZES; i++) {
        size_t length = handler_sizes[i];
        ptl_handle_me_t entry = PTL_INVALID_HANDLE;
        if (rank == 1) {
            ptl_handlers_t h = handler_set(NULL, invert_payload, NULL, NULL, 0, NULL, 0);
            h.user_hdr_length = i % 2 ? 8 : 0;
            entry = handler_target(&p, memory, sizeof(memory), 0, PTL_CT_NONE, &h);
        }
        for (unsigned round = 0; round < 2; round++) {
            ptest_fill(source, length, round);
            memcpy(copy, source, length);
            BARRIER();
            if (handler_sends(&p, round)) {
                handler_put(&p, source, length, 0, 0, PTL_NI_OK);
            }
            CHECK(memcmp(copy, source, length) == 0);
            if (rank == 1) {
                size_t user = i % 2 ? 8 : 0;
                ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
                for (size_t k = 0; k < event.mlength; k++) {
                    CHECK_EQ(memory[k], (unsigned char)~source[user + k]);
                }
            }
            BARRIER();
        }
        if (rank == 1) {
            port_unlink(&p, entry);
        }
    }
    port_close(&p);
}
