/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of one sender side by side. Over a network that loses packets (TEST_WEATHER), those
 * behind a message of which something is missing begin, their handlers run and their data come to
 * their places where no order is promised; all are matched, and end, in the order in which they
 * were sent. In good weather and over shared memory the same must hold, but that any passed
 * another.
 */
#include "handler.h"

enum { MESSAGES = 8, LONGEST = 24000, SPAN = MESSAGES * LONGEST, ROUNDS = 60 };

static unsigned char source[MESSAGES][LONGEST], memory[SPAN];

/* handler_host_mem: of each message, at what time what was called. */
static struct notes {
    uint64_t clock;
    uint64_t header[MESSAGES], first[MESSAGES], last[MESSAGES], completion[MESSAGES];
    uint64_t bytes[MESSAGES];
} notes;

static uint64_t tick(void)
{
    uint64_t before = 0;
    PtlHandlerDMAFetchAddB(offsetof(struct notes, clock), 1, &before, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    return before + 1;
}

static void note(size_t field, uint64_t index, uint64_t value)
{
    PtlHandlerDMAToHostB(&value, field + index * sizeof(value), sizeof(value),
                         PTL_HANDLER_HOST_MEM);
}

/* HPU memory of an entry: the message that it has in hand, and what has come of it. */
struct state {
    uint64_t message, bytes;
};

__handler static int header_handler(const ptl_header_t h, void *state)
{
    struct state *s = state;
    s->message = h.hdr_data;
    s->bytes = 0;
    note(offsetof(struct notes, header), h.hdr_data, tick());
    return PROCESS_DATA;
}

__handler static int payload_handler(const ptl_payload_t p, void *state)
{
    struct state *s = state;
    uint64_t before, now = tick();
    PtlHandlerFAdd(&s->bytes, &before, p.length);
    if (before == 0) {
        note(offsetof(struct notes, first), s->message, now);
    }
    if (before + p.length == LONGEST) {
        note(offsetof(struct notes, last), s->message, now);
    }
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}

__handler static int completion_handler(ptl_size_t dropped, bool flow_control, void *state)
{
    struct state *s = state;
    note(offsetof(struct notes, bytes), s->message, s->bytes);
    note(offsetof(struct notes, completion), s->message, tick());
    return SUCCESS;
}

PTL_HANDLER(header_handler);
PTL_HANDLER(payload_handler);
PTL_HANDLER(completion_handler);

static bool bad_weather(void)
{
    return getenv("TEST_WEATHER") != NULL;
}

/* Looks at memory that the NIC may be writing to: to ThreadSanitizer a race, here the question. */
__attribute__((no_sanitize("thread"))) static bool is_written(const volatile unsigned char *byte)
{
    return *byte != 0;
}

__attribute__((no_sanitize("thread"))) static bool
are_same(const volatile unsigned char *a, const volatile unsigned char *b, size_t length)
{
    size_t i = 0;
    while (i < length && a[i] == b[i]) {
        i++;
    }
    return i == length;
}

static unsigned char *place(unsigned message)
{
    return memory + message * LONGEST;
}

/* An entry for messages with these match bits. */
static ptl_handle_me_t append(struct port *p, uint64_t bits, void *start, size_t length)
{
    static const struct state fresh;
    ptl_handlers_t h = handler_set(header_handler, payload_handler, completion_handler, &fresh,
                                   sizeof(fresh), &notes, sizeof(notes));
    h.hpu_mask = 1; /* of one message one call at a time */
    ptl_me_t me = port_entry(p, start, length, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    me.match_bits = bits;
    me.ignore_bits = 0;
    return handler_append(p, &me, &h);
}

/* Sends all messages, each for the entry that bits() names, and waits for the acks, which come in
 * their order. */
static void send_all(struct port *p, ptl_handle_md_t *md, uint64_t (*bits)(unsigned))
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        OK(PtlPut(md[i], 0, LONGEST, PTL_ACK_REQ, p->id[1], p->pt, bits(i), 0, source[i], i));
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        ptl_event_t ack = EVENT(p->mdeq, PTL_EVENT_ACK);
        CHECK_EQ((uintptr_t)ack.user_ptr, (uintptr_t)source[i]);
        CHECK_EQ(ack.mlength, LONGEST);
    }
}

