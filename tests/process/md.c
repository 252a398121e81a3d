/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory descriptors and the argument checks of the calls that use them. */
#include "port.h"

#include <string.h>

static unsigned char memory[8192];

PTEST_KINDS(md_bind, 1)
{
    struct port p;
    ptl_handle_md_t h;
    ptl_md_t md = {memory, sizeof(memory), 0, PTL_EQ_NONE, PTL_CT_NONE};
    port_open(&p, kind, rank, size);
    static const unsigned legal[] = {
        PTL_MD_UNORDERED,          PTL_MD_VOLATILE,
        PTL_MD_UNRELIABLE,         PTL_MD_EVENT_SUCCESS_DISABLE,
        PTL_MD_EVENT_SEND_DISABLE, PTL_MD_UNORDERED | PTL_MD_VOLATILE | PTL_MD_UNRELIABLE};
    for (size_t i = 0; i < sizeof(legal) / sizeof(legal[0]); i++) {
        md.options = legal[i];
        OK(PtlMDBind(p.ni, &md, &h));
        OK(PtlMDRelease(h));
    }
    for (int bit = 0; bit < 32; bit++) {
        if (bit == 0 || (bit >= 9 && bit != 14)) { /* PTL_IOVEC, and bits without meaning */
            md.options = 1u << bit;
            INVALID(PtlMDBind(p.ni, &md, &h));
        }
    }
    md.options = 0;
    md.ct_handle = 0; /* as a zeroed struct has it: not looked at */
    OK(PtlMDBind(p.ni, &md, &h));
    OK(PtlMDRelease(h));
    md.ct_handle = 0x12345678;
    OK(PtlMDBind(p.ni, &md, &h));
    OK(PtlMDRelease(h));
    md.options = PTL_MD_EVENT_CT_SEND;
    INVALID(PtlMDBind(p.ni, &md, &h));
    md.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_BYTES;
    md.ct_handle = port_ct(&p);
    md.eq_handle = p.mdeq;
    OK(PtlMDBind(p.ni, &md, &h));
    OK(PtlMDRelease(h));
    INVALID(PtlMDRelease(h));
    md.start = NULL;
    md.length = 0;
    OK(PtlMDBind(p.ni, &md, &h));
    md.length = PTL_SIZE_MAX;
    OK(PtlMDBind(p.ni, &md, &h));
    port_close(&p);
}

PTEST_KINDS(put_arguments, 1)
{
    struct port p;
    ptl_process_t to;
    port_open(&p, kind, rank, size);
    to = p.id[0];
    ptl_handle_md_t md = port_md(&p, memory, 1000, 0, PTL_CT_NONE);
    ptl_handle_md_t all = port_md(&p, NULL, PTL_SIZE_MAX, 0, PTL_CT_NONE);
    ptl_handle_md_t bare = port_quiet_md(&p, memory, 1000, 0, PTL_CT_NONE);
    ptl_handle_md_t empty = port_md(&p, memory, 0, 0, PTL_CT_NONE);

    static const ptl_size_t bad[][2] = {/* offset, length */
                                        {0, 1001},
                                        {1, 1000},
                                        {1000, 1},
                                        {1001, 0},
                                        {PTL_SIZE_MAX, 1},
                                        {PTL_SIZE_MAX, 2},
                                        {2, PTL_SIZE_MAX},
                                        {PTL_SIZE_MAX, PTL_SIZE_MAX},
                                        {PTL_SIZE_MAX - 4, 8},
                                        {500, 501}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        INVALID(PtlPut(md, bad[i][0], bad[i][1], PTL_NO_ACK_REQ, to, p.pt, 0, 0, NULL, 0));
        INVALID(PtlGet(md, bad[i][0], bad[i][1], to, p.pt, 0, 0, NULL));
    }
    INVALID(PtlPut(empty, 0, 1, PTL_NO_ACK_REQ, to, p.pt, 0, 0, NULL, 0));
    if (p.limits.max_msg_size < (ptl_size_t)1 << 46) {
        ptl_size_t n = p.limits.max_msg_size + 1;
        INVALID(PtlPut(all, 4096, n, PTL_NO_ACK_REQ, to, p.pt, 0, 0, NULL, 0));
        INVALID(PtlGet(all, 4096, n, to, p.pt, 0, 0, NULL));
    }
    INVALID(PtlPut(md, 0, 8, 4, to, p.pt, 0, 0, NULL, 0));
    INVALID(PtlPut(md, 0, 8, 255, to, p.pt, 0, 0, NULL, 0));
    INVALID(PtlPut(bare, 0, 8, PTL_ACK_REQ, to, p.pt, 0, 0, NULL, 0));
    INVALID(PtlPut(bare, 0, 8, PTL_CT_ACK_REQ, to, p.pt, 0, 0, NULL, 0));
    INVALID(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, to, p.pt, 0, 0, NULL, 0));

    static const ptl_pid_t pids[] = {0, PTL_PID_ANY, 0x10000, 0xffffffff};
    for (int i = 0; i < 4; i++) {
        if (port_logical(&p)) {
            to.rank = (ptl_rank_t)(size + i);
        } else {
            to.phys.pid = pids[i];
        }
        INVALID(PtlPut(md, 0, 8, PTL_ACK_REQ, to, p.pt, 0, 0, NULL, 0));
        INVALID(PtlGet(md, 0, 8, to, p.pt, 0, 0, NULL));
    }
    NO_EVENT(p.mdeq); /* nothing of all this was sent */
    CHECK_EQ(port_status(&p, PTL_SR_DROP_COUNT), 0);
    port_close(&p);
}

