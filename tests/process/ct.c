/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: reading, setting, adding, waiting and polling. */
#include "port.h"

#include <pthread.h>

static ptl_ct_event_t value_of(ptl_handle_ct_t ct)
{
    ptl_ct_event_t value = {~(ptl_size_t)0, ~(ptl_size_t)0};
    OK(PtlCTGet(ct, &value));
    return value;
}

static void check_value(ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure)
{
    ptl_ct_event_t value = value_of(ct);
    CHECK_EQ(value.success, success);
    CHECK_EQ(value.failure, failure);
}

PTEST_KINDS(set_and_inc, 1)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p), other = port_ct(&p);
    check_value(ct, 0, 0);
    OK(PtlCTInc(ct, (ptl_ct_event_t){5, 0}));
    check_value(ct, 5, 0);
    OK(PtlCTInc(ct, (ptl_ct_event_t){0, 2}));
    check_value(ct, 5, 2);
    OK(PtlCTInc(ct, (ptl_ct_event_t){0, 0}));
    check_value(ct, 5, 2);
    INVALID(PtlCTInc(ct, (ptl_ct_event_t){1, 1}));
    check_value(ct, 5, 2);
    OK(PtlCTSet(ct, (ptl_ct_event_t){(ptl_size_t)1 << 40, 7}));
    check_value(ct, (ptl_size_t)1 << 40, 7);
    OK(PtlCTInc(ct, (ptl_ct_event_t){1, 0}));
    check_value(ct, ((ptl_size_t)1 << 40) + 1, 7);
    OK(PtlCTSet(ct, (ptl_ct_event_t){0, 0}));
    check_value(ct, 0, 0);
    check_value(other, 0, 0);
    OK(PtlCTFree(ct));
    INVALID(PtlCTFree(ct));
    check_value(other, 0, 0);
    ct = port_ct(&p); /* a new one begins at 0, whatever was there before */
    check_value(ct, 0, 0);
    port_close(&p);
}

