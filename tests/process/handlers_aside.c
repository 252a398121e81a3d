/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of one sender that are handled side by side: small ones for different entries, by HPUs
 * that are threads. Those of one entry keep their order, acks keep theirs, and what is for an entry
 * without handlers comes last. Each process sends to itself as well as to the other.
 *
 *      entry 0   its handlers wait until the host says go
 *      entry 1   its handlers do not
 *      entry 2   has none
 */
#include "handler.h"

enum { ENTRIES = 3, SMALL = 100, LARGE = 20000, MANY = 50 };

static unsigned char source[LARGE], memory[ENTRIES][LARGE];

/* handler_host_mem */
static struct notes {
    uint64_t go;
    uint64_t begun, ended, active, disorder, sum;
} notes;

#define NOTE(field, n) handler_log_add(offsetof(struct notes, field), n)

/* Waits for the word of the host; one message at a time, in the order of hdr_data. */
__handler static int slow_header(const ptl_header_t h, void *state)
{
    uint64_t *next = state;
    if (NOTE(active, 1) != 0 || h.hdr_data != (*next)++) {
        NOTE(disorder, 1);
    }
    NOTE(begun, 1);
    while (NOTE(go, 0) == 0) {
        PtlHandlerYield();
    }
    return PROCESS_DATA;
}

__handler static int slow_payload(const ptl_payload_t p, void *state)
{
    for (ptl_size_t i = 0; i < p.length; i++) {
        NOTE(sum, p.base[i]);
    }
    return SUCCESS;
}

__handler static int slow_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    NOTE(active, UINT64_MAX);
    NOTE(ended, 1);
    return SUCCESS;
}
PTL_HANDLER(slow_header);
PTL_HANDLER(slow_payload);
PTL_HANDLER(slow_completion);

static void open_entries(struct port *p, ptl_handle_me_t entries[ENTRIES], unsigned options,
                         bool large)
{
    uint64_t next = 0;
    ptl_handlers_t slow = handler_set(slow_header, large ? NULL : slow_payload, slow_completion,
                                      &next, sizeof(next), &notes, sizeof(notes));
    ptl_handlers_t fast = handler_set(NULL, NULL, NULL, NULL, 8, NULL, 0);
    const ptl_handlers_t *handlers[ENTRIES] = {&slow, &fast, NULL};
    memset(&notes, 0, sizeof(notes));
    for (unsigned i = 0; i < ENTRIES; i++) {
        ptl_me_t me =
            port_entry(p, memory[i], LARGE,
                       PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | (i == 0 ? options : 0));
        me.match_bits = i;
        me.ignore_bits = 0;
        OK(handler_append_code(p, p->pt, &me, handlers[i], (void *)(uintptr_t)i, &entries[i]));
    }
}

static void put(struct port *p, ptl_handle_md_t md, size_t length, uint64_t entry, uint64_t number,
                ptl_ack_req_t ack)
{
    OK(PtlPut(md, 0, length, ack, p->id[1], p->pt, entry, 0, (void *)(uintptr_t)number, number));
}

/* Events of rank 1, by entry. */
static void take_events(struct port *p, unsigned counts[ENTRIES], unsigned n)
{
    for (; n != 0; n--) {
        ptl_event_t event = EVENT(p->eq, PTL_EVENT_PUT);
        uint64_t entry = (uintptr_t)event.user_ptr;
        CHECK(entry < ENTRIES);
        CHECK_EQ(event.hdr_data, counts[entry]); /* in order */
        counts[entry]++;
    }
}

/* The fast entry's messages overtake the slow one's; the entry without handlers is last. */
static void overtake(int rank, int size, unsigned kind, int sender)
{
    static volatile uint64_t *const go = &notes.go;
    struct port p;
    ptl_handle_me_t entries[ENTRIES];
    port_open(&p, kind, rank, size);
    if (!handler_threads(&p)) {
        port_close(&p);
        ptest_skip("whoever makes progress runs one message of a sender after the other");
    }
    memset(source, 1, sizeof(source));
    if (rank == 1) {
        open_entries(&p, entries, 0, false);
    }
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(&p, source, LARGE, 0, PTL_CT_NONE);
    if (rank == sender) {
        for (uint64_t i = 0; i < MANY; i++) {
            put(&p, md, SMALL, 0, i, PTL_NO_ACK_REQ);
            put(&p, md, SMALL, 1, i, PTL_NO_ACK_REQ);
        }
        put(&p, md, SMALL, 2, 0, PTL_NO_ACK_REQ);
    }
    if (rank == 1) {
        unsigned counts[ENTRIES] = {0};
        take_events(&p, counts, MANY);
        CHECK_EQ(counts[1], MANY);
        NO_EVENT(p.eq);
        while (__atomic_load_n(&notes.begun, __ATOMIC_ACQUIRE) == 0) {
            ptest_sleep_ms(1);
        }
        CHECK_EQ(__atomic_load_n(&notes.begun, __ATOMIC_ACQUIRE), 1);
        __atomic_store_n(go, 1, __ATOMIC_RELEASE);
        take_events(&p, counts, MANY + 1);
        CHECK_EQ(counts[0], MANY);
        CHECK_EQ(notes.ended, MANY);
        CHECK_EQ(notes.disorder, 0);
        CHECK_EQ(notes.sum, MANY * SMALL);
        NO_EVENT(p.eq);
    }
    port_release(md);
    port_close(&p);
}

PTEST_MATCHING(overtakes, 2)
{
    overtake(rank, size, kind, 0);
}

PTEST_MATCHING(overtakes_itself, 2)
{
    overtake(rank, size, kind, 1);
}

