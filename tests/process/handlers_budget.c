/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers that do not end: after PINWHEEL_HANDLER_BUDGET_US their message ends with TIMEOUT
 * at both ends, its other packets are dropped, and the entry takes its next message.
 *
 * Not with ThreadSanitizer, which keeps signals from loops that make no call.
 */
#include "handler.h"

enum { BYTES = 20000 };

enum loop { NO_LOOP, PLAIN, OF_DMAS, OF_ATOMICS, OF_STORES, LOOPS };
enum where { IN_HEADER, IN_FIRST_PACKET, IN_COMPLETION, PLACES };

static unsigned char source[BYTES], memory[BYTES];
static struct handler_log results;

struct state {
    uint64_t word;
    uint32_t loop, where;
};

static void spin(struct state *s)
{
    volatile uint64_t here = 0;
    uint64_t word = 0;
    while (s->loop != NO_LOOP) {
        switch (s->loop) {
        case OF_DMAS:
            PtlHandlerDMAFromHostB(0, &word, sizeof(word), PTL_HANDLER_HOST_MEM);
            break;
        case OF_ATOMICS:
            PtlHandlerFAdd(&s->word, NULL, 1);
            break;
        case OF_STORES:
            memset((void *)&s->word, (int)here++, sizeof(s->word));
            break;
        default:
            here++;
        }
    }
}

__handler static int header_handler(const ptl_header_t h, void *state)
{
    struct state *s = state;
    handler_log_header();
    s->loop = (uint32_t)h.hdr_data % LOOPS;
    s->where = (uint32_t)(h.hdr_data / LOOPS);
    if (s->where == IN_HEADER) {
        spin(s);
    }
    return PROCESS_DATA;
}

__handler static int payload_handler(const ptl_payload_t p, void *state)
{
    struct state *s = state;
    LOG(payloads, 1);
    if (s->where == IN_FIRST_PACKET && p.offset == 0) {
        spin(s);
    }
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}

__handler static int completion_handler(ptl_size_t dropped, bool flow_control, void *state)
{
    struct state *s = state;
    handler_log_completion(dropped, flow_control);
    if (s->where == IN_COMPLETION) {
        spin(s);
    }
    return SUCCESS;
}
PTL_HANDLER(header_handler);
PTL_HANDLER(payload_handler);
PTL_HANDLER(completion_handler);

static void message(struct port *p, enum loop loop, enum where where, bool self)
{
    int fail = loop == NO_LOOP ? PTL_NI_OK : PTL_NI_HANDLER_TIMEOUT;
    uint64_t kept = loop == NO_LOOP || where == IN_COMPLETION ? BYTES : 0;
    if (p->rank == 1) {
        memset(&results, 0, sizeof(results));
        memset(memory, 0, BYTES);
    }
    BARRIER();
    if (handler_sends(p, self)) {
        ptl_hdr_data_t order = (ptl_hdr_data_t)loop + LOOPS * (ptl_hdr_data_t)where;
        CHECK_EQ(handler_put(p, source, BYTES, 0, order, fail).mlength, kept);
    }
    if (p->rank == 1) {
        CHECK_EQ(EVENT_FAIL(p->eq, PTL_EVENT_PUT, fail).mlength, kept);
        CHECK_FILL(memory, kept, 1);
        uint64_t completions = loop == NO_LOOP || where != IN_HEADER;
        handler_check_log(&results, 1, completions, completions != 0 ? BYTES - kept : 0);
        if (loop != NO_LOOP && where == IN_FIRST_PACKET) {
            CHECK_EQ(results.payloads, 1);
        }
    }
    BARRIER();
}

static void open_budget(struct port *p, unsigned kind, int rank, int size, ptl_handle_ct_t *ct)
{
    setenv("PINWHEEL_HANDLER_BUDGET_US", "4000", 1);
    port_open(p, kind, rank, size);
    *ct = port_ct(p);
    ptest_fill(source, BYTES, 1);
    if (rank == 1) {
        struct state s = {.loop = NO_LOOP};
        ptl_handlers_t h = handler_set(header_handler, payload_handler, completion_handler, &s,
                                       sizeof(s), &results, sizeof(results));
        h.hpu_mask = 1; /* the packets behind the first one wait for it */
        handler_target(p, memory, BYTES, 0, *ct, &h);
    }
    BARRIER();
}

