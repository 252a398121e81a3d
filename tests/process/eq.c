/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues: order, overflow, polling several, waiting threads. */
#include "port.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static uint64_t word;

/* Opens a port with an entry for puts, and returns an MD without events. */
static ptl_handle_md_t open_self(struct port *p, unsigned kind, int rank, int size)
{
    port_open(p, kind, rank, size);
    port_target(p, &word, 8, PTL_ME_OP_PUT, NULL);
    return port_quiet_md(p, &word, 8, PTL_MD_VOLATILE, PTL_CT_NONE);
}

static void put_self(struct port *p, ptl_handle_md_t md, ptl_pt_index_t pt, ptl_hdr_data_t hdr)
{
    OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p->id[p->rank], pt, 0, 0, NULL, hdr));
}

PTEST(alloc_and_free, 1)
{
    struct port p;
    ptl_event_t event;
    ptl_handle_eq_t eq;
    port_open(&p, KIND_MP, rank, size);
    INVALID(PtlEQAlloc(p.ni, 0, &eq));
    for (int i = 0; i < 100; i++) {
        OK(PtlEQAlloc(p.ni, (ptl_size_t)i * 10 + 1, &eq));
        CHECK_CODE(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
        OK(PtlEQFree(eq));
        INVALID(PtlEQGet(eq, &event));
        INVALID(PtlEQFree(eq));
    }
    CHECK_CODE(PtlEQAlloc(p.ni, PTL_SIZE_MAX, &eq), PTL_NO_SPACE);
    CHECK_CODE(PtlEQAlloc(p.ni, (ptl_size_t)1 << 60, &eq), PTL_NO_SPACE);
    OK(PtlEQAlloc(p.ni, 65536, &eq));
    port_close(&p);
}

/* Events come out in the order in which they went in, round the ring often. */
PTEST_KINDS(events_in_order, 1)
{
    struct port p;
    uint64_t seed = 5;
    ptl_hdr_data_t in = 0, out = 0;
    ptl_handle_md_t md = open_self(&p, kind, rank, size);
    for (int round = 0; round < 200; round++) {
        for (uint64_t n = splitmix(&seed) % 60; n > 0; n--) {
            put_self(&p, md, p.pt, in++);
        }
        while (out < in && splitmix(&seed) % 60 != 0) {
            CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).hdr_data, out);
            out++;
        }
    }
    while (out < in) {
        CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).hdr_data, out);
        out++;
    }
    NO_EVENT(p.eq);
    port_close(&p);
}