/* Acks keep the order of the messages, whatever that of their ends. */
PTEST_MATCHING(acks_in_order, 2)
{
    struct port p;
    ptl_handle_me_t entries[ENTRIES];
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        open_entries(&p, entries, 0, false);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_md(&p, source, LARGE, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        for (uint64_t i = 0; i < MANY; i++) {
            uint64_t length = i % 5 == 4 ? 5000 : i % 7;
            put(&p, md, length, i % ENTRIES, i / ENTRIES, PTL_ACK_REQ);
        }
        ptest_sleep_ms(10);
        BARRIER();
        for (uint64_t i = 0; i < MANY; i++) {
            CHECK_EQ(EVENT(p.mdeq, PTL_EVENT_ACK).user_ptr, (void *)(uintptr_t)(i / ENTRIES));
        }
        port_release(md);
    } else {
        unsigned counts[ENTRIES] = {0};
        BARRIER();
        __atomic_store_n(&notes.go, 1, __ATOMIC_RELEASE);
        take_events(&p, counts, MANY);
        CHECK_EQ(notes.disorder, 0);
        CHECK_EQ(notes.ended, counts[0]);
    }
    port_close(&p);
}

/* Large ones and small ones of one entry: one at a time, in order. */
PTEST_MATCHING(large_behind_small, 2)
{
    struct port p;
    ptl_handle_me_t entries[ENTRIES];
    port_open(&p, kind, rank, size);
    notes.go = 1;
    if (rank == 1) {
        open_entries(&p, entries, 0, true);
        __atomic_store_n(&notes.go, 1, __ATOMIC_RELEASE);
    }
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(&p, source, LARGE, 0, PTL_CT_NONE);
    for (uint64_t i = 0; i < MANY && rank == 0; i++) {
        put(&p, md, i % 3 == 2 ? LARGE : SMALL, 0, i, PTL_NO_ACK_REQ);
    }
    if (rank == 1) {
        unsigned counts[ENTRIES] = {0};
        take_events(&p, counts, MANY);
        CHECK_EQ(notes.disorder, 0);
    }
    port_release(md);
    port_close(&p);
}

/* A sender that has gone: what it has sent is handled all the same. */
PTEST_MATCHING(sender_gone, 3)
{
    struct port p;
    ptl_handle_me_t entries[ENTRIES];
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        open_entries(&p, entries, 0, false);
    }
    BARRIER();
    if (rank == 2) {
        ptl_handle_md_t md = port_quiet_md(&p, source, LARGE, 0, PTL_CT_NONE);
        for (uint64_t i = 0; i < 10; i++) {
            put(&p, md, SMALL, 0, i, PTL_NO_ACK_REQ);
        }
        port_release(md);
        ptest_show(0, 1);
    }
    while (rank == 1 && ptest_look(2, 0) == 0) {
        ptest_sleep_ms(1);
    }
    if (rank == 1) {
        unsigned counts[ENTRIES] = {0};
        __atomic_store_n(&notes.go, 1, __ATOMIC_RELEASE);
        take_events(&p, counts, 10);
        CHECK_EQ(notes.ended, 10);
    }
    port_close(&p);
}

/* The interface is closed with acks due: their sender hears that its messages were lost. */
PTEST_MATCHING(closed_with_acks_due, 2)
{
    enum { N = 6 };
    struct port p;
    ptl_handle_me_t entries[ENTRIES];
    ptl_handle_ni_t other;
    setenv("PINWHEEL_LINGER_MS", "50", 1);
    port_open(&p, kind, rank, size);
    if (rank == 0) {
        BARRIER();
        ptl_handle_md_t md = port_md(&p, source, LARGE, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        for (uint64_t i = 0; i < N; i++) {
            put(&p, md, SMALL, 0, i, PTL_ACK_REQ);
        }
        ptl_event_t first;
        unsigned which;
        OK(PtlEQPoll(&p.mdeq, 1, 10000, &first, &which));
        CHECK_EQ(first.type, PTL_EVENT_ACK);
        CHECK(first.ni_fail_type == PTL_NI_DROPPED ||
              first.ni_fail_type == PTL_NI_HANDLER_TIMEOUT); /* ended where it ran */
        for (uint64_t i = 1; i < N; i++) {
            EVENT_FAIL(p.mdeq, PTL_EVENT_ACK, PTL_NI_DROPPED);
        }
        port_release(md);
        port_close(&p);
        return;
    }
    open_entries(&p, entries, 0, false);
    /* Keeps the NIC open. */
    OK(PtlNIInit(PTL_IFACE_DEFAULT, kind ^ KIND_MP ^ KIND_NL, PTL_PID_ANY, NULL, NULL, &other));
    BARRIER();
    while (__atomic_load_n(&notes.begun, __ATOMIC_ACQUIRE) == 0) {
        PtlEQGet(p.eq, &(ptl_event_t){0});
    }
    ptest_sleep_ms(5);
    OK(PtlNIFini(p.ni));
    BARRIER(); /* that of port_close() */
    OK(PtlNIFini(other));
    PtlFini();
}

/* The interface is closed while some wait behind one that waits. */
PTEST_MATCHING(closed_meanwhile, 1)
{
    struct port p;
    ptl_handle_me_t entries[ENTRIES];
    setenv("PINWHEEL_LINGER_MS", "20", 1);
    port_open(&p, kind, rank, size);
    p.id[1] = p.id[0];
    open_entries(&p, entries, 0, false);
    ptl_handle_md_t md = port_quiet_md(&p, source, LARGE, 0, PTL_CT_NONE);
    for (uint64_t i = 0; i < 10; i++) {
        put(&p, md, SMALL, i % 2, i / 2, PTL_NO_ACK_REQ);
    }
    ptest_sleep_ms(5);
    port_close(&p);
}
