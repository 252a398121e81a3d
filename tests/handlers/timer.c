/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers that no message runs: timers, and what the host starts, at entries that may be inactive.
 * Times are short, and no case asks how short they were in the end.
 */
#include "kit.h"

#include "timer_handlers.h"

#include <unistd.h>

enum { BITS = 5, MS = 1000000 };

static _Alignas(64) uint8_t memory[4096], data[64];
static uint64_t host_ticks; /* the completion handler's */

struct scene {
    struct kit k;
    ptl_handle_hpu_mem_t mem;
    ptl_handle_ct_t ticks, done; /* of the handlers, of the entry */
    ptl_handle_me_t entry;
};

static void open_scene(struct scene *s, int rank, int size)
{
    kit_open(&s->k, rank, size);
    s->ticks = port_ct(&s->k.p);
    s->done = port_ct(&s->k.p);
}

static void append(struct scene *s, unsigned options, unsigned handler_options)
{
    struct timer_state state = {.ct = s->ticks, .rank = (uint32_t)s->k.p.rank};
    ptl_handlers_t h = timer_counting;
    OK(PtlHPUAllocMem(s->k.p.ni, sizeof(state), &s->mem));
    h.hpu_mem = s->mem;
    h.hpu_initial_state = &state;
    h.handler_host_mem = &host_ticks;
    h.handler_host_length = sizeof(host_ticks);
    h.options = handler_options;
    s->entry = kit_entry(&s->k, memory, sizeof(memory), BITS, options, s->done, &h);
}

static struct timer_state state_of(const struct scene *s)
{
    struct timer_state state;
    OK(PtlHPURead(s->mem, 0, &state, sizeof(state)));
    CHECK_EQ(state.wrong, 0);
    return state;
}

static void await_ticks(const struct scene *s, uint64_t n)
{
    ptl_ct_event_t value;
    ptl_size_t test = n;
    unsigned which;
    OK(PtlCTPoll(&s->ticks, &test, 1, 20000 * (unsigned)ptest_slow(), &value, &which));
}

static void check_done(const struct scene *s, uint64_t success, uint64_t failure)
{
    ptl_ct_event_t value;
    OK(PtlCTGet(s->done, &value));
    CHECK_EQ(value.success, success);
    CHECK_EQ(value.failure, failure);
}

static void close_scene(struct scene *s)
{
    OK(PtlCTFree(s->ticks));
    OK(PtlCTFree(s->done));
    kit_close(&s->k);
}

#define GONE(call) CHECK_EQ(call, PTL_ARG_INVALID)

/* One tick, and it is no message to the host. */
PTEST(once, 1)
{
    struct scene s;
    ptl_handle_timer_t timer;
    open_scene(&s, rank, size);
    append(&s, 0, 0);
    for (uint64_t i = 1; i < 4; i++) {
        OK(PtlHandlersTimer(s.entry, (i - 1) * MS, 0, TIMER_COUNT, &timer));
        await_ticks(&s, i);
        CHECK_EQ(state_of(&s).ticks, i);
        GONE(PtlHandlersTimerCancel(timer));
    }
    check_done(&s, 0, 0);
    port_unlink(&s.k.p, s.entry); /* when the last completion handler has ended */
    CHECK_EQ(state_of(&s).completions, 3);
    CHECK_EQ(host_ticks, 3);
    close_scene(&s);
}

/* Again and again until it is cancelled, or its entry is unlinked; a program that does not call
 * Portals has its ticks all the same. */