/* The same checks in the call that only sets a put up. */
PTEST(triggered_put_arguments, 1)
{
    struct port p;
    ptl_process_t to;
    port_open(&p, KIND_ML, rank, size);
    to = p.id[0];
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_handle_md_t md = port_md(&p, memory, 1000, 0, PTL_CT_NONE);
    ptl_handle_md_t bare = port_quiet_md(&p, memory, 1000, 0, PTL_CT_NONE);
    INVALID(PtlTriggeredPut(md, 1, 1000, PTL_NO_ACK_REQ, to, p.pt, 0, 0, NULL, 0, ct, 5));
    INVALID(PtlTriggeredPut(md, PTL_SIZE_MAX, 2, PTL_NO_ACK_REQ, to, p.pt, 0, 0, NULL, 0, ct, 5));
    INVALID(PtlTriggeredPut(md, 0, 8, 9, to, p.pt, 0, 0, NULL, 0, ct, 5));
    INVALID(PtlTriggeredPut(bare, 0, 8, PTL_ACK_REQ, to, p.pt, 0, 0, NULL, 0, ct, 5));
    INVALID(PtlTriggeredPut(bare, 0, 8, PTL_CT_ACK_REQ, to, p.pt, 0, 0, NULL, 0, ct, 5));
    to.rank = 1;
    INVALID(PtlTriggeredPut(md, 0, 8, PTL_ACK_REQ, to, p.pt, 0, 0, NULL, 0, ct, 5));
    ptl_ct_event_t both = {1, 1};
    INVALID(PtlTriggeredCTInc(ct, both, ct, 5));
    OK(PtlMDRelease(md));
    port_close(&p);
}