static void make_sources(struct port *p, ptl_handle_md_t *md, unsigned options)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        ptest_fill(source[i], LONGEST, i + 1);
        md[i] = port_md(p, source[i], LONGEST, options | PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    }
}

static void release_sources(ptl_handle_md_t *md)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        port_release(md[i]);
    }
}

/* Events come in the order of the messages, but where HPUs are threads: there messages of different
 * entries may leave the channel. */
static void await_all(struct port *p, bool in_order)
{
    unsigned come = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        ptl_event_t event = EVENT(p->eq, PTL_EVENT_PUT);
        CHECK(!in_order || event.hdr_data == i);
        CHECK(event.hdr_data < MESSAGES && (come >> event.hdr_data & 1) == 0);
        CHECK_EQ(event.mlength, LONGEST);
        come |= 1u << event.hdr_data;
    }
}

/* How many messages were passed by packets of one behind them. */
static unsigned check_times(bool one_at_a_time, bool in_order)
{
    unsigned passed = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        CHECK_EQ(notes.bytes[i], LONGEST);
        CHECK(notes.header[i] != 0 && notes.header[i] < notes.first[i]);
        CHECK(notes.first[i] < notes.last[i] && notes.last[i] < notes.completion[i]);
    }
    for (unsigned i = 0; i + 1 < MESSAGES; i++) {
        CHECK(!in_order || notes.completion[i] < notes.completion[i + 1]);
        CHECK(!in_order || notes.header[i] < notes.header[i + 1]);
        CHECK(!one_at_a_time || notes.completion[i] < notes.header[i + 1]);
        passed += notes.first[i + 1] < notes.last[i];
    }
    return passed;
}

static uint64_t own_entry(unsigned message)
{
    return message;
}

static uint64_t one_entry(unsigned message)
{
    (void)message;
    return 0;
}

static void handlers_round(struct port *p, uint64_t (*bits)(unsigned), unsigned *passed)
{
    ptl_handle_md_t md[MESSAGES];
    ptl_handle_me_t entry[MESSAGES];
    unsigned entries = bits == own_entry ? MESSAGES : 1;
    if (p->rank == 0) {
        make_sources(p, md, 0);
        BARRIER();
        send_all(p, md, bits);
        release_sources(md);
    } else {
        memset(&notes, 0, sizeof(notes));
        memset(memory, 0, sizeof(memory));
        for (unsigned i = 0; i < entries; i++) {
            entry[i] = append(p, i, place(i), LONGEST);
        }
        BARRIER();
        bool in_order = entries == 1 || !handler_threads(p);
        await_all(p, in_order);
        *passed += check_times(entries == 1, in_order);
        for (unsigned i = 0; i < entries; i++) {
            ptest_fill(source[0], LONGEST, entries == 1 ? MESSAGES : i + 1);
            CHECK(memcmp(place(i), source[0], LONGEST) == 0);
            port_unlink(p, entry[i]);
        }
    }
    BARRIER();
}

static void handlers_rounds(int rank, int size, uint64_t (*bits)(unsigned))
{
    struct port p;
    unsigned passed = 0;
    port_open(&p, KIND_MP, rank, size);
    for (unsigned i = 0; i < ROUNDS; i++) {
        handlers_round(&p, bits, &passed);
    }
    CHECK(rank != 1 || !bad_weather() || (passed != 0) == (bits == own_entry));
    port_close(&p);
}

PTEST_LIMIT(handlers_run_as_packets_come, 2, 120)
{
    handlers_rounds(rank, size, own_entry);
}

PTEST_LIMIT(an_entry_has_one_message_at_a_time, 2, 120)
{
    handlers_rounds(rank, size, one_entry);
}

/* ---- Order of data ---- */

