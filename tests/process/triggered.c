/* SPDX-License-Identifier: BSD-3-Clause */
/* Triggered puts and counter increments: when they fire, in which order, with
 * which data, and what becomes of those that never do. */
#include "port.h"

#include <string.h>

static const ptl_ct_event_t one = {1, 0}, zero = {0, 0};
static unsigned char from[200000], to[200000];

static void check_success(ptl_handle_ct_t ct, ptl_size_t success)
{
    ptl_ct_event_t value;
    OK(PtlCTGet(ct, &value));
    CHECK_EQ(value.success, success);
}

/* A put of eight bytes to oneself, seen as a PUT event with `hdr`. */
static void put_when(struct port *p, ptl_handle_md_t md, ptl_hdr_data_t hdr, ptl_handle_ct_t ct,
                     ptl_size_t threshold)
{
    OK(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, p->id[p->rank], p->pt, 0, 0, NULL, hdr, ct,
                       threshold));
}

static ptl_handle_md_t open_self(struct port *p, unsigned kind, int rank, int size)
{
    port_open(p, kind, rank, size);
    port_target(p, to, sizeof(to), PTL_ME_OP_PUT, to);
    return port_quiet_md(p, from, sizeof(from), 0, PTL_CT_NONE);
}

PTEST_KINDS(fires_at_threshold, 1)
{
    struct port p;
    ptl_handle_md_t md = open_self(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p), target = port_ct(&p);
    for (ptl_hdr_data_t i = 5; i >= 1; i--) { /* later thresholds are set up first */
        put_when(&p, md, i, ct, i);
        OK(PtlTriggeredCTInc(target, (ptl_ct_event_t){10, 0}, ct, i));
    }
    NO_EVENT(p.eq);
    for (ptl_hdr_data_t i = 1; i <= 5; i++) {
        /* failures count towards a threshold like successes */
        OK(PtlCTInc(ct, i == 2 ? (ptl_ct_event_t){0, 1} : one));
        CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).hdr_data, i);
        NO_EVENT(p.eq);
        check_success(target, i * 10);
    }
    OK(PtlCTInc(ct, one)); /* nothing fires twice */
    OK(PtlCTSet(ct, zero));
    OK(PtlCTSet(ct, (ptl_ct_event_t){100, 0}));
    NO_EVENT(p.eq);
    check_success(target, 50);
    port_close(&p);
}

/* One step of the counter may pass many thresholds. */
PTEST_KINDS(one_step_passes_many, 1)
{
    enum { N = 20 };
    struct port p;
    ptl_handle_md_t md = open_self(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p), target = port_ct(&p);
    for (int how = 0; how < 2; how++) {
        int seen[N] = {0};
        for (ptl_hdr_data_t i = 0; i < N; i++) {
            put_when(&p, md, i, ct, i * 3 + 1);
            OK(PtlTriggeredCTInc(target, one, ct, i * 3 + 1));
        }
        ptl_ct_event_t step = {N * 3, 0};
        OK(how == 0 ? PtlCTInc(ct, step) : PtlCTSet(ct, step));
        for (int i = 0; i < N; i++) {
            ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
            CHECK(event.hdr_data < N);
            CHECK_EQ(seen[event.hdr_data]++, 0);
        }
        check_success(target, (ptl_size_t)N * (unsigned)(how + 1));
        OK(PtlCTSet(ct, zero));
    }
    port_close(&p);
}

PTEST_KINDS(already_satisfied, 1)
{
    struct port p;
    ptl_handle_md_t md = open_self(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p), target = port_ct(&p);
    OK(PtlCTSet(ct, (ptl_ct_event_t){3, 2}));
    for (ptl_size_t threshold = 0; threshold <= 5; threshold++) {
        put_when(&p, md, threshold, ct, threshold);
        CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).hdr_data, threshold);
        OK(PtlTriggeredCTInc(target, one, ct, threshold));
        check_success(target, threshold + 1);
    }
    put_when(&p, md, 6, ct, 6);
    NO_EVENT(p.eq);
    port_close(&p);
}

/* Operations of one counter with one threshold fire in the order of the calls. */
PTEST_KINDS(same_threshold_keeps_order, 1)
{
    enum { N = 300 };
    struct port p;
    ptl_handle_md_t md = open_self(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    for (ptl_hdr_data_t i = 0; i < N; i++) {
        put_when(&p, md, 1000 + i, ct, 2);
        put_when(&p, md, i, ct, 1);
    }
    OK(PtlCTInc(ct, one));
    for (ptl_hdr_data_t i = 0; i < N; i++) {
        CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).hdr_data, i);
    }
    NO_EVENT(p.eq);
    OK(PtlCTInc(ct, one));
    for (ptl_hdr_data_t i = 0; i < N; i++) {
        CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).hdr_data, 1000 + i);
    }
    port_close(&p);
}

