/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large non-blocking transfers go on beside the handler that began them, and not beyond it. With
 * each setting: inline, with one HPU thread and several, natively and on the RV32 cores.
 *
 * A handler that asks helps with a part of 32 KiB, if nothing has happened since it asked last. So
 * what is done after fewer questions than it has parts was done by somebody else.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kit.h"

#include "beside_handlers.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

enum { BITS = 9, PARTS = BESIDE_BYTES / 32768, ATTEMPTS = 200, PAGE = 4096 };

static struct beside_state seen;

struct host {
    struct kit k;
    ptl_handle_hpu_mem_t memory;
    ptl_handle_ct_t ct;
    uint64_t well; /* messages that have ended so */
    uint8_t *range;
    ptl_handle_me_t entry;
};

static void fill(uint8_t *bytes, unsigned with)
{
    for (size_t i = 0; i < BESIDE_BYTES; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 256 + with);
    }
}

static void open_host(struct host *x, int rank, int size)
{
    *x = (struct host){.well = 0};
    kit_open(&x->k, rank, size);
    if (rank == 1) {
        ptl_handlers_t h = beside_handlers;
        x->range =
            mmap(NULL, BESIDE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(x->range != MAP_FAILED);
        OK(PtlHPUAllocMem(x->k.p.ni, sizeof(seen), &x->memory));
        x->ct = port_ct(&x->k.p);
        h.hpu_mem = x->memory;
        h.handler_host_mem = x->range;
        h.handler_host_length = BESIDE_BYTES;
        x->entry = kit_entry(&x->k, NULL, 0, BITS, 0, x->ct, &h);
    }
    BARRIER();
}

static void close_host(struct host *x)
{
    BARRIER();
    if (x->k.p.rank == 1) {
        port_unlink(&x->k.p, x->entry);
        OK(PtlHPUFreeMem(x->memory));
        OK(PtlCTFree(x->ct));
    }
    kit_close(&x->k);
}

/* One message from rank 0, whose handler does that. */
static void message(struct host *x, enum beside_what what, int fail)
{
    BARRIER();
    if (x->k.p.rank == 0) {
        kit_put_once(&x->k, NULL, 0, 1, BITS, 0, what, fail);
    } else if (fail == PTL_NI_OK) {
        ptl_ct_event_t value;
        OK(PtlCTWait(x->ct, ++x->well, &value));
    } else {
        EVENT_FAIL(x->k.p.eq, PTL_EVENT_PUT, fail);
    }
    BARRIER();
}

static bool processors_to_spare(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 1;
}

/* Both ends, whatever the last round was like. */
static void set_data(struct host *x, enum beside_what what, unsigned with)
{
    bool back = what == BESIDE_BACK;
    fill(seen.data, back ? 0 : with);
    OK(PtlHPUWrite(x->memory, 0, &seen, sizeof(seen)));
    fill(x->range, back ? with : 0);
}

/* Until a handler has seen its transfer under way, and then done without its help. */
static void compute_and_ask(struct host *x, enum beside_what what)
{
    bool beside = false;
    for (unsigned i = 1; i <= ATTEMPTS && !beside; i++) {
        if (x->k.p.rank == 1) {
            set_data(x, what, i);
        }
        message(x, what, PTL_NI_OK);
        if (x->k.p.rank == 1) {
            OK(PtlHPURead(x->memory, 0, &seen, sizeof(seen)));
            CHECK_SAME(seen.data, x->range, BESIDE_BYTES);
            fill(seen.data, i);
            CHECK_SAME(seen.data, x->range, BESIDE_BYTES);
            beside = !seen.early && seen.asked < PARTS / 2;
        }
        ptest_show(0, beside || !processors_to_spare());
        BARRIER();
        beside = ptest_look(1, 0) != 0;
        BARRIER();
    }
    CHECK(beside);
}

PTEST_LIMIT(goes_on_beside, 2, 120)
{
    struct host x;
    open_host(&x, rank, size);
    compute_and_ask(&x, BESIDE_COMPUTE);
    compute_and_ask(&x, BESIDE_BACK);
    close_host(&x);
}

/* What nobody asked about is done when the message has ended. */
PTEST(done_at_the_end, 2)
{
    struct host x;
    open_host(&x, rank, size);
    for (unsigned i = 0; i < 10; i++) {
        if (rank == 1) {
            set_data(&x, BESIDE_RETURN, 1 + i);
        }
        message(&x, BESIDE_RETURN, PTL_NI_OK);
        if (rank == 1) {
            fill(seen.data, 1 + i);
            CHECK_SAME(x.range, seen.data, BESIDE_BYTES);
        }
    }
    close_host(&x);
}

/* A handler that is ended leaves its transfer where it is: nobody writes any more. */
static void ended(struct host *x, enum beside_what what, int fail)
{
    if (x->k.p.rank == 1) {
        set_data(x, what, 1);
    }
    message(x, what, fail);
    if (x->k.p.rank == 1) {
        memset(x->range, 0, BESIDE_BYTES);
        ptest_sleep_ms(5);
        CHECK_BYTES(x->range, BESIDE_BYTES, 0);
    }
    message(x, BESIDE_RETURN, PTL_NI_OK);
}

PTEST(ended_by_a_fault, 2)
{
    struct host x;
    open_host(&x, rank, size);
    for (int i = 0; i < 10; i++) {
        ended(&x, BESIDE_FAULT, PTL_NI_HANDLER_SEGV);
        ended(&x, BESIDE_FAR, PTL_NI_HANDLER_SEGV);
    }
    close_host(&x);
}

PTEST_OWN(ended_by_the_budget, 2, "changes the environment")
{
    struct host x;
    if (PTEST_TSAN) {
        ptest_skip("ThreadSanitizer keeps signals from loops that make no call");
    }
    setenv("PINWHEEL_HANDLER_BUDGET_US", ptest_slow() > 1 ? "200000" : "20000", 1);
    open_host(&x, rank, size);
    for (int i = 0; i < 3; i++) {
        ended(&x, BESIDE_LOOP, PTL_NI_HANDLER_TIMEOUT);
    }
    close_host(&x);
}

/* Memory that goes away, or was never there, ends the handler; so does the part that somebody else
 * copies. */
PTEST(memory_that_is_not_there, 2)
{
    static const enum beside_what each[] = {BESIDE_COMPUTE, BESIDE_RETURN, BESIDE_BACK};
    struct host x;
    open_host(&x, rank, size);
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        for (size_t at = 0; at < BESIDE_BYTES; at += BESIDE_BYTES / 2 - PAGE) {
            if (rank == 1) {
                CHECK_EQ(mprotect(x.range + at, PAGE, PROT_NONE), 0);
            }
            message(&x, each[i], PTL_NI_SEGV);
            if (rank == 1) {
                CHECK_EQ(mprotect(x.range + at, PAGE, PROT_READ | PROT_WRITE), 0);
            }
        }
        message(&x, each[i], PTL_NI_OK);
    }
    close_host(&x);
}