/* Each message covers half of the one before it. */
static void overlapping_round(struct port *p, unsigned options)
{
    ptl_handle_md_t md[MESSAGES];
    if (p->rank == 0) {
        make_sources(p, md, options);
        BARRIER();
        for (unsigned i = 0; i < MESSAGES; i++) {
            OK(PtlPut(md[i], 0, LONGEST, PTL_ACK_REQ, p->id[1], p->pt, 0, i * (LONGEST / 2), NULL,
                      i));
        }
        for (unsigned i = 0; i < MESSAGES; i++) {
            EVENT(p->mdeq, PTL_EVENT_ACK);
        }
        release_sources(md);
    } else {
        memset(memory, 0, sizeof(memory));
        ptl_handle_me_t entry = port_target(p, memory, sizeof(memory), PTL_ME_OP_PUT, NULL);
        BARRIER();
        await_all(p, true);
        for (unsigned i = 0; i < MESSAGES; i++) {
            size_t length = i + 1 < MESSAGES ? LONGEST / 2 : LONGEST;
            ptest_fill(source[0], LONGEST, i + 1);
            CHECK(memcmp(memory + i * (LONGEST / 2), source[0], length) == 0);
        }
        port_unlink(p, entry);
    }
    BARRIER();
}

static void overlapping_rounds(int rank, int size, unsigned features)
{
    struct port p, most = {.size = size};
    port_open(&most, KIND_MP, rank, size);
    ptl_ni_limits_t wish = most.limits;
    port_close(&most);
    wish.features = features;
    port_open_with(&p, PTL_IFACE_DEFAULT, KIND_MP, rank, size, &wish);
    CHECK_EQ(p.limits.features & PTL_TOTAL_DATA_ORDERING, features);
    for (unsigned i = 0; i < ROUNDS; i++) {
        overlapping_round(&p, 0);
    }
    port_close(&p);
}

PTEST_LIMIT(bytes_are_written_in_order, 2, 120)
{
    overlapping_rounds(rank, size, PTL_TOTAL_DATA_ORDERING);
}

PTEST_LIMIT(order_by_address_is_kept, 2, 120)
{
    overlapping_rounds(rank, size, 0);
}