/* A put reads its buffer when it fires. */
PTEST_KINDS(data_of_the_moment, 2)
{
    static const size_t lengths[] = {1, 64, 1000, 5000, 200000};
    struct port p;
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        port_target(&p, to, sizeof(to), PTL_ME_OP_PUT, NULL);
    }
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_handle_md_t md = port_md(&p, from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    BARRIER();
    for (unsigned i = 0; i < 5; i++) {
        if (rank == 0) {
            memset(from, 0, sizeof(from));
            OK(PtlTriggeredPut(md, 0, lengths[i], PTL_ACK_REQ, p.id[1], p.pt, 0, 0, &p, i, ct,
                               i + 1));
            ptest_fill(from, lengths[i], i + 1);
            OK(PtlCTInc(ct, one));
            ptl_event_t event = EVENT(p.mdeq, PTL_EVENT_ACK);
            CHECK_EQ(event.mlength, lengths[i]);
            CHECK_EQ(event.user_ptr, &p);
        } else {
            ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
            CHECK_EQ(event.hdr_data, i);
            CHECK_FILL(to, lengths[i], i + 1);
        }
        BARRIER();
    }
    port_close(&p);
}

/* A chain of a thousand counters, each of which counts the next one up. */
PTEST(chain, 1)
{
    enum { N = 1000 };
    static ptl_handle_ct_t ct[N + 1];
    struct port p;
    ptl_ni_limits_t desired;
    memset(&desired, 0x3f, sizeof(desired)); /* more than it can have of everything */
    port_open_with(&p, PTL_IFACE_DEFAULT, KIND_MP, rank, size, &desired);
    CHECK(p.limits.max_cts > N && p.limits.max_triggered_ops >= N);
    for (int i = 0; i <= N; i++) {
        ct[i] = port_ct(&p);
    }
    for (int round = 1; round <= 3; round++) {
        for (int i = N - 1; i >= 0; i--) {
            OK(PtlTriggeredCTInc(ct[i + 1], one, ct[i], (ptl_size_t)round));
        }
        check_success(ct[N], (ptl_size_t)round - 1);
        OK(PtlCTInc(ct[0], one));
        port_wait_ct(ct[N], (uint64_t)round);
        check_success(ct[N / 2], (ptl_size_t)round);
    }
    port_close(&p);
}

/* A counter may trigger its own increment. */
PTEST(own_counter, 1)
{
    enum { N = 500 };
    struct port p;
    port_open(&p, KIND_MP, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    for (ptl_size_t i = 1; i <= N; i++) {
        OK(PtlTriggeredCTInc(ct, one, ct, i));
    }
    OK(PtlCTInc(ct, one));
    port_wait_ct(ct, N + 1);
    port_close(&p);
}

PTEST(free_drops_pending, 1)
{
    enum { N = 100 };
    struct port p;
    ptl_handle_md_t md = open_self(&p, KIND_ML, rank, size);
    ptl_handle_ct_t ct = port_ct(&p), target = port_ct(&p);
    for (int round = 0; round < 30; round++) { /* 30 * 2 * 100: places come back */
        for (ptl_hdr_data_t i = 0; i < N; i++) {
            put_when(&p, md, i, ct, 1);
            OK(PtlTriggeredCTInc(target, one, ct, 1));
        }
        OK(PtlCTFree(ct));
        ct = port_ct(&p);
        OK(PtlCTInc(ct, one));
        check_success(target, 0);
        OK(PtlCTSet(ct, zero));
    }
    NO_EVENT(p.eq);

    /* the counter that would have been counted up may go first, too */
    OK(PtlTriggeredCTInc(target, one, ct, 1));
    OK(PtlCTFree(target));
    target = port_ct(&p);
    OK(PtlCTInc(ct, one));
    check_success(target, 0);
    port_close(&p);
}

/* A put to oneself that is told by nothing but a count may find its entry when it is set up: it is
 * for the entry that is there when it fires. */
PTEST_KINDS(entry_goes_before_it_fires, 1)
{
    enum { FAR = 1000 };
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = port_quiet_md(&p, from, sizeof(from), 0, PTL_CT_NONE);
    ptl_handle_ct_t ct = port_ct(&p), first = port_ct(&p), second = port_ct(&p);
    ptl_me_t me = port_entry(&p, to, 8,
                             PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE |
                                 PTL_ME_EVENT_CT_COMM);
    me.ct_handle = first;
    ptl_handle_me_t entry = port_append(&p, &me, NULL);
    memset(from, 0x55, 8);
    memset(to, 0, sizeof(to));
    for (ptl_size_t threshold = 1; threshold <= 3; threshold++) {
        put_when(&p, md, 0, ct, threshold);
    }
    OK(PtlCTInc(ct, one));
    port_wait_ct(first, 1);
    port_unlink(&p, entry);
    me.start = to + FAR;
    me.ct_handle = second;
    entry = port_append(&p, &me, NULL);
    memset(to, 0, 8);
    OK(PtlCTInc(ct, one));
    port_wait_ct(second, 1);
    check_success(first, 1);
    CHECK_BYTES(to, 8, 0);
    CHECK_BYTES(to + FAR, 8, 0x55);

    port_unlink(&p, entry); /* and for nobody if none is there */
    memset(to + FAR, 0, 8);
    int dropped = port_status(&p, PTL_SR_DROP_COUNT);
    OK(PtlCTInc(ct, one));
    for (uint64_t end = ptest_now_ms() + 10000; ptest_now_ms() < end;) {
        if (port_status(&p, PTL_SR_DROP_COUNT) != dropped) {
            break;
        }
    }
    CHECK_EQ(port_status(&p, PTL_SR_DROP_COUNT), dropped + 1);
    check_success(second, 1);
    CHECK_BYTES(to + FAR, 8, 0);
    port_close(&p);
}

PTEST(limit, 1)
{
    enum { MANY = 1000000 };
    struct port p;
    int n, code = PTL_OK;
    ptl_ni_limits_t desired;
    memset(&desired, 0x3f, sizeof(desired));
    desired.max_triggered_ops = 16;
    port_open_with(&p, PTL_IFACE_DEFAULT, KIND_MP, rank, size, &desired);
    ptl_handle_md_t md = port_quiet_md(&p, from, 8, 0, PTL_CT_NONE);
    ptl_handle_ct_t ct = port_ct(&p), target = port_ct(&p);
    for (int round = 0; round < 3; round++) {
        for (n = 0; n < MANY && code == PTL_OK; n++) {
            code = n % 2 ? PtlTriggeredCTInc(target, one, ct, 1)
                         : PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0,
                                           ct, 2);
        }
        CHECK_CODE(code, PTL_NO_SPACE);
        CHECK(n - 1 >= p.limits.max_triggered_ops);
        CHECK_CODE(PtlTriggeredCTInc(target, one, ct, 1), PTL_NO_SPACE);
        OK(PtlCTSet(ct, zero));
        if (round == 0) {
            OK(PtlCTInc(ct, one)); /* the increments fire and leave room */
            OK(PtlTriggeredCTInc(target, one, ct, 1));
            OK(PtlCTInc(ct, one));
        } else {
            OK(PtlCTFree(ct));
            ct = port_ct(&p);
        }
        OK(PtlCTSet(ct, zero));
        code = PTL_OK;
    }
    port_close(&p);
}

