/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that are cancelled (pthread_cancel). No function is a cancellation point: one that
 * ended a thread in the middle of a call would leave the locks of its NIC taken. So a thread
 * whose cancellation is pending makes a call, comes back from it, and ends by its own wish;
 * where a call makes a system call that could end it, it does not come back.
 */
#include "port.h"

#include <errno.h>
#include <pthread.h>

enum { LARGE = 1 << 20, SMALL = 64, POLL_MS = 20, ROUNDS = 5 };

/* What a cancelled thread is to do, and whether it got to the end of it. */
struct errand {
    void (*body)(struct port *p);
    struct port *port;
    bool done;
};

static void *run(void *arg)
{
    struct errand *e = arg;
    pthread_cancel(pthread_self());
    e->body(e->port);
    e->done = true;
    pthread_testcancel();
    return NULL;
}

static void while_cancelled(void (*body)(struct port *p), struct port *p)
{
    struct errand e = {.body = body, .port = p};
    pthread_t thread;
    void *result;
    CHECK_EQ(pthread_create(&thread, NULL, run, &e), 0);
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK_EQ(result, PTHREAD_CANCELED);
    CHECK(e.done);
}

static unsigned char out[LARGE], in[LARGE];
static ptl_handle_md_t md;
static ptl_handle_ct_t ct;
static ptl_size_t counted;

static void open_ni(struct port *p)
{
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, p->kind, PTL_PID_ANY, NULL, &p->limits, &p->ni));
}

static void make_target(struct port *p)
{
    ptl_pt_index_t index;
    OK(PtlEQAlloc(p->ni, PORT_EVENTS, &p->eq));
    OK(PtlPTAlloc(p->ni, 0, p->eq, 0, &index));
    port_target(p, in, LARGE, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    ct = port_ct(p);
    md = port_quiet_md(p, out, LARGE, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, ct);
}

static void move(struct port *p, ptl_size_t length)
{
    ptl_ct_event_t v;
    ptl_process_t to = p->id[1 - p->rank];
    OK(PtlPut(md, 0, length, PTL_CT_ACK_REQ, to, 0, 0, 0, NULL, 0));
    OK(PtlCTWait(ct, ++counted, &v));
    OK(PtlGet(md, 0, length, to, 0, 0, 0, NULL));
    OK(PtlCTWait(ct, ++counted, &v));
    CHECK_EQ(v.success, counted);
}

static void move_both(struct port *p)
{
    move(p, SMALL);
    move(p, LARGE);
}

/* Takes the four events of its peer's move_both(). */
static void take(struct port *p)
{
    for (int i = 0; i < 4; i++) {
        ptl_event_t event;
        OK(PtlEQWait(p->eq, &event));
        CHECK_EQ(event.type, i % 2 == 0 ? PTL_EVENT_PUT : PTL_EVENT_GET);
    }
}

static void poll_in_vain(struct port *p)
{
    ptl_event_t event;
    ptl_ct_event_t v;
    unsigned which;
    ptl_size_t test = counted + 1;
    CHECK_CODE(PtlEQGet(p->eq, &event), PTL_EQ_EMPTY);
    CHECK_CODE(PtlEQPoll(&p->eq, 1, POLL_MS, &event, &which), PTL_EQ_EMPTY);
    CHECK_CODE(PtlCTPoll(&ct, &test, 1, POLL_MS, &v, &which), PTL_CT_NONE_REACHED);
}

static void close_ni(struct port *p)
{
    OK(PtlNIFini(p->ni));
    PtlFini();
}

/* The whole life of an interface, in threads that are cancelled: the peer sleeps in a wait
 * when messages come, so that it has to be rung for. */
PTEST_KINDS(cancelled, 2)
{
    struct port p = {.rank = rank, .size = size, .kind = kind, .pt = 0};
    while_cancelled(open_ni, &p);
    port_ids(&p);
    while_cancelled(make_target, &p);
    BARRIER();
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2 == rank) {
            ptest_sleep_ms(i == 0 ? 0 : POLL_MS);
            while_cancelled(move_both, &p);
        } else {
            while_cancelled(take, &p);
        }
        BARRIER();
    }
    while_cancelled(poll_in_vain, &p);
    BARRIER();
    while_cancelled(close_ni, &p);
}

static void *wait_for_ever(void *arg)
{
    struct port *p = arg;
    ptl_event_t event;
    CHECK_CODE(PtlEQWait(p->eq, &event), PTL_ABORTED);
    pthread_testcancel();
    return NULL;
}

/* One that waits goes on to wait, and the interface works. */
PTEST_KINDS(cancelled_in_wait, 2)
{
    struct port p = {.rank = rank, .size = size, .kind = kind, .pt = 0};
    pthread_t thread;
    void *result;
    open_ni(&p);
    port_ids(&p);
    make_target(&p);
    BARRIER();
    ptl_handle_eq_t eq = p.eq;
    OK(PtlEQAlloc(p.ni, PORT_EVENTS, &p.eq));
    CHECK_EQ(pthread_create(&thread, NULL, wait_for_ever, &p), 0);
    ptest_sleep_ms(POLL_MS);
    CHECK_EQ(pthread_cancel(thread), 0);
    struct port q = p;
    q.eq = eq;
    if (rank == 0) {
        move_both(&q);
    } else {
        take(&q);
    }
    while (pthread_tryjoin_np(thread, &result) == EBUSY) {
        PtlAbort(); /* it may not have been in its wait yet */
        ptest_sleep_ms(1);
    }
    CHECK_EQ(result, PTHREAD_CANCELED);
    BARRIER();
    close_ni(&p);
}