PTEST(periodic, 1)
{
    struct scene s;
    ptl_handle_timer_t timer, other;
    open_scene(&s, rank, size);
    append(&s, 0, 0);
    OK(PtlHandlersTimer(s.entry, MS, MS, TIMER_COUNT, &timer));
    OK(PtlHandlersTimer(s.entry, UINT64_C(3600) * 1000 * MS, 0, TIMER_FAIL, &other));
    await_ticks(&s, 10);
    for (int i = 0; __atomic_load_n(&host_ticks, __ATOMIC_ACQUIRE) < 20; i++) {
        usleep(1000);
        CHECK(i < 20000);
    }
    OK(PtlHandlersTimerCancel(timer));
    GONE(PtlHandlersTimerCancel(timer));
    OK(PtlHandlersTimer(s.entry, 0, 2 * MS, TIMER_COUNT, &timer));
    await_ticks(&s, 23);
    port_unlink(&s.k.p, s.entry);
    GONE(PtlHandlersTimerCancel(timer));
    GONE(PtlHandlersTimerCancel(other));
    uint64_t ticks = state_of(&s).ticks;
    NO_EVENT(s.k.p.eq);
    CHECK_EQ(state_of(&s).ticks, ticks);
    check_done(&s, 0, 0);
    close_scene(&s);
}

/* A tick that has not ended keeps the next ones out, and other timers in. */
PTEST(left_out, 1)
{
    struct scene s;
    ptl_handle_timer_t busy, other;
    uint64_t go = 1;
    open_scene(&s, rank, size);
    append(&s, 0, 0);
    OK(PtlHandlersTimer(s.entry, 0, MS, TIMER_BUSY, &busy));
    await_ticks(&s, 1);
    OK(PtlHandlersTimer(s.entry, 0, MS, TIMER_COUNT, &other));
    await_ticks(&s, 20);
    OK(PtlHandlersTimerCancel(other));
    CHECK_EQ(port_unlink_code(&s.k.p, s.entry), PTL_IN_USE);
    OK(PtlHandlersTimerCancel(busy)); /* which lets the tick end */
    OK(PtlHPUWrite(s.mem, offsetof(struct timer_state, go), &go, sizeof(go)));
    port_unlink(&s.k.p, s.entry);
    struct timer_state state = state_of(&s);
    CHECK_EQ(state.ticks, state.completions);
    close_scene(&s);
}

/* An error is told, as that of a put; the timer goes on. */
PTEST(errors, 1)
{
    struct scene s;
    ptl_handle_timer_t timer;
    open_scene(&s, rank, size);
    append(&s, PTL_ME_USE_ONCE, 0);
    OK(PtlHandlersTimer(s.entry, 0, MS, TIMER_FAIL, &timer));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(EVENT_FAIL(s.k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL).hdr_data, TIMER_FAIL);
    }
    OK(PtlHandlersTimerCancel(timer));
    port_unlink(&s.k.p, s.entry);
    while (PtlEQGet(s.k.p.eq, &(ptl_event_t){0}) == PTL_OK) {
    }
    close_scene(&s);
}

/* A use-once entry is used up by a message, not by ticks, and takes its timer with it. */
PTEST(use_once, 2)
{
    struct scene s;
    ptl_handle_timer_t timer;
    open_scene(&s, rank, size);
    if (rank == 1) {
        append(&s, PTL_ME_USE_ONCE, 0);
        OK(PtlHandlersTimer(s.entry, 0, MS, TIMER_COUNT, &timer));
        await_ticks(&s, 5);
        BARRIER();
        kit_wait(s.done, 1);
        for (int i = 0; PtlHandlersTimerCancel(timer) != PTL_ARG_INVALID; i++) {
            CHECK(i == 0); /* it may have been a little early */
        }
        GONE(PtlHandlersTimer(s.entry, 0, 0, TIMER_COUNT, &timer));
        CHECK_EQ(state_of(&s).puts, 1);
    } else {
        BARRIER();
        kit_put_once(&s.k, data, sizeof(data), 1, BITS, 0, TIMER_COUNT, PTL_NI_OK);
    }
    close_scene(&s);
}

/* A handler sets up what messages find, before any finds the entry. What the host starts there
 * leaves it inactive. */