/* Rank 1 only sets things up: its NIC answers every put by itself. */
PTEST_KINDS(answered_by_the_nic, 2)
{
    enum { N = 100 };
    struct port p;
    uint64_t there = 0, back = 0;
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_me_t me = port_entry(&p, rank == 0 ? &back : &there, 8,
                             PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE |
                                 PTL_ME_EVENT_COMM_DISABLE);
    me.ct_handle = ct;
    port_append(&p, &me, NULL);
    ptl_handle_md_t md =
        port_quiet_md(&p, rank == 0 ? from : (unsigned char *)&there, 8, 0, PTL_CT_NONE);
    for (ptl_size_t i = 1; rank == 1 && i <= N; i++) {
        OK(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0, ct, i));
    }
    BARRIER();
    for (uint64_t i = 1; rank == 0 && i <= N; i++) {
        memcpy(from, &i, 8);
        OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        port_wait_ct(ct, i);
        CHECK_EQ(back, i);
    }
    port_close(&p);
}

/* A broadcast down a binary tree and a count back up, all by triggered puts. */
PTEST_KINDS(tree, 7)
{
    enum { ROUNDS = 10 };
    struct port p;
    static uint64_t down_words[ROUNDS + 1], up_word;
    ptl_pt_index_t up_pt;
    ptl_handle_me_t handle;
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t down = port_ct(&p), up = port_ct(&p);
    unsigned options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE |
                       PTL_ME_EVENT_COMM_DISABLE;
    ptl_me_t me = port_entry(&p, down_words, sizeof(down_words), options);
    me.ct_handle = down;
    port_append(&p, &me, NULL);
    OK(PtlPTAlloc(p.ni, 0, p.eq, PTL_PT_ANY, &up_pt));
    me = port_entry(&p, &up_word, 8, options);
    me.ct_handle = up;
    OK(port_append_code(&p, up_pt, &me, NULL, &handle));
    ptl_handle_md_t md = port_quiet_md(&p, down_words, sizeof(down_words), 0, PTL_CT_NONE);
    int kids = (2 * rank + 1 < size) + (2 * rank + 2 < size);
    for (ptl_size_t round = 1; round <= ROUNDS; round++) {
        for (int k = 1; k <= kids; k++) {
            OK(PtlTriggeredPut(md, round * 8, 8, PTL_NO_ACK_REQ, p.id[2 * rank + k], p.pt, 0,
                               round * 8, NULL, 0, down, round));
        }
        if (rank != 0) { /* a leaf answers what comes down, a node what comes up */
            OK(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[(rank - 1) / 2], up_pt, 0, 0, NULL, 0,
                               kids == 0 ? down : up, kids == 0 ? round : round * (unsigned)kids));
        }
    }
    BARRIER();
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        if (rank == 0) {
            down_words[round] = round * 17;
            OK(PtlCTInc(down, one));
            port_wait_ct(up, 2 * round);
        }
        BARRIER();
        port_wait_ct(down, round); /* long reached */
        CHECK_EQ(down_words[round], round * 17);
        BARRIER();
    }
    port_close(&p);
}