/* The end of the interface, or first that of its handler. */
static void *wait_for_event(void *arg)
{
    ptl_event_t event;
    int rc = PtlEQWait(*(const ptl_handle_eq_t *)arg, &event);
    CHECK(rc == PTL_ARG_INVALID || event.ni_fail_type == PTL_NI_HANDLER_TIMEOUT);
    return NULL;
}

enum { ALONE, STAYS = 1, WAITS = 2 };

/* An interface that is closed under a handler, which has no time to come to its end; the memory
 * goes after it. STAYS: another interface of the NIC. WAITS: a thread of the program, which runs
 * the handler if HPUs are no threads. */
static void close_under(int rank, int size, enum beside_what what, unsigned how)
{
    ptl_spin_counter_t begun = {.count = 0};
    ptl_handle_ni_t other;
    pthread_t thread;
    struct host x;
    setenv("PINWHEEL_HANDLER_BUDGET_US", "0", 1);
    setenv("PINWHEEL_LINGER_MS", "1", 1);
    open_host(&x, rank, size);
    if ((how & STAYS) != 0) {
        OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_NL, PTL_PID_ANY, NULL, NULL, &other));
    }
    bool waits = (how & WAITS) != 0 && rank == 1;
    if (waits) {
        CHECK_EQ(pthread_create(&thread, NULL, wait_for_event, &x.k.p.eq), 0);
    }
    ptl_handle_md_t md = port_quiet_md(&x.k.p, NULL, 0, 0, PTL_CT_NONE);
    if (rank == 1) {
        set_data(&x, what, 1);
    }
    BARRIER();
    if (rank == 0) {
        OK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, x.k.p.id[1], x.k.p.pt, BITS, 0, NULL, what));
    }
    while (rank == 1 && begun.count == 0) {
        ptest_sleep_ms(1);
        OK(PtlSpinCounter(x.k.p.ni, 0, &begun));
    }
    BARRIER();
    OK(PtlNIFini(x.k.p.ni));
    if (rank == 1) {
        CHECK_EQ(munmap(x.range, BESIDE_BYTES), 0);
        ptest_sleep_ms(20);
    }
    if (waits) {
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    if ((how & STAYS) != 0) {
        OK(PtlNIFini(other));
    }
    PtlFini();
}

PTEST_OWN(closed_while_it_calls, 2, "changes the environment")
{
    close_under(rank, size, BESIDE_CALLS, ALONE);
}

PTEST_OWN(closed_while_it_calls_and_another_stays, 2, "changes the environment")
{
    close_under(rank, size, BESIDE_CALLS, STAYS);
}

PTEST_OWN(closed_while_a_thread_waits, 2, "changes the environment")
{
    close_under(rank, size, BESIDE_CALLS, STAYS | WAITS);
}

PTEST_OWN(closed_while_it_computes, 2, "changes the environment")
{
    if (PTEST_TSAN && getenv("PINWHEEL_HPU") == NULL) {
        ptest_skip("ThreadSanitizer keeps signals from loops that make no call");
    }
    close_under(rank, size, BESIDE_LOOP, STAYS);
}

PTEST_OWN(closed_while_it_is_suspended, 2, "changes the environment")
{
    close_under(rank, size, BESIDE_YIELDS, STAYS);
}