PTEST(set_up, 2)
{
    struct scene s;
    ptl_handle_timer_t timer;
    open_scene(&s, rank, size);
    for (int once = 0; once < 2; once++) {
        if (rank == 1) {
            append(&s, once != 0 ? PTL_ME_USE_ONCE : 0, PTL_HANDLER_INACTIVE);
            OK(PtlHandlersTimer(s.entry, 0, 0, TIMER_COUNT, &timer));
            await_ticks(&s, (uint64_t)once + 1);
        }
        BARRIER();
        if (rank == 0) {
            kit_put_once(&s.k, data, 8, 1, BITS, 0, TIMER_COUNT, PTL_NI_DROPPED);
        }
        BARRIER();
        if (rank == 1) {
            OK(PtlHandlersInvokeEx(s.entry, data, sizeof(data), TIMER_SET_UP));
            for (int i = 0; state_of(&s).ready == 0; i++) {
                PtlEQGet(s.k.p.eq, &(ptl_event_t){0});
            }
            CHECK_EQ(state_of(&s).ready, sizeof(data));
        }
        BARRIER();
        if (rank == 0) {
            kit_put_once(&s.k, data, 8, 1, BITS, 0, TIMER_COUNT, PTL_NI_DROPPED);
        }
        BARRIER();
        if (rank == 1) {
            int code;
            while ((code = PtlHandlersActivate(s.entry)) == PTL_IN_USE) {
                PtlEQGet(s.k.p.eq, &(ptl_event_t){0}); /* the end of what was invoked */
            }
            OK(code);
        }
        BARRIER();
        if (rank == 0) {
            kit_put_once(&s.k, data, 8, 1, BITS, 0, TIMER_COUNT, PTL_NI_OK);
        } else {
            kit_wait(s.done, (uint64_t)once + 1);
            CHECK_EQ(state_of(&s).puts, 1);
            CHECK_EQ(state_of(&s).unready, 0);
            if (once == 0) {
                port_unlink(&s.k.p, s.entry);
            }
        }
        BARRIER();
    }
    close_scene(&s);
}

/* What the host starts at an inactive use-once entry has it in hand, and uses it up. */
PTEST(used_up_inactive, 1)
{
    struct scene s;
    uint64_t go = 1;
    open_scene(&s, rank, size);
    append(&s, PTL_ME_USE_ONCE, PTL_HANDLER_INACTIVE);
    OK(PtlHandlersInvokeEx(s.entry, data, 8, TIMER_BUSY));
    CHECK_EQ(PtlHandlersInvokeEx(s.entry, data, 8, TIMER_COUNT), PTL_IN_USE);
    CHECK_EQ(PtlHandlersActivate(s.entry), PTL_IN_USE);
    OK(PtlHPUWrite(s.mem, offsetof(struct timer_state, go), &go, sizeof(go)));
    kit_wait(s.done, 1);
    close_scene(&s);
}

/* As many as there may be, arguments that make no sense, and all of them left behind. */
PTEST(limits, 1)
{
    struct scene s;
    ptl_handle_timer_t timer[PTL_SPIN_TIMERS], more;
    open_scene(&s, rank, size);
    append(&s, 0, 0);
    GONE(PtlHandlersTimer(s.entry, 0, PTL_SPIN_TIMER_LEAST - 1, 0, &more));
    GONE(PtlHandlersTimer(s.entry, UINT64_MAX, 0, 0, &more));
    GONE(PtlHandlersTimer(s.entry, 0, UINT64_MAX, 0, &more));
    GONE(PtlHandlersTimer(s.entry, 0, 0, 0, NULL));
    GONE(PtlHandlersTimer(s.k.p.eq, 0, 0, 0, &more));
    GONE(PtlHandlersTimerCancel(s.entry));
    GONE(PtlHandlersTimerCancel(PTL_INVALID_HANDLE));
    for (int i = 0; i < PTL_SPIN_TIMERS; i++) {
        OK(PtlHandlersTimer(s.entry, (uint64_t)(PTL_SPIN_TIMERS - i) * 10000, MS, TIMER_COUNT,
                            &timer[i]));
    }
    CHECK_EQ(PtlHandlersTimer(s.entry, 0, 0, 0, &more), PTL_NO_SPACE);
    await_ticks(&s, 2 * PTL_SPIN_TIMERS);
    OK(PtlHandlersTimerCancel(timer[100]));
    OK(PtlHandlersTimer(s.entry, 0, PTL_SPIN_TIMER_LEAST, TIMER_COUNT, &timer[100]));
    await_ticks(&s, 3 * PTL_SPIN_TIMERS);
    kit_close(&s.k); /* in the middle of it */
}
