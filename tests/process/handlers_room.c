/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No room for handler calls: the sender is held back, and after PINWHEEL_HPU_PATIENCE_MS
 * the portal table entry is closed (with flow control) or the message dropped (without).
 * Nobody loses anything unseen, and after PtlPTEnable() all is as before.
 *
 *      rank 0, 2, 3 ──► rank 1: an entry whose handlers wait for `go`
 *
 * An HPU's thread may be kept from its processor for longer than the patience: then what waits
 * for it finds no room either. So nothing here depends on who is first or on how much of a
 * message had come, but that all sides agree on it.
 */
#include "handler.h"

enum { LENGTH = 60000 };

static unsigned char source[LENGTH], memory[LENGTH];

/* handler_host_mem */
static struct {
    struct handler_log log;
    volatile uint64_t go, holding;
} shared;

enum hold { LET_GO, HOLD_HPU, HOLD_SLOT };

struct state {
    uint32_t hold;
};

/* Waits for the host; with HOLD_SLOT others may run meanwhile. */
static void wait_for_host(enum hold hold)
{
    uint64_t go = 0;
    LOG(bytes, 0);
    PtlHandlerDMAFetchAddB(offsetof(__typeof__(shared), holding), 1, NULL, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    while (go == 0) {
        PtlHandlerDMAFromHostB(offsetof(__typeof__(shared), go), &go, sizeof(go),
                               PTL_HANDLER_HOST_MEM);
        if (hold == HOLD_SLOT) {
            PtlHandlerYield();
        }
    }
}

__handler static int header_handler(const ptl_header_t h, void *state)
{
    struct state *s = state;
    LOG(headers, 1);
    if (h.hdr_data != LET_GO && h.length <= 8) {
        wait_for_host((enum hold)h.hdr_data);
    }
    s->hold = (uint32_t)h.hdr_data;
    return PROCESS_DATA;
}

__handler static int payload_handler(const ptl_payload_t p, void *state)
{
    struct state *s = state;
    LOG(payloads, 1);
    if (s->hold != LET_GO && p.length > 8) {
        wait_for_host((enum hold)s->hold);
    }
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}

__handler static int completion_handler(ptl_size_t dropped, bool flow_control, void *state)
{
    LOG(completions, 1);
    LOG(dropped, dropped);
    LOG(flow_control, flow_control);
    return SUCCESS;
}
PTL_HANDLER(header_handler);
PTL_HANDLER(payload_handler);
PTL_HANDLER(completion_handler);

static void open_room(struct port *p, int rank, int size, const char *hpus, unsigned pt_options)
{
    setenv("PINWHEEL_HPUS", hpus, 1);
    setenv("PINWHEEL_HPU_QUEUE", "1", 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", "50", 1);
    setenv("PINWHEEL_HANDLER_BUDGET_US", "0", 1);
    port_open(p, KIND_ML, rank, size);
    if (rank == 1) {
        ptl_handle_me_t entry;
        struct state s = {.hold = LET_GO};
        ptl_handlers_t h = handler_set(header_handler, payload_handler, completion_handler, &s,
                                       sizeof(s), &shared, sizeof(shared));
        h.hpu_mask = 1;
        OK(PtlPTFree(p->ni, p->pt));
        OK(PtlPTAlloc(p->ni, pt_options, p->eq, p->pt, &p->pt));
        ptl_me_t me = port_entry(p, memory, LENGTH, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        OK(handler_append_code(p, p->pt, &me, &h, NULL, &entry));
    }
    ptest_fill(source, LENGTH, 1);
    BARRIER();
}

static void let_go(struct port *p)
{
    __atomic_store_n(&shared.go, 1, __ATOMIC_SEQ_CST);
    (void)p;
}

static void wait_until_dropped(struct port *p, int count)
{
    while (port_status(p, PTL_SR_DROP_COUNT) < count) {
        ptest_sleep_ms(1);
    }
}

/* Good messages go through. They are packets, one after the other: each call of one finds an
 * empty queue. */
static void good_ones(struct port *p)
{
    enum { MESSAGES = 5 };
    ptl_spin_limits_t limits;
    OK(PtlSpinLimits(p->ni, &limits));
    size_t packet = limits.max_payload_size;
    BARRIER();
    if (p->rank == 1) {
        memset((void *)&shared, 0, sizeof(shared));
        memset(memory, 0, LENGTH);
    }
    BARRIER();
    for (size_t at = 0; p->rank == 0 && at < MESSAGES * packet; at += packet) {
        handler_put(p, source + at, packet, at, LET_GO, PTL_NI_OK);
    }
    for (int i = 0; p->rank == 1 && i < MESSAGES; i++) {
        CHECK_EQ(EVENT(p->eq, PTL_EVENT_PUT).mlength, packet);
    }
    BARRIER();
    if (p->rank == 1) {
        CHECK_EQ(shared.log.payloads, MESSAGES);
        CHECK_EQ(shared.log.flow_control, 0);
        NO_EVENT(p->eq);
    }
    BARRIER();
}

/* try_put() puts to rank 1 and tells how that ended. */
static int try_put(struct port *p, size_t length, enum hold hold)
{
    ptl_event_t ack;
    unsigned which;
    ptl_handle_md_t md = port_md(p, source, length, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    OK(PtlPut(md, 0, length, PTL_ACK_REQ, p->id[1], p->pt, HANDLER_BITS, 0, NULL, hold));
    OK(PtlEQPoll(&p->mdeq, 1, 20000 * (unsigned)ptest_slow(), &ack, &which));
    CHECK_EQ(ack.type, PTL_EVENT_ACK);
    port_release(md);
    return ack.ni_fail_type;
}

/* ---- Midway: the first packet's handler holds the only HPU, the second waits in the queue,
 * the third finds no room. Two are seen by their handlers in the end, or fewer if the HPU's thread
 * was late. ---- */

enum { KEPT = 3 }; /* for ptest_show(): bytes that the two ends tell of */

static void midway(int rank, int size, unsigned pt_options)
{
    struct port p;
    ptl_spin_limits_t limits;
    bool refuses = (pt_options & PTL_PT_FLOWCTRL) != 0;
    int fail = refuses ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED;
    open_room(&p, rank, size, "1", pt_options);
    OK(PtlSpinLimits(p.ni, &limits));
    if (rank == 0) {
        ptest_show(KEPT, handler_put(&p, source, LENGTH, 0, HOLD_HPU, fail).mlength);
    } else {
        wait_until_dropped(&p, 1);
        if (shared.holding != 0) {
            NO_EVENT(p.eq); /* the message is in progress still */
        }
        let_go(&p);
        ptl_event_t event = EVENT_FAIL(p.eq, PTL_EVENT_PUT, fail);
        CHECK_EQ(event.rlength, LENGTH);
        uint64_t kept = event.mlength;
        CHECK(kept % limits.max_payload_size == 0 && kept <= 2 * limits.max_payload_size);
        ptest_show(KEPT, kept);
        CHECK_FILL(memory, kept, 1);
        CHECK_BYTES(memory + kept, LENGTH - kept, 0);
        CHECK_EQ(shared.log.headers, 1);
        CHECK_EQ(shared.log.payloads, kept / limits.max_payload_size);
        CHECK_EQ(shared.log.completions, 1);
        CHECK_EQ(shared.log.flow_control, 1);
        CHECK_EQ(shared.log.dropped, LENGTH - kept);
        if (refuses) {
            EVENT_FAIL(p.eq, PTL_EVENT_PT_DISABLED, PTL_NI_PT_DISABLED);
        }
    }
    BARRIER();
    CHECK_EQ(ptest_look(0, KEPT), ptest_look(1, KEPT));
    if (refuses && rank == 0) {
        handler_put(&p, source, 8, 0, LET_GO, PTL_NI_PT_DISABLED);
    }
    BARRIER();
    if (refuses && rank == 1) {
        OK(PtlPTEnable(p.ni, p.pt));
    }
    good_ones(&p);
    port_close(&p);
}

PTEST(midway_with_flow_control, 2)
{
    midway(rank, size, PTL_PT_FLOWCTRL);
}

PTEST(midway_without, 2)
{
    midway(rank, size, 0);
}

/* ---- A message that no handler has seen: rank 0's header handler holds the HPU, or its slot.
 * With a thread the first of two more messages waits in the queue, and the second finds no room;
 * without one there is no queue, and one more message finds none. ---- */

enum { HELD = 0, LOST = 1 }; /* for ptest_show() */

/* Rank 1: `good` messages are done, one is not. */
static void count_ends(struct port *p, bool refuses, int good)
{
    int kind = refuses ? PTL_EVENT_PT_DISABLED : PTL_EVENT_PUT, bad = 0, done = 0;
    for (int i = 0; i < good + 1; i++) {
        ptl_event_t event;
        unsigned which;
        OK(PtlEQPoll(&p->eq, 1, 20000 * (unsigned)ptest_slow(), &event, &which));
        if (event.ni_fail_type == PTL_NI_OK) {
            CHECK_EQ(event.type, PTL_EVENT_PUT);
            CHECK_EQ(event.mlength, 8);
            done++;
            continue;
        }
        CHECK_EQ(event.type, kind);
        CHECK_EQ(event.ni_fail_type, refuses ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED);
        if (!refuses) {
            CHECK_EQ(event.mlength, 0);
            CHECK_EQ(event.rlength, 8);
        }
        bad++;
    }
    CHECK_EQ(done, good);
    CHECK_EQ(bad, 1);
    CHECK_EQ(shared.log.headers, (unsigned)good);
    CHECK_EQ(shared.log.completions, (unsigned)good);
    CHECK_EQ(shared.log.flow_control, 0);
}

static void at_the_door(int rank, int size, const char *hpus, unsigned pt_options)
{
    struct port p;
    bool refuses = (pt_options & PTL_PT_FLOWCTRL) != 0, threads = *hpus != '0';
    int fail = refuses ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED;
    open_room(&p, rank, size, hpus, pt_options);
    if (rank == 0) {
        handler_put(&p, source, 8, 0, threads ? HOLD_HPU : HOLD_SLOT, PTL_NI_OK);
    } else if (rank == 1) {
        ptl_event_t event;
        while (shared.holding == 0) { /* makes progress where no thread does */
            CHECK_CODE(PtlEQGet(p.eq, &event), PTL_EQ_EMPTY);
        }
        ptest_show(HELD, 1);
        wait_until_dropped(&p, 1);
        let_go(&p);
        count_ends(&p, refuses, size - 2);
        if (refuses) {
            OK(PtlPTEnable(p.ni, p.pt));
        }
    } else {
        while (ptest_look(1, HELD) == 0) {
            ptest_sleep_ms(1);
        }
        int end = try_put(&p, 8, LET_GO);
        CHECK(end == PTL_NI_OK || end == fail);
        ptest_show(LOST, end == fail);
    }
    BARRIER();
    CHECK_EQ(ptest_look(2, LOST) + (size > 3 ? ptest_look(3, LOST) : 0), 1);
    good_ones(&p);
    port_close(&p);
}

PTEST(at_the_door_with_flow_control, 4)
{
    at_the_door(rank, size, "1", PTL_PT_FLOWCTRL);
}

PTEST(at_the_door_without, 4)
{
    at_the_door(rank, size, "1", 0);
}

PTEST(at_the_door_inline_with_flow_control, 3)
{
    at_the_door(rank, size, "0", PTL_PT_FLOWCTRL);
}

PTEST(at_the_door_inline_without, 3)
{
    at_the_door(rank, size, "0", 0);
}
