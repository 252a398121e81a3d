/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No room for handler calls: the sender is held back, and after PINWHEEL_HPU_PATIENCE_MS
 * the portal table entry is closed (with flow control) or the message dropped (without).
 * Nobody loses anything unseen, and after PtlPTEnable() all is as before.
 *
 *      rank 0, 2, 3 ──► rank 1: an entry whose handlers wait for `go`
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

static void wait_until_held(void)
{
    while (__atomic_load_n(&shared.holding, __ATOMIC_SEQ_CST) == 0) {
        ptest_sleep_ms(1);
    }
}

/* A good message goes through. */
static void good_one(struct port *p)
{
    BARRIER();
    if (p->rank == 1) {
        memset((void *)&shared, 0, sizeof(shared));
        memset(memory, 0, LENGTH);
    }
    BARRIER();
    if (p->rank == 0) {
        handler_put(p, source, LENGTH, 0, LET_GO, PTL_NI_OK);
    } else if (p->rank == 1) {
        CHECK_EQ(EVENT(p->eq, PTL_EVENT_PUT).mlength, LENGTH);
        CHECK_FILL(memory, LENGTH, 1);
        CHECK_EQ(shared.log.flow_control, 0);
        NO_EVENT(p->eq);
    }
    BARRIER();
}

/* ---- Midway: the first packet's handler holds the only HPU, the second waits in the queue,
 * the third finds no room. Both are seen by their handlers in the end. ---- */

static void midway(int rank, int size, unsigned pt_options)
{
    struct port p;
    ptl_spin_limits_t limits;
    bool refuses = (pt_options & PTL_PT_FLOWCTRL) != 0;
    int fail = refuses ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED;
    open_room(&p, rank, size, "1", pt_options);
    OK(PtlSpinLimits(p.ni, &limits));
    uint64_t kept = 2 * limits.max_payload_size;
    if (rank == 0) {
        CHECK_EQ(handler_put(&p, source, LENGTH, 0, HOLD_HPU, fail).mlength, kept);
    } else {
        wait_until_held();
        wait_until_dropped(&p, 1);
        NO_EVENT(p.eq); /* the message is in hand still */
        let_go(&p);
        ptl_event_t event = EVENT_FAIL(p.eq, PTL_EVENT_PUT, fail);
        CHECK_EQ(event.rlength, LENGTH);
        CHECK_EQ(event.mlength, kept);
        CHECK_FILL(memory, kept, 1);
        CHECK_BYTES(memory + kept, LENGTH - kept, 0);
        CHECK_EQ(shared.log.headers, 1);
        CHECK_EQ(shared.log.payloads, 2);
        CHECK_EQ(shared.log.completions, 1);
        CHECK_EQ(shared.log.flow_control, 1);
        CHECK_EQ(shared.log.dropped, LENGTH - kept);
        if (refuses) {
            EVENT_FAIL(p.eq, PTL_EVENT_PT_DISABLED, PTL_NI_PT_DISABLED);
        }
    }
    BARRIER();
    if (refuses && rank == 0) {
        handler_put(&p, source, 8, 0, LET_GO, PTL_NI_PT_DISABLED);
    }
    BARRIER();
    if (refuses && rank == 1) {
        OK(PtlPTEnable(p.ni, p.pt));
    }
    good_one(&p);
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

/* ---- A message that no handler has seen: rank 0's header handler holds the HPU, or its slot,
 * rank 2's call waits in the queue (which there is none of without threads). ---- */

static void at_the_door(int rank, int size, const char *hpus, unsigned pt_options)
{
    struct port p;
    bool refuses = (pt_options & PTL_PT_FLOWCTRL) != 0, threads = *hpus != '0';
    int fail = refuses ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED, late = threads ? 3 : 2;
    open_room(&p, rank, size, hpus, pt_options);
    if (rank == 0) {
        handler_put(&p, source, 8, 0, threads ? HOLD_HPU : HOLD_SLOT, PTL_NI_OK);
    } else if (rank == 1) {
        ptl_event_t event;
        while (shared.holding == 0) { /* makes progress where no thread does */
            CHECK_CODE(PtlEQGet(p.eq, &event), PTL_EQ_EMPTY);
        }
    }
    if (rank != 0) {
        ptest_show(0, 1); /* held */
    }
    if (rank == 1) {
        ptest_show(1, 1);
        wait_until_dropped(&p, 1);
        let_go(&p);
        if (!refuses) {
            ptl_event_t event = EVENT_FAIL(p.eq, PTL_EVENT_PUT, PTL_NI_DROPPED);
            CHECK_EQ(event.mlength, 0);
            CHECK_EQ(event.rlength, 8);
        }
        for (int i = 0; i < late - 1; i++) {
            EVENT(p.eq, PTL_EVENT_PUT);
        }
        if (refuses) {
            EVENT_FAIL(p.eq, PTL_EVENT_PT_DISABLED, PTL_NI_PT_DISABLED);
            OK(PtlPTEnable(p.ni, p.pt));
        }
        CHECK_EQ(shared.log.headers, (unsigned)late - 1);
        CHECK_EQ(shared.log.completions, (unsigned)late - 1);
        CHECK_EQ(shared.log.flow_control, 0);
    } else if (rank >= 2) {
        while (ptest_look(1, 1) == 0) {
            ptest_sleep_ms(1);
        }
        ptest_sleep_ms(rank == late ? 20 * ptest_slow() : 0);
        handler_put(&p, source, 8, 0, LET_GO, rank == late ? fail : PTL_NI_OK);
    }
    good_one(&p);
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