/* As many events as were asked for fit, always. */
PTEST(full_is_not_overflow, 1)
{
    struct port p;
    ptl_handle_md_t md = open_self(&p, KIND_NP, rank, size);
    for (ptl_size_t count = 1; count < 70; count += 17) {
        ptl_handle_eq_t eq;
        ptl_pt_index_t pt;
        ptl_handle_me_t handle;
        OK(PtlEQAlloc(p.ni, count, &eq));
        OK(PtlPTAlloc(p.ni, 0, eq, PTL_PT_ANY, &pt));
        ptl_me_t me = port_entry(&p, &word, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        OK(port_append_code(&p, pt, &me, NULL, &handle));
        for (int round = 0; round < 3; round++) {
            for (ptl_size_t i = 0; i < count; i++) {
                put_self(&p, md, pt, i);
            }
            for (ptl_size_t i = 0; i < count; i++) {
                CHECK_EQ(EVENT(eq, PTL_EVENT_PUT).hdr_data, i);
            }
            NO_EVENT(eq);
        }
        port_unlink(&p, handle);
        OK(PtlPTFree(p.ni, pt));
        OK(PtlEQFree(eq));
    }
    port_close(&p);
}

/* Takes one event with the n-th of the three calls. */
static int take(ptl_handle_eq_t eq, int n, ptl_event_t *event)
{
    unsigned which;
    switch (n % 3) {
    case 0:
        return PtlEQGet(eq, event);
    case 1:
        return PtlEQWait(eq, event);
    default:
        return PtlEQPoll(&eq, 1, 1000, event, &which);
    }
}

/* Too many events: the first call says so and delivers one, the newest stay. */
PTEST(overflow, 1)
{
    enum { COUNT = 8, PUTS = 5000 };
    struct port p;
    ptl_pt_index_t pt;
    ptl_handle_eq_t eq;
    ptl_handle_me_t handle;
    ptl_event_t event;
    ptl_handle_md_t md = open_self(&p, KIND_NP, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    OK(PtlEQAlloc(p.ni, COUNT, &eq));
    OK(PtlPTAlloc(p.ni, 0, eq, PTL_PT_ANY, &pt));
    ptl_me_t me =
        port_entry(&p, &word, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM);
    me.ct_handle = ct;
    OK(port_append_code(&p, pt, &me, NULL, &handle));
    for (int round = 0; round < 3; round++) {
        for (ptl_hdr_data_t i = 0; i < PUTS; i++) {
            put_self(&p, md, pt, i);
        }
        port_wait_ct(ct, (uint64_t)PUTS * (unsigned)(round + 1)); /* no message was lost */
        CHECK_CODE(take(eq, round, &event), PTL_EQ_DROPPED);
        CHECK_EQ(event.type, PTL_EVENT_PUT);
        ptl_hdr_data_t last = event.hdr_data;
        int n = 1;
        int code;
        for (; (code = PtlEQGet(eq, &event)) == PTL_OK; n++) {
            CHECK_EQ(event.hdr_data, last + 1);
            last = event.hdr_data;
        }
        CHECK_CODE(code, PTL_EQ_EMPTY);
        CHECK_EQ(last, PUTS - 1);
        CHECK(n >= COUNT && n < PUTS);
        put_self(&p, md, pt, 1); /* and all is well again */
        CHECK_EQ(EVENT(eq, PTL_EVENT_PUT).hdr_data, 1);
        port_wait_ct(ct, (uint64_t)PUTS * (unsigned)(round + 1) + 1);
        OK(PtlCTSet(ct, (ptl_ct_event_t){(ptl_size_t)PUTS * (unsigned)(round + 1), 0}));
    }
    port_close(&p);
}

PTEST_KINDS(poll_several, 1)
{
    enum { N = 5 };
    struct port p;
    ptl_handle_eq_t eq[N];
    ptl_pt_index_t pt[N];
    ptl_handle_me_t handle;
    ptl_event_t event;
    unsigned which = 99;
    ptl_handle_md_t md = open_self(&p, kind, rank, size);
    for (int i = 0; i < N; i++) {
        OK(PtlEQAlloc(p.ni, 64, &eq[i]));
        OK(PtlPTAlloc(p.ni, 0, eq[i], PTL_PT_ANY, &pt[i]));
        ptl_me_t me = port_entry(&p, &word, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        OK(port_append_code(&p, pt[i], &me, NULL, &handle));
    }
    CHECK_CODE(PtlEQPoll(eq, N, 0, &event, &which), PTL_EQ_EMPTY);
    uint64_t start = ptest_now_ms();
    CHECK_CODE(PtlEQPoll(eq, N, 50, &event, &which), PTL_EQ_EMPTY);
    CHECK(ptest_now_ms() - start >= 49);
    for (unsigned i = 0; i < N; i++) {
        put_self(&p, md, pt[i], i);
        OK(PtlEQPoll(eq, N, i % 2 ? 5000 : PTL_TIME_FOREVER, &event, &which));
        CHECK_EQ(which, i);
        CHECK_EQ(event.hdr_data, i);
        CHECK_EQ(event.pt_index, pt[i]);
    }
    int count[N] = {0};
    for (int i = 0; i < 10 * N; i++) {
        put_self(&p, md, pt[i % N], (ptl_hdr_data_t)(i / N));
    }
    for (int i = 0; i < 10 * N; i++) { /* in order within each queue, none starves */
        OK(PtlEQPoll(eq, N, 5000, &event, &which));
        CHECK(which < N);
        CHECK_EQ(event.hdr_data, count[which]);
        count[which]++;
    }
    CHECK_CODE(PtlEQPoll(eq, N, 0, &event, &which), PTL_EQ_EMPTY);
    port_close(&p);
}

/* Looks without waiting move messages, however many the queues: nobody else does while they go on.
 */
PTEST_KINDS(poll_without_waiting, 2)
{
    enum { MOST = 12, ROUNDS = 20 };
    struct port p;
    ptl_handle_eq_t eq[MOST];
    ptl_event_t event;
    unsigned which = 99;
    ptl_handle_md_t md = open_self(&p, kind, rank, size);
    eq[0] = p.eq;
    for (int i = 1; i < MOST; i++) {
        OK(PtlEQAlloc(p.ni, 8, &eq[i]));
    }
    BARRIER();
    for (unsigned n = 1; n <= MOST; n++) {
        for (int i = 0; i < ROUNDS; i++) {
            if (rank == 0) {
                OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, (ptl_hdr_data_t)i));
                continue;
            }
            int code;
            uint64_t start = ptest_now_ms();
            while ((code = PtlEQPoll(eq, n, 0, &event, &which)) == PTL_EQ_EMPTY) {
                CHECK(ptest_now_ms() - start < 10000u * (unsigned)ptest_slow());
            }
            OK(code);
            CHECK_EQ(which, 0);
            CHECK_EQ(event.hdr_data, i);
        }
        if (rank == 1) {
            CHECK_CODE(PtlEQPoll(eq, n, 0, &event, &which), PTL_EQ_EMPTY);
            CHECK_EQ(which, 0);
        }
        BARRIER();
    }
    port_close(&p);
}

/* A queue that was polled a moment ago is not taken for one that is still there. */
PTEST(poll_freed, 1)
{
    struct port p;
    ptl_event_t event;
    unsigned which;
    ptl_handle_md_t md = open_self(&p, KIND_MP, rank, size);
    for (int i = 0; i < 200; i++) {
        ptl_handle_eq_t eqs[2] = {p.eq, PTL_EQ_NONE};
        OK(PtlEQAlloc(p.ni, 8, &eqs[1]));
        for (int k = 0; k < 3; k++) {
            CHECK_CODE(PtlEQPoll(eqs, 2, 0, &event, &which), PTL_EQ_EMPTY);
        }
        put_self(&p, md, p.pt, 7);
        OK(PtlEQPoll(eqs, 2, 0, &event, &which));
        CHECK_EQ(event.hdr_data, 7);
        CHECK_CODE(PtlEQPoll(eqs, 2, 0, &event, &which), PTL_EQ_EMPTY);
        OK(PtlEQFree(eqs[1]));
        for (int k = 0; k < 3; k++) {
            INVALID(PtlEQPoll(eqs, 2, 0, &event, &which));
        }
        CHECK_CODE(PtlEQPoll(eqs, 1, 0, &event, &which), PTL_EQ_EMPTY);
    }
    port_close(&p);
}

/* Waits that end when another process sends, after a while. */
PTEST_KINDS(wait_for_messages, 2)
{
    struct port p;
    ptl_event_t event;
    unsigned which;
    ptl_handle_md_t md = open_self(&p, kind, rank, size);
    BARRIER();
    for (int i = 0; i < 30; i++) {
        int other = 1 - rank;
        if (rank == i % 2) {
            ptest_sleep_ms(i % 5 * 3);
            OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[other], p.pt, 0, 0, NULL, (ptl_hdr_data_t)i));
            continue;
        }
        if (i % 3 == 0) {
            OK(PtlEQWait(p.eq, &event));
        } else {
            ptl_handle_eq_t eqs[2] = {p.mdeq, p.eq};
            OK(PtlEQPoll(eqs, 2, i % 3 == 1 ? 10000 : PTL_TIME_FOREVER, &event, &which));
            CHECK_EQ(which, 1);
        }
        CHECK_EQ(event.type, PTL_EVENT_PUT);
        CHECK_EQ(event.hdr_data, i);
    }
    port_close(&p);
}

