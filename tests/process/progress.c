/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress: messages are served while the target's program makes no call of
 * Portals, and a process without messages does nothing at all. */
#include "port.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DONE = 0, BYTES = 100000 };

static unsigned char memory[BYTES], mine[BYTES];

/* Computes until `end`; the result keeps the compiler from leaving it out. */
static unsigned compute_until(uint64_t end)
{
    volatile unsigned x = 1;
    do {
        for (int i = 0; i < 100000; i++) {
            x = x * 1664525u + 1013904223u;
        }
    } while (ptest_now_ms() < end);
    return x;
}

/* Rank 1 computes for a second. Meanwhile rank 0's puts and gets complete, one
 * after the other. */
PTEST(computing_target, 2)
{
    enum { N = 5 };
    struct port p;
    port_open(&p, KIND_MP, rank, size);
    ptest_fill(memory, BYTES, 1);
    if (rank == 1) {
        port_target(&p, memory, BYTES, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_handle_md_t md =
            port_quiet_md(&p, mine, BYTES, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, ct);
        for (int i = 0; i < N; i++) {
            size_t length = i % 2 ? BYTES : 64;
            OK(PtlGet(md, 0, length, p.id[1], p.pt, 0, 0, NULL));
            port_wait_ct(ct, (uint64_t)i * 2 + 1);
            CHECK_FILL(mine, length, 1);
            OK(PtlPut(md, 0, length, PTL_CT_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
            port_wait_ct(ct, (uint64_t)i * 2 + 2);
        }
        ptest_show(DONE, 1);
    } else {
        compute_until(ptest_now_ms() + 1000u * (unsigned)ptest_slow());
        CHECK(ptest_look(0, DONE) == 1); /* before this process called anything */
        for (int i = 0; i < N; i++) {
            EVENT(p.eq, PTL_EVENT_GET);
            EVENT(p.eq, PTL_EVENT_PUT);
        }
    }
    port_close(&p);
}

/* The same for an initiator that computes: what it has sent leaves, and its
 * replies arrive, without another call. */
PTEST(computing_initiator, 2)
{
    struct port p;
    if (PTEST_TSAN) {
        ptest_skip("it looks at memory that the NIC is writing");
    }
    port_open(&p, KIND_NL, rank, size);
    ptest_fill(memory, BYTES, 2);
    if (rank == 1) {
        port_target(&p, memory, BYTES, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_md(&p, mine, BYTES, 0, PTL_CT_NONE);
        volatile unsigned char *last = &mine[BYTES - 1];
        unsigned char want = memory[BYTES - 1];
        OK(PtlGet(md, 0, BYTES, p.id[1], p.pt, 0, 0, NULL));
        uint64_t end = ptest_now_ms() + 1000u * (unsigned)ptest_slow();
        while (*last != want && ptest_now_ms() < end) {
            compute_until(0);
        }
        CHECK_EQ(*last, want);
        EVENT(p.mdeq, PTL_EVENT_REPLY);
        CHECK_FILL(mine, BYTES, 2);
    }
    port_close(&p);
}

/* A process computes and another one waits in PtlCTWait for a third. */
PTEST(computing_bystander, 3)
{
    struct port p;
    port_open(&p, KIND_MP, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_me_t me = port_entry(&p, memory, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
    me.ct_handle = ct;
    port_append(&p, &me, NULL);
    BARRIER();
    if (rank == 2) {
        compute_until(ptest_now_ms() + 300);
    } else {
        ptl_handle_md_t md = port_quiet_md(&p, mine, 8, 0, PTL_CT_NONE);
        for (uint64_t i = 1; i <= 200; i++) { /* a ping-pong */
            if (rank == 0) {
                OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
            }
            port_wait_ct(ct, i);
            if (rank == 1) {
                OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0));
            }
        }
    }
    port_close(&p);
}

static long switches(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

static void *wait_for_one(void *arg)
{
    ptl_ct_event_t value;
    OK(PtlCTWait(*(ptl_handle_ct_t *)arg, 1, &value));
    return NULL;
}

/* Whoever has no messages sleeps: in half a second no thread of the library
 * wakes up, neither its own nor one that waits in a call. A thread that looks
 * once a millisecond would show as hundreds of switches. */
PTEST(idle_is_idle, 2)
{
    struct port p;
    pthread_t thread;
    port_open(&p, KIND_ML, rank, size);
    if (rank == 1) {
        port_target(&p, memory, 8, PTL_ME_OP_PUT, NULL);
    }
    ptl_handle_ct_t ct = port_ct(&p), other = port_ct(&p);
    ptl_handle_md_t md = port_quiet_md(&p, mine, 8, PTL_MD_EVENT_CT_ACK, other);
    BARRIER();
    if (rank == 0) { /* they know each other, and have been busy */
        OK(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        port_wait_ct(other, 1);
    } else {
        EVENT(p.eq, PTL_EVENT_PUT);
    }
    BARRIER();
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            CHECK_EQ(pthread_create(&thread, NULL, wait_for_one, &ct), 0);
        }
        ptest_sleep_ms(100);
        long before = switches();
        ptest_sleep_ms(500);
        long after = switches();
        CHECK(after - before <= 20);
    }
    OK(PtlCTInc(ct, (ptl_ct_event_t){1, 0}));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    port_close(&p);
}

static unsigned yields; /* all calls of sched_yield() come here */

__attribute__((visibility("default"))) int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

/* A poll that takes a message which leaves no event has not been in vain: the program does not
 * give up the core for it, however many there are. */
PTEST(messages_without_events, 2)
{
    enum { N = 300, SETTLED = 2, WORD = 8 };
    const char *fabric = getenv("PINWHEEL_FABRIC");
    if (fabric != NULL && strcmp(fabric, "udp") == 0) {
        return; /* what was sent there need not have arrived */
    }
    setenv("PINWHEEL_LEASE_US", "1000000", 1); /* nobody else is to take the messages */
    struct port p;
    port_open(&p, KIND_MP, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_handle_md_t md = port_quiet_md(&p, mine, WORD, PTL_MD_EVENT_CT_ACK, ct);
    if (rank == 1) {
        port_target(&p, memory, WORD, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    BARRIER();
    if (rank == 0) {
        OK(PtlPut(md, 0, WORD, PTL_CT_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        port_wait_ct(ct, 1);
    }
    for (unsigned i = 0; i < N; i++) {
        mine[0] = (unsigned char)i;
        if (rank == 0) {
            OK(PtlPut(md, 0, WORD, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        }
        BARRIER();
        ptl_event_t event;
        unsigned before = yields;
        if (rank == 1) {
            CHECK_EQ(PtlEQGet(p.eq, &event), PTL_EQ_EMPTY);
            CHECK_EQ(memory[0], (unsigned char)i);
            CHECK(i < SETTLED || yields == before);
        }
        BARRIER();
    }
    port_close(&p);
}