/* PtlCTWait returns when success has reached the test, or on any failure. */
PTEST(wait_returns, 1)
{
    struct port p;
    ptl_ct_event_t value;
    port_open(&p, KIND_MP, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    OK(PtlCTWait(ct, 0, &value));
    CHECK_EQ(value.success, 0);
    OK(PtlCTInc(ct, (ptl_ct_event_t){5, 0}));
    for (ptl_size_t test = 0; test <= 5; test++) {
        value.success = 99;
        OK(PtlCTWait(ct, test, &value));
        CHECK_EQ(value.success, 5);
        CHECK_EQ(value.failure, 0);
    }
    OK(PtlCTInc(ct, (ptl_ct_event_t){0, 1}));
    OK(PtlCTWait(ct, 6, &value));
    CHECK_EQ(value.success, 5);
    CHECK_EQ(value.failure, 1);
    OK(PtlCTWait(ct, PTL_SIZE_MAX, &value));
    CHECK_EQ(value.failure, 1);
    port_close(&p);
}

PTEST(poll_returns, 1)
{
    enum { N = 5 };
    struct port p;
    ptl_handle_ct_t ct[N];
    ptl_size_t test[N];
    ptl_ct_event_t value;
    unsigned which = 77;
    port_open(&p, KIND_MP, rank, size);
    for (int i = 0; i < N; i++) {
        ct[i] = port_ct(&p);
        test[i] = (ptl_size_t)i + 1;
    }
    CHECK_CODE(PtlCTPoll(ct, test, N, 0, &value, &which), PTL_CT_NONE_REACHED);
    uint64_t start = ptest_now_ms();
    CHECK_CODE(PtlCTPoll(ct, test, N, 50, &value, &which), PTL_CT_NONE_REACHED);
    CHECK(ptest_now_ms() - start >= 49);
    for (unsigned i = 0; i < N; i++) {
        OK(PtlCTInc(ct[i], (ptl_ct_event_t){i, 0})); /* one too little */
        CHECK_CODE(PtlCTPoll(ct, test, N, 0, &value, &which), PTL_CT_NONE_REACHED);
        OK(PtlCTInc(ct[i], (ptl_ct_event_t){1, 0}));
        OK(PtlCTPoll(ct, test, N, i % 2 ? 0 : PTL_TIME_FOREVER, &value, &which));
        CHECK_EQ(which, i);
        CHECK_EQ(value.success, i + 1);
        OK(PtlCTSet(ct[i], (ptl_ct_event_t){0, 0}));
    }
    OK(PtlCTInc(ct[3], (ptl_ct_event_t){0, 1}));
    OK(PtlCTPoll(ct, test, N, PTL_TIME_FOREVER, &value, &which));
    CHECK_EQ(which, 3);
    CHECK_EQ(value.success, 0);
    CHECK_EQ(value.failure, 1);
    CHECK_CODE(PtlCTPoll(ct, test, 3, 0, &value, &which), PTL_CT_NONE_REACHED);

    /* a counter may stand in the list twice, with different tests */
    ptl_handle_ct_t twice[2] = {ct[0], ct[0]};
    ptl_size_t tests[2] = {10, 1};
    OK(PtlCTInc(ct[0], (ptl_ct_event_t){1, 0}));
    OK(PtlCTPoll(twice, tests, 2, PTL_TIME_FOREVER, &value, &which));
    CHECK_EQ(which, 1);
    port_close(&p);
}

/* Waits that end because another process sends something. */
PTEST_KINDS(wait_for_messages, 2)
{
    struct port p;
    uint64_t word = 3;
    ptl_ct_event_t value;
    unsigned which;
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t ct[2] = {port_ct(&p), port_ct(&p)};
    ptl_size_t test[2] = {1, 21};
    ptl_handle_md_t md = port_quiet_md(&p, &word, 8, 0, PTL_CT_NONE);
    if (rank == 1) {
        ptl_me_t me = port_entry(&p, &word, 8,
                                 PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE |
                                     PTL_ME_EVENT_LINK_DISABLE);
        me.ct_handle = ct[1];
        port_append(&p, &me, NULL);
    }
    BARRIER();
    if (rank == 0) {
        for (int i = 1; i <= 25; i++) {
            OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
            if (i % 10 == 0) {
                ptest_sleep_ms(10); /* long enough for the other to fall asleep */
            }
        }
    } else {
        OK(PtlCTWait(ct[1], 10, &value));
        CHECK(value.success >= 10);
        OK(PtlCTPoll(ct, test, 2, PTL_TIME_FOREVER, &value, &which));
        CHECK_EQ(which, 1);
        CHECK(value.success >= 21);
        OK(PtlCTWait(ct[1], 25, &value));
        CHECK_EQ(value.success, 25);
    }
    port_close(&p);
}

struct waiter {
    ptl_handle_ct_t ct;
    ptl_size_t test;
    ptl_ct_event_t value;
    pthread_t thread;
};

static void *wait_ct(void *arg)
{
    struct waiter *w = arg;
    OK(PtlCTWait(w->ct, w->test, &w->value));
    return NULL;
}

/* Threads that wait for one counter, each for its own value, and the main
 * thread that counts. */
PTEST(several_waiters, 1)
{
    enum { N = 6 };
    struct port p;
    struct waiter w[N];
    port_open(&p, KIND_MP, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    for (int i = 0; i < N; i++) {
        w[i].ct = ct;
        w[i].test = (ptl_size_t)(N - i);
        CHECK_EQ(pthread_create(&w[i].thread, NULL, wait_ct, &w[i]), 0);
    }
    ptest_sleep_ms(20);
    for (int i = N - 1; i >= 0; i--) {
        OK(PtlCTInc(ct, (ptl_ct_event_t){1, 0}));
        CHECK_EQ(pthread_join(w[i].thread, NULL), 0);
        CHECK(w[i].value.success >= w[i].test);
    }
    for (int i = 0; i < N; i++) { /* a failure frees all of them */
        w[i].test = 1000;
        CHECK_EQ(pthread_create(&w[i].thread, NULL, wait_ct, &w[i]), 0);
    }
    ptest_sleep_ms(20);
    OK(PtlCTInc(ct, (ptl_ct_event_t){0, 1}));
    for (int i = 0; i < N; i++) {
        CHECK_EQ(pthread_join(w[i].thread, NULL), 0);
        CHECK_EQ(w[i].value.failure, 1);
    }
    for (int i = 0; i < N; i++) { /* and so does setting the counter */
        OK(PtlCTSet(ct, (ptl_ct_event_t){0, 0}));
        CHECK_EQ(pthread_create(&w[i].thread, NULL, wait_ct, &w[i]), 0);
        ptest_sleep_ms(2);
        OK(PtlCTSet(ct, (ptl_ct_event_t){1000, 0}));
        CHECK_EQ(pthread_join(w[i].thread, NULL), 0);
        CHECK_EQ(w[i].value.success, 1000);
    }
    port_close(&p);
}

static void *add_many(void *arg)
{
    for (int i = 0; i < 10000; i++) {
        OK(PtlCTInc(*(ptl_handle_ct_t *)arg, (ptl_ct_event_t){i % 2 == 0, i % 2 != 0}));
    }
    return NULL;
}

PTEST(increments_add_up, 1)
{
    struct port p;
    pthread_t thread[4];
    port_open(&p, KIND_MP, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pthread_create(&thread[i], NULL, add_many, &ct), 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    }
    check_value(ct, 20000, 20000);
    port_close(&p);
}

/* A counter may serve several MDs and an entry at once, and be freed while
 * messages that would count are under way. */
PTEST_KINDS(shared_counter, 2)
{
    struct port p;
    uint64_t word = 3;
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_handle_md_t a = port_quiet_md(&p, &word, 8, PTL_MD_EVENT_CT_SEND, ct);
    ptl_handle_md_t b =
        port_quiet_md(&p, &word, 8, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, ct);
    ptl_me_t me = port_entry(&p, &word, 8,
                             PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM |
                                 PTL_ME_EVENT_LINK_DISABLE);
    me.ct_handle = ct;
    port_append(&p, &me, NULL);
    BARRIER();
    OK(PtlPut(a, 0, 8, PTL_NO_ACK_REQ, p.id[1 - rank], p.pt, 0, 0, NULL, 0));
    OK(PtlPut(b, 0, 8, PTL_CT_ACK_REQ, p.id[1 - rank], p.pt, 0, 0, NULL, 0));
    OK(PtlGet(b, 0, 8, p.id[1 - rank], p.pt, 0, 0, NULL));
    port_wait_ct(ct, 6); /* SEND, ACK, REPLY, PUT, PUT, GET */
    BARRIER();
    for (int i = 0; i < 50; i++) {
        OK(PtlPut(b, 0, 8, PTL_CT_ACK_REQ, p.id[1 - rank], p.pt, 0, 0, NULL, 0));
    }
    OK(PtlCTFree(ct));
    ct = port_ct(&p);
    BARRIER();
    ptest_sleep_ms(10);
    check_value(ct, 0, 0); /* nothing counts into its successor */
    port_close(&p);
}