/* An MD in use cannot be released: here by a put that waits for its trigger. */
PTEST(md_in_use, 1)
{
    struct port p;
    ptl_ct_event_t one = {1, 0};
    unsigned char to[64];
    port_open(&p, KIND_MP, rank, size);
    port_target(&p, to, sizeof(to), PTL_ME_OP_PUT, NULL);
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_handle_md_t md = port_md(&p, memory, 64, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    OK(PtlTriggeredPut(md, 0, 64, PTL_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0, ct, 1));
    CHECK_CODE(PtlMDRelease(md), PTL_IN_USE);
    OK(PtlCTInc(ct, one));
    EVENT(p.mdeq, PTL_EVENT_ACK);
    port_release(md);

    md = port_md(&p, memory, 64, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    OK(PtlTriggeredPut(md, 0, 64, PTL_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0, ct, 100));
    CHECK_CODE(PtlMDRelease(md), PTL_IN_USE);
    OK(PtlCTFree(ct)); /* forgets the put */
    port_release(md);
    INVALID(PtlMDRelease(md));
    port_close(&p);
}

/* Many MDs over one buffer, each with its own counter. */
PTEST_KINDS(many_mds, 2)
{
    enum { N = 200 };
    struct port p;
    uint64_t word = 42;
    ptl_handle_ct_t ct[N];
    ptl_handle_md_t md[N];
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        port_target(&p, memory, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    BARRIER();
    if (rank == 0) {
        for (int i = 0; i < N; i++) {
            ct[i] = port_ct(&p);
            md[i] = port_quiet_md(&p, &word, 8, PTL_MD_EVENT_CT_ACK, ct[i]);
        }
        for (int i = 0; i < N; i++) {
            for (int k = 0; k <= i % 3; k++) {
                OK(PtlPut(md[i], 0, 8, PTL_CT_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
            }
        }
        for (int i = 0; i < N; i++) {
            port_wait_ct(ct[i], (uint64_t)(i % 3) + 1);
            port_release(md[i]);
            OK(PtlCTFree(ct[i]));
        }
    }
    port_close(&p);
}

/* PTL_MD_VOLATILE: the buffer is the program's again when the call returns. */
PTEST_KINDS(volatile_md, 2)
{
    enum { N = 300, STRIDE = 256 };
    static unsigned char from[STRIDE], to[N * STRIDE];
    struct port p;
    port_open(&p, kind, rank, size);
    size_t length = p.limits.max_volatile_size < STRIDE ? p.limits.max_volatile_size : STRIDE;
    CHECK(length >= 1);
    if (rank == 1) {
        port_target(&p, to, sizeof(to), PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_handle_md_t md =
            port_quiet_md(&p, from, sizeof(from), PTL_MD_VOLATILE | PTL_MD_EVENT_CT_ACK, ct);
        for (unsigned i = 0; i < N; i++) {
            ptest_fill(from, length, i);
            OK(PtlPut(md, 0, length, PTL_CT_ACK_REQ, p.id[1], p.pt, 0, i * STRIDE, NULL, 0));
            memset(from, 0, length);
        }
        port_wait_ct(ct, N);
        /* longer messages are not refused, whatever the limit is */
        md = port_quiet_md(&p, NULL, PTL_SIZE_MAX, PTL_MD_VOLATILE | PTL_MD_EVENT_CT_ACK, ct);
        OK(PtlPut(md, (uintptr_t)memory, sizeof(memory), PTL_CT_ACK_REQ, p.id[1], p.pt, 0,
                  sizeof(to) - 1, NULL, 0));
        port_wait_ct(ct, N + 1);
    }
    BARRIER();
    if (rank == 1) {
        NO_EVENT(p.eq);
        for (unsigned i = 0; i + 1 < N; i++) {
            CHECK_FILL(to + i * STRIDE, length, i);
        }
    }
    port_close(&p);
}

/* Options that permit something the library need not make use of. */
PTEST_KINDS(permissive_mds, 2)
{
    struct port p;
    unsigned char from[500];
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        port_target(&p, memory, sizeof(memory), PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    }
    BARRIER();
    if (rank == 0) {
        ptest_fill(from, sizeof(from), 4);
        ptl_handle_md_t un = port_md(&p, from, sizeof(from), PTL_MD_UNORDERED, PTL_CT_NONE);
        OK(PtlPut(un, 0, sizeof(from), PTL_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        EVENT(p.mdeq, PTL_EVENT_SEND);
        EVENT(p.mdeq, PTL_EVENT_ACK);
        ptl_handle_md_t lossy = port_md(&p, from, sizeof(from), PTL_MD_UNRELIABLE, PTL_CT_NONE);
        OK(PtlPut(lossy, 0, sizeof(from), PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 1000, NULL, 0));
        EVENT(p.mdeq, PTL_EVENT_SEND);
    } else {
        EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_FILL(memory, sizeof(from), 4);
        EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_FILL(memory + 1000, sizeof(from), 4);
    }
    port_close(&p);
}