enum { THREADS = 4, MESSAGES = 40, LAST = 1 << 20 };

struct taken {
    struct port *port;
    atomic_int count;
    atomic_int seen[MESSAGES];
};

static void *wait_eq(void *arg)
{
    struct taken *t = arg;
    for (;;) {
        ptl_event_t event;
        OK(PtlEQWait(t->port->eq, &event));
        if (event.hdr_data == LAST) {
            return NULL;
        }
        CHECK(event.hdr_data < MESSAGES);
        atomic_fetch_add(&t->seen[event.hdr_data], 1);
        atomic_fetch_add(&t->count, 1);
    }
}

/* Several threads wait: every event goes to exactly one of them. */
PTEST(one_thread_wakes, 1)
{
    struct port p;
    static struct taken t;
    pthread_t thread[THREADS];
    ptl_handle_md_t md = open_self(&p, KIND_MP, rank, size);
    t.port = &p;
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&thread[i], NULL, wait_eq, &t), 0);
    }
    for (int i = 0; i < MESSAGES; i++) {
        if (i % 10 == 0) {
            while (atomic_load(&t.count) != i) {
                CHECK(atomic_load(&t.count) < i);
                ptest_sleep_ms(1);
            }
            ptest_sleep_ms(10); /* let them fall asleep now and then */
            CHECK_EQ(atomic_load(&t.count), i);
        }
        put_self(&p, md, p.pt, (ptl_hdr_data_t)i);
    }
    for (int i = 0; i < THREADS; i++) {
        put_self(&p, md, p.pt, LAST);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    }
    for (int i = 0; i < MESSAGES; i++) {
        CHECK_EQ(atomic_load(&t.seen[i]), 1);
    }
    NO_EVENT(p.eq);
    port_close(&p);
}

/* Events for a queue that was freed go nowhere, and nothing else suffers. */
PTEST_KINDS(freed_queue, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = port_md(&p, &word, 8, 0, PTL_CT_NONE);
    if (rank == 1) {
        port_target(&p, &word, 8, PTL_ME_OP_PUT, NULL);
        OK(PtlEQFree(p.eq));
        OK(PtlEQAlloc(p.ni, 16, &p.eq));
    }
    BARRIER();
    if (rank == 0) {
        for (int i = 0; i < 50; i++) {
            OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
            EVENT(p.mdeq, PTL_EVENT_SEND);
            EVENT(p.mdeq, PTL_EVENT_ACK);
        }
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        OK(PtlEQFree(p.mdeq));
        OK(PtlEQAlloc(p.ni, 16, &p.mdeq));
    }
    BARRIER();
    NO_EVENT(p.eq);
    NO_EVENT(p.mdeq);
    port_close(&p);
}