PTEST_KINDS(each_loop, 2)
{
    struct port p;
    ptl_handle_ct_t ct;
    uint64_t rounds = 0;
    if (PTEST_TSAN) {
        return;
    }
    open_budget(&p, kind, rank, size, &ct);
    for (int loop = NO_LOOP + 1; loop < LOOPS; loop++) {
        for (int where = 0; where < PLACES; where++) {
            message(&p, (enum loop)loop, (enum where)where, (loop + where) % 2);
            message(&p, NO_LOOP, (enum where)where, where % 2);
            rounds++;
        }
    }
    if (rank == 1) {
        handler_check_ct(ct, rounds, rounds);
        NO_EVENT(p.eq);
    }
    port_close(&p);
}

/* Longer than the budget in all, but not in one go. */
__handler static int patient_header(const ptl_header_t h, void *state)
{
    for (int i = 0; i < 30; i++) {
        for (volatile int turn = 0; turn < 300000; turn++) {
        }
        PtlHandlerYield();
    }
    return PROCEED;
}
PTL_HANDLER(patient_header);

PTEST(who_yields_is_left_alone, 2)
{
    struct port p;
    setenv("PINWHEEL_HANDLER_BUDGET_US", ptest_slow() > 1 ? "100000" : "10000", 1);
    port_open(&p, KIND_ML, rank, size);
    if (rank == 1) {
        ptl_handlers_t h = handler_set(patient_header, NULL, NULL, NULL, 0, NULL, 0);
        handler_target(&p, memory, BYTES, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    if (rank == 0) {
        CHECK_EQ(handler_put(&p, source, 100, 0, 0, PTL_NI_OK).mlength, 100);
    } else {
        EVENT(p.eq, PTL_EVENT_PUT);
    }
    port_close(&p);
}

/* One after the other, without a pause: the signal for one must not hit the next. */
PTEST(one_after_the_other, 1)
{
    enum { N = 40 };
    struct port p;
    ptl_handle_ct_t ct;
    if (PTEST_TSAN) {
        return;
    }
    setenv("PINWHEEL_HANDLER_BUDGET_US", "1000", 1);
    port_open(&p, KIND_ML, rank, size);
    ct = port_ct(&p);
    struct state s = {.loop = NO_LOOP};
    ptl_handlers_t h =
        handler_set(header_handler, NULL, NULL, &s, sizeof(s), &results, sizeof(results));
    handler_target(&p, memory, BYTES, 0, ct, &h);
    ptl_handle_md_t md = port_quiet_md(&p, source, BYTES, 0, PTL_CT_NONE);
    for (int i = 0; i < N; i++) {
        int loop = i % 4 == 0 ? PLAIN : NO_LOOP;
        OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[0], p.pt, HANDLER_BITS, 0, NULL,
                  (ptl_hdr_data_t)loop));
    }
    for (int i = 0; i < N; i++) {
        EVENT_FAIL(p.eq, PTL_EVENT_PUT, i % 4 == 0 ? PTL_NI_HANDLER_TIMEOUT : PTL_NI_OK);
    }
    handler_check_ct(ct, N - N / 4, N / 4);
    port_close(&p);
}

/* ---- Without a budget ---- */

/* Nobody ends a handler that has no budget, but the end of its interface does. */
static void close_under(int rank, int size, unsigned kind, enum loop loop, enum where where)
{
    struct port p;
    if (PTEST_TSAN) {
        return;
    }
    setenv("PINWHEEL_HANDLER_BUDGET_US", "0", 1);
    setenv("PINWHEEL_LINGER_MS", "100", 1);
    port_open(&p, kind, rank, size);
    memset(&results, 0, sizeof(results));
    if (rank == 1) {
        ptl_handlers_t h = handler_set(header_handler, payload_handler, completion_handler, NULL,
                                       sizeof(struct state), &results, sizeof(results));
        handler_target(&p, memory, BYTES, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(&p, source, BYTES, 0, PTL_CT_NONE);
    if (rank == 0) {
        OK(PtlPut(md, 0, BYTES, PTL_NO_ACK_REQ, p.id[1], p.pt, HANDLER_BITS, 0, NULL,
                  where * LOOPS + loop));
    }
    uint64_t *begun = where == IN_HEADER         ? &results.headers
                      : where == IN_FIRST_PACKET ? &results.payloads
                                                 : &results.completions;
    while (rank == 1 && __atomic_load_n(begun, __ATOMIC_ACQUIRE) == 0) {
        ptest_sleep_ms(1); /* the library's threads run it */
    }
    port_close(&p);
}

PTEST_KINDS(closed_under_a_header_handler, 2)
{
    close_under(rank, size, kind, PLAIN, IN_HEADER);
}

PTEST_KINDS(closed_under_a_payload_handler, 2)
{
    close_under(rank, size, kind, OF_DMAS, IN_FIRST_PACKET);
}

PTEST_KINDS(closed_under_a_completion_handler, 2)
{
    close_under(rank, size, kind, OF_ATOMICS, IN_COMPLETION);
}