/* A flag that is put behind data is not seen before them. */
PTEST_LIMIT(a_flag_comes_after_its_data, 2, 120)
{
    struct port p;
    uint64_t flag = 1;
    port_open(&p, KIND_MP, rank, size);
    CHECK(p.limits.features & PTL_TOTAL_DATA_ORDERING);
    ptest_fill(source[0], LONGEST, 1);
    ptl_handle_md_t data = port_quiet_md(&p, source[0], LONGEST, 0, PTL_CT_NONE);
    ptl_handle_md_t mark = port_quiet_md(&p, &flag, sizeof(flag), 0, PTL_CT_NONE);
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (rank == 1) {
        entry = port_target(&p, memory, sizeof(memory), PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE,
                            NULL);
    }
    for (unsigned i = 0; i < 4 * ROUNDS; i++) {
        const unsigned char *seen = memory + 2 * LONGEST;
        if (rank == 1) {
            memset(memory, 0, sizeof(memory));
        }
        BARRIER();
        if (rank == 0) {
            OK(PtlPut(data, 0, LONGEST, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
            OK(PtlPut(mark, 0, 8, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 2 * LONGEST, NULL, 0));
        }
        while (rank == 1 && !is_written(seen)) {
            ptl_event_t event;
            CHECK_EQ(PtlEQGet(p.eq, &event), PTL_EQ_EMPTY);
        }
        CHECK(rank == 0 || are_same(memory, source[0], LONGEST));
        BARRIER();
    }
    if (rank == 1) {
        port_unlink(&p, entry);
    }
    port_release(data);
    port_release(mark);
    port_close(&p);
}

/* ---- Those that come without order ---- */

/* Where the sender allows it, data are in their place before those of the message before them;
 * events and acks keep the order. */
PTEST_LIMIT(unordered_data_pass, 2, 120)
{
    struct port p;
    unsigned passed = 0;
    port_open(&p, KIND_MP, rank, size);
    for (unsigned r = 0; r < ROUNDS; r++) {
        ptl_handle_md_t md[MESSAGES];
        ptl_handle_me_t entry[MESSAGES];
        if (rank == 0) {
            make_sources(&p, md, PTL_MD_UNORDERED);
            BARRIER();
            send_all(&p, md, own_entry);
            release_sources(md);
        } else {
            memset(memory, 0, sizeof(memory));
            for (unsigned i = 0; i < MESSAGES; i++) {
                ptl_me_t me =
                    port_entry(&p, place(i), LONGEST, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
                me.match_bits = i;
                me.ignore_bits = 0;
                entry[i] = port_append(&p, &me, NULL);
            }
            BARRIER();
            for (unsigned i = 0; i < MESSAGES; i++) {
                ptl_event_t event;
                int code;
                while ((code = PtlEQGet(p.eq, &event)) == PTL_EQ_EMPTY) {
                    passed += i + 1 < MESSAGES && is_written(place(i + 1) + LONGEST - 1);
                }
                CHECK_EQ(code, PTL_OK);
                CHECK_EQ(event.hdr_data, i);
                ptest_fill(source[0], LONGEST, i + 1);
                CHECK(memcmp(place(i), source[0], LONGEST) == 0);
                port_unlink(&p, entry[i]);
            }
        }
        BARRIER();
    }
    CHECK(rank != 1 || !bad_weather() || passed != 0);
    port_close(&p);
}

/* ---- Ends ---- */

/* An interface that is closed, or an entry that is unlinked, while messages are under way: each
 * is told of once. */
static void ends_round(struct port *p, unsigned after)
{
    ptl_handle_md_t md[MESSAGES];
    if (p->rank == 0) {
        make_sources(p, md, 0);
        BARRIER();
        for (unsigned i = 0; i < MESSAGES; i++) {
            OK(PtlPut(md[i], 0, LONGEST, PTL_ACK_REQ, p->id[1], p->pt, i % 4, 0, NULL, i));
        }
        for (unsigned i = 0; i < MESSAGES; i++) {
            ptl_event_t event;
            unsigned which;
            CHECK_EQ(PtlEQPoll(&p->mdeq, 1, 20000, &event, &which), PTL_OK);
            CHECK_EQ(event.type, PTL_EVENT_ACK);
            CHECK(event.ni_fail_type == PTL_NI_OK || event.ni_fail_type == PTL_NI_DROPPED);
        }
        NO_EVENT(p->mdeq);
        release_sources(md);
    } else {
        ptl_handle_me_t entry[4];
        memset(&notes, 0, sizeof(notes));
        for (unsigned i = 0; i < 4; i++) {
            entry[i] = append(p, i, place(i), LONGEST);
        }
        BARRIER();
        ptl_event_t event;
        while (__atomic_load_n(&notes.clock, __ATOMIC_ACQUIRE) < after) {
            (void)PtlEQGet(p->eq, &event);
        }
        for (unsigned i = 0; i < 4; i++) {
            port_unlink(p, entry[i]);
        }
    }
    BARRIER();
}

PTEST_LIMIT(entries_go_meanwhile, 2, 120)
{
    struct port p;
    port_open(&p, KIND_MP, rank, size);
    for (unsigned i = 0; i < 20; i++) {
        ends_round(&p, 1 + i);
    }
    port_close(&p);
}

PTEST_LIMIT(the_interface_goes_meanwhile, 2, 120)
{
    for (unsigned round = 0; round < 10; round++) {
        struct port p;
        ptl_handle_md_t md[MESSAGES];
        port_open(&p, KIND_MP, rank, size);
        if (rank == 0) {
            make_sources(&p, md, 0);
            BARRIER();
            for (unsigned i = 0; i < MESSAGES; i++) {
                OK(PtlPut(md[i], 0, LONGEST, PTL_ACK_REQ, p.id[1], p.pt, i % 4, 0, NULL, i));
            }
            release_sources(md); /* all have ended */
            BARRIER();
            OK(PtlNIFini(p.ni));
        } else {
            memset(&notes, 0, sizeof(notes));
            for (unsigned i = 0; i < 4; i++) {
                append(&p, i, place(i), LONGEST);
            }
            BARRIER();
            ptl_event_t event;
            while (__atomic_load_n(&notes.clock, __ATOMIC_ACQUIRE) < 1 + 2 * round) {
                (void)PtlEQGet(p.eq, &event);
            }
            OK(PtlNIFini(p.ni));
            BARRIER();
        }
        PtlFini();
        BARRIER();
    }
}
